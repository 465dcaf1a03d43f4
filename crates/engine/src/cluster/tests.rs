use super::*;

fn endpoint(host: &str) -> Endpoint {
    Endpoint { host: host.to_owned(), port: 6443 }
}

fn owned(endpoint: Option<Endpoint>, control_plane: Option<&str>) -> Owner {
    Owner::Cluster { endpoint, control_plane: control_plane.map(str::to_owned) }
}

fn sight(owner: Owner) -> Sight {
    Sight { owner, protected: true, control_plane: Vec::new(), domains: BTreeSet::from(["a".to_owned()]) }
}

fn machine(ready: bool, internal: &[&str], others: &[&str]) -> ControlPlaneMachine {
    let owned = |addresses: &[&str]| addresses.iter().map(ToString::to_string).collect();
    ControlPlaneMachine { ready, internal: owned(internal), others: owned(others) }
}

fn found(step: &Step) -> Result<Endpoint, Missing> {
    match &step.standing {
        Standing::Provisioned { endpoint, domains } => {
            assert_eq!(domains.len(), 1);
            endpoint.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_endpoint_is_the_given_one_else_the_clusters_else_the_first_machines() {
    let given = Goal { endpoint: Some(endpoint("given")), ..Goal::default() };
    let step_given = step(&given, &sight(owned(Some(endpoint("cluster")), None)));
    assert_eq!((found(&step_given), &step_given.acts), (Ok(endpoint("given")), &vec![]), "never changed");

    let mirrored = step(&Goal::default(), &sight(owned(Some(endpoint("cluster")), Some("KubeadmControlPlane"))));
    assert_eq!(mirrored.acts, [Act::SetEndpoint(endpoint("cluster"))]);

    let mut machines = sight(owned(None, None));
    assert_eq!(found(&step(&Goal::default(), &machines)), Err(Missing::NoMachine), "provisioned all the same");
    machines.control_plane = vec![
        machine(false, &["10.0.0.1"], &[]),
        machine(true, &[], &[]),
        machine(true, &["10.0.0.3", "10.0.0.4"], &["192.0.2.3"]),
        machine(true, &["10.0.0.5"], &[]),
    ];
    let derived = step(&Goal::default(), &machines);
    assert_eq!(derived.acts, [Act::SetEndpoint(endpoint("10.0.0.3"))]);
    machines.control_plane = vec![machine(true, &[], &["192.0.2.3"])];
    assert_eq!(found(&step(&Goal::default(), &machines)), Ok(endpoint("192.0.2.3")));
}

#[test]
fn a_control_plane_provider_is_not_kept_waiting_in_silence() {
    let step = step(&Goal::default(), &sight(owned(None, Some("KubeadmControlPlane"))));
    assert_eq!(found(&step), Err(Missing::RequiredBy("KubeadmControlPlane".to_owned())));
    assert_eq!(step.acts, []);
}

#[test]
fn whoever_is_not_ours_is_left_alone() {
    let leaving = Goal { leaving: true, ..Goal::default() };
    for goal in [Goal::default(), leaving.clone()] {
        let external = Goal { external: true, ..goal.clone() };
        assert_eq!(step(&external, &sight(owned(None, None))), Step { standing: Standing::Aside, acts: vec![] });
        let paused = step(&goal, &sight(Owner::Paused("paused".to_owned())));
        assert_eq!(paused, Step { standing: Standing::Paused("paused".to_owned()), acts: vec![] });
    }
    for (owner, standing) in [
        (Owner::Awaited, Standing::AwaitsOwner),
        (Owner::NoClusterApi, Standing::NoClusterApi),
        (Owner::Gone, Standing::Aside),
    ] {
        assert_eq!(step(&Goal::default(), &sight(owner)), Step { standing, acts: vec![] });
    }
    for owner in [Owner::Nobody, Owner::Awaited, Owner::NoClusterApi, Owner::Gone, owned(None, None)] {
        assert_eq!(step(&leaving, &sight(owner)).acts, [Act::LetGo]);
    }
}

#[test]
fn it_is_protected_before_anything_else() {
    let bare = Sight { protected: false, ..sight(owned(Some(endpoint("cluster")), None)) };
    assert_eq!(step(&Goal::default(), &bare).acts, [Act::Protect, Act::SetEndpoint(endpoint("cluster"))]);
}
