use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::host::Neutral;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn request(claimant: &str) -> Request {
    Request {
        claimant: claimant.to_owned(),
        since: at(0),
        pool: Pool::Namespace("lab".to_owned()),
        named: None,
        tolerations: Vec::new(),
        selector: Selector::default(),
        failure_domain: None,
        domain_keys: vec!["site".to_owned(), ZONE.to_owned()],
        requirements: Requirements::default(),
        way: BootWay::Image("http".to_owned()),
        refused_by: BTreeMap::new(),
        group: "workers".to_owned(),
    }
}

fn host(name: &str) -> Candidate {
    Candidate {
        namespace: "lab".to_owned(),
        name: name.to_owned(),
        taints: Vec::new(),
        labels: BTreeMap::new(),
        availability: Availability::Free,
        rack: None,
        capacity: Some(Capacity { cores: 16, memory_bytes: 32 << 30, disk_bytes: vec![480_000_000_000; 2] }),
        media: None,
        network_boot: None,
        released: None,
    }
}

const ZONE: &str = "topology.kubernetes.io/zone";

fn in_zone(zone: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(ZONE.to_owned(), zone.to_owned())])
}

fn in_lab(name: &str) -> Outcome {
    Outcome::Placed { namespace: "lab".to_owned(), name: name.to_owned() }
}

fn placed(request: Request, hosts: &[Candidate]) -> String {
    match place(&[request], hosts).pop() {
        Some(Outcome::Placed { name, .. }) => name,
        other => panic!("{other:?}"),
    }
}

fn refused(request: Request, hosts: &[Candidate]) -> String {
    match place(&[request], hosts).pop() {
        Some(Outcome::Refused(refusal)) => refusal.tell(&Neutral),
        other => panic!("{other:?}"),
    }
}

fn term(key: &str, test: Test) -> Selector {
    Selector(vec![Term { key: key.to_owned(), test }])
}

fn values(values: &[&str]) -> BTreeSet<String> {
    values.iter().map(ToString::to_string).collect()
}

#[test]
fn the_longest_unused_host_is_taken_then_the_first_by_name() {
    let hosts = [
        Candidate { released: Some(at(20)), ..host("a") },
        Candidate { released: Some(at(10)), ..host("b") },
        host("d"),
        host("c"),
    ];
    assert_eq!(placed(request("m"), &hosts), "c", "never used, and first by name");
    assert_eq!(placed(request("m"), &hosts[..2]), "b", "used longest ago");
}

#[test]
fn a_group_is_spread_over_racks_also_within_one_round() {
    let rack = |name: &str, rack: &str| Candidate { rack: Some(rack.to_owned()), ..host(name) };
    let held = Availability::Claimed { holder: "other".to_owned(), group: Some("workers".to_owned()) };
    let hosts = [
        Candidate { availability: held, ..rack("a", "1") },
        rack("b", "1"),
        rack("c", "1"),
        rack("d", "2"),
        rack("e", "2"),
    ];
    let got = place(&[request("m-0"), request("m-1"), request("m-2")], &hosts);
    let names: Vec<_> = ["d", "b", "e"].map(in_lab).into();
    assert_eq!(got, names, "the emptier rack first, then in turns");
    let elsewhere = Request { group: "control-plane".to_owned(), ..request("m") };
    assert_eq!(placed(elsewhere, &hosts), "b", "another group is not crowded by this one");
}

#[test]
fn labels_must_hold() {
    let labelled = |name: &str, value: &str| {
        let labels = BTreeMap::from([("class".to_owned(), value.to_owned())]);
        Candidate { labels, ..host(name) }
    };
    let hosts = [labelled("a", "small"), labelled("b", "large"), host("c")];
    let cases = [
        (Test::In(values(&["large"])), "b"),
        (Test::In(values(&["large", "small"])), "a"),
        (Test::NotIn(values(&["small"])), "b"),
        (Test::Exists, "a"),
        (Test::Absent, "c"),
    ];
    for (test, expected) in cases {
        let request = Request { selector: term("class", test.clone()), ..request("m") };
        assert_eq!(placed(request, &hosts), expected, "{test:?}");
    }
}

#[test]
fn the_first_label_that_a_host_has_names_its_failure_domain() {
    let keys = request("m").domain_keys;
    let mut labels = in_zone("a");
    assert_eq!(domain(&labels, &keys), Some("a"));
    labels.insert("site".to_owned(), "north".to_owned());
    assert_eq!(domain(&labels, &keys), Some("north"));
    labels.insert("site".to_owned(), String::new());
    assert_eq!(domain(&labels, &keys), Some("a"), "an empty value names nothing");
    assert_eq!(domain(&BTreeMap::new(), &keys), None);
}

#[test]
fn who_needs_no_failure_domain_leaves_room_in_each_for_those_who_do() {
    let in_domain = |name: &str, zone: &str| Candidate { labels: in_zone(zone), ..host(name) };
    let hosts = [
        in_domain("a-1", "a"),
        in_domain("a-2", "a"),
        in_domain("b-1", "b"),
        in_domain("b-2", "b"),
        in_domain("b-3", "b"),
        Candidate { released: Some(at(20)), ..host("nowhere") },
    ];
    let workers = ["m-0", "m-1", "m-2", "m-3"].map(request);
    let got = place(&workers, &hosts);
    let names: Vec<_> = ["nowhere", "b-1", "a-1", "b-2"].map(in_lab).into();
    assert_eq!(got, names, "whom nobody can need first, then where most is left");

    let rack = |host: Candidate| Candidate { rack: Some("1".to_owned()), ..host };
    let held = Availability::Claimed { holder: "other".to_owned(), group: Some("workers".to_owned()) };
    let crowded = [
        Candidate { availability: held, ..rack(in_domain("b-0", "b")) },
        rack(in_domain("b-1", "b")),
        rack(in_domain("b-2", "b")),
        in_domain("a-1", "a"),
    ];
    assert_eq!(placed(request("m"), &crowded), "a-1", "racks count for more");
}

#[test]
fn requirements_are_met_by_one_disk_and_in_decimal_gigabytes() {
    let asks = |requirements| Request { requirements, ..request("m") };
    let hosts = [host("a")];
    for fits in
        [Requirements { cores: 16, memory_gb: 34, disk_gb: 480 }, Requirements { cores: 0, memory_gb: 0, disk_gb: 0 }]
    {
        assert_eq!(placed(asks(fits), &hosts), "a", "{fits:?}");
    }
    let told = [
        (Requirements { cores: 17, ..Default::default() }, "a (16 cores)"),
        (Requirements { memory_gb: 35, ..Default::default() }, "a (34 GB of memory)"),
        (Requirements { disk_gb: 481, ..Default::default() }, "a (largest disk 480 GB)"),
        (Requirements { cores: 17, disk_gb: 900, ..Default::default() }, "a (16 cores, largest disk 480 GB)"),
    ];
    for (requirements, nearest) in told {
        assert_eq!(
            refused(asks(requirements), &hosts),
            format!("The only host in namespace lab does not fit: 1 has too little hardware. Nearest: {nearest}.")
        );
    }
    let unknown = [Candidate { capacity: None, ..host("a") }];
    assert_eq!(placed(asks(Requirements::default()), &unknown), "a");
    assert!(refused(asks(Requirements { cores: 1, ..Default::default() }), &unknown).contains("hardware not known"));
}

#[test]
fn a_refusal_counts_the_hardest_bars_and_names_the_nearest() {
    let held = || Availability::Claimed { holder: "Beskar7Machine lab/other".to_owned(), group: None };
    let unavailable = |state: &str| Availability::Unavailable(state.to_owned());
    let hosts = [
        Candidate { availability: held(), labels: in_zone("a"), ..host("h-1") },
        Candidate { availability: held(), labels: in_zone("b"), ..host("h-2") },
        Candidate { labels: in_zone("b"), ..host("h-3") },
        Candidate { availability: unavailable("Maintenance"), labels: in_zone("a"), ..host("h-4") },
        host("h-5"),
        Candidate { namespace: "elsewhere".to_owned(), ..host("h-6") },
    ];
    let request = Request { failure_domain: Some("a".to_owned()), ..request("m") };
    assert_eq!(
        refused(request.clone(), &hosts),
        "None of the 5 hosts in namespace lab fits: 1 is claimed, 1 is not available, 3 are in another failure \
         domain. Nearest: h-3 (in failure domain b); h-4 (is Maintenance); h-5 (in no failure domain)."
    );
    assert_eq!(refused(request, &[]), "There are no hosts in namespace lab.");
}

#[test]
fn a_host_that_runs_although_nobody_asked_is_passed_over_and_it_is_said_what_to_do() {
    let running = Candidate { availability: Availability::Running, ..host("a") };
    assert_eq!(placed(request("m"), &[running.clone(), host("b")]), "b");
    assert_eq!(
        refused(request("m"), &[running]),
        "The only host in namespace lab does not fit: 1 is running although nobody asked for it. Nearest: a (running: \
         set the power request: false, or that it may be claimed while it runs to have it taken as it is)."
    );
}

#[test]
fn a_host_that_cannot_fetch_the_image_or_has_no_drive_is_passed_over() {
    let ways = |name: &str, drives, schemes: &[&str]| {
        let schemes = schemes.iter().map(ToString::to_string).collect();
        Candidate { media: Some(MediaWays { drives, schemes }), ..host(name) }
    };
    let hosts = [ways("a", 0, &[]), ways("b", 1, &["https", "smb"]), ways("c", 2, &[]), ways("d", 1, &["HTTP"])];
    assert_eq!(placed(request("m"), &hosts), "c", "who does not tell may be able to");
    assert_eq!(placed(request("m"), &hosts[3..]), "d");
    assert_eq!(
        refused(request("m"), &hosts[..2]),
        "None of the 2 hosts in namespace lab fits: 2 cannot boot the image. Nearest: a (no virtual CD drive); b (takes \
         images only by https, smb)."
    );
    let by_network = Request { way: BootWay::Network, ..request("m") };
    assert_eq!(placed(by_network.clone(), &hosts), "a", "who boots in another way needs no drive");
    let disconnected = Candidate { network_boot: Some(false), ..host("e") };
    assert_eq!(
        refused(by_network, &[disconnected]),
        "The only host in namespace lab does not fit: 1 cannot boot the image. Nearest: e (no network boot)."
    );
}

#[test]
fn a_host_that_refused_a_claim_is_passed_over_by_it_and_by_nobody_else() {
    let hosts = [host("a"), host("b")];
    let refused_by = BTreeMap::from([("a".to_owned(), "MediaRefused".to_owned())]);
    let again = Request { refused_by, ..request("m") };
    assert_eq!(placed(again.clone(), &hosts), "b");
    assert_eq!(placed(request("other"), &hosts), "a");
    assert_eq!(
        refused(again, &hosts[..1]),
        "The only host in namespace lab does not fit: 1 has refused. Nearest: a (refused: MediaRefused)."
    );
}

#[test]
fn hosts_of_one_name_in_two_namespaces_are_told_apart() {
    let elsewhere = |namespace: &str| Candidate { namespace: namespace.to_owned(), ..host("a") };
    let hosts = [elsewhere("here"), elsewhere("there")];
    let everywhere = Request { pool: Pool::Everything, ..request("m") };
    let refused_by = |name: &str| BTreeMap::from([(name.to_owned(), "MediaRefused".to_owned())]);
    for (name, expected) in [("here/a", "there"), ("there/a", "here")] {
        let again = Request { refused_by: refused_by(name), ..everywhere.clone() };
        let Outcome::Placed { namespace, .. } = place(&[again], &hosts).remove(0) else { panic!("{name}") };
        assert_eq!(namespace, expected);
    }
    let own = Pool::Namespace("lab".to_owned());
    for (pool, namespace, expected) in [
        (&own, "lab", "a"),
        (&own, "other", "other/a"),
        (&Pool::Everything, "lab", "lab/a"),
        (&Pool::Everything, "", "a"),
    ] {
        assert_eq!(pool.name_of(namespace, "a"), expected);
    }
}

fn any_host() -> impl Strategy<Value = Candidate> {
    let availability = prop_oneof![
        3 => Just(Availability::Free),
        1 => Just(Availability::Claimed { holder: "x".to_owned(), group: Some("g0".to_owned()) }),
        1 => Just(Availability::Running),
        1 => Just(Availability::Unavailable("Error".to_owned())),
    ];
    (0..2_u8, 0..12_u8, availability, 0..3_u8, 0..3_u8, 0..4_u32, proptest::option::of(0..5_i64)).prop_map(
        |(namespace, name, availability, domain, rack, cores, released)| Candidate {
            namespace: format!("n{namespace}"),
            name: format!("h{name}"),
            taints: if name % 5 == 0 { vec![Taint { key: "t".to_owned(), value: String::new() }] } else { Vec::new() },
            labels: if domain > 0 { in_zone(&format!("d{domain}")) } else { BTreeMap::new() },
            availability,
            rack: (rack > 0).then(|| format!("r{rack}")),
            capacity: (cores > 0).then(|| Capacity { cores, ..Capacity::default() }),
            media: (cores != 1)
                .then(|| MediaWays { drives: cores, schemes: vec![["http", "nfs"][usize::from(rack > 1)].to_owned()] }),
            network_boot: [None, Some(true), Some(false)].get(usize::from(domain)).copied().flatten(),
            released: released.map(at),
        },
    )
}

fn any_request() -> impl Strategy<Value = Request> {
    (0..3_u8, 0..20_u8, 0..4_i64, 0..3_u8, 0..3_u32, 0..2_u8).prop_map(
        |(namespace, name, since, domain, cores, group)| Request {
            claimant: format!("m{name}"),
            since: at(since),
            pool: if namespace == 2 { Pool::Everything } else { Pool::Namespace(format!("n{namespace}")) },
            named: (name % 7 == 0).then(|| "h2".to_owned()),
            tolerations: (name % 2 == 0).then(|| Toleration { key: "t".to_owned(), value: None }).into_iter().collect(),
            failure_domain: (domain > 0).then(|| format!("d{domain}")),
            requirements: Requirements { cores, ..Requirements::default() },
            refused_by: if name % 3 == 0 { [("h1".to_owned(), "Why".to_owned())].into() } else { BTreeMap::new() },
            group: format!("g{group}"),
            ..request("")
        },
    )
}

fn unique<T, K: std::hash::Hash + Eq>(all: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut seen = HashSet::new();
    all.into_iter().filter(|one| seen.insert(key(one))).collect()
}

proptest! {
    #[test]
    fn nobody_shares_a_host_everybody_fits_and_nobody_is_overtaken(
        hosts in proptest::collection::vec(any_host(), 0..20),
        requests in proptest::collection::vec(any_request(), 0..20),
        seed in any::<u64>(),
    ) {
        let hosts = unique(hosts, |host| (host.namespace.clone(), host.name.clone()));
        let requests = unique(requests, |request| (request.pool.clone(), request.claimant.clone()));
        let outcomes = place(&requests, &hosts);
        prop_assert_eq!(outcomes.len(), requests.len());

        let mut got = HashMap::new();
        for (request, outcome) in requests.iter().zip(&outcomes) {
            let Outcome::Placed { namespace, name } = outcome else { continue };
            let host = hosts.iter().find(|host| host.name == *name && host.namespace == *namespace);
            prop_assert!(host.is_some_and(|host| request.means(host) && request.bars(host).is_empty()), "{:?} got {}", request, name);
            prop_assert!(got.insert((namespace, name), request).is_none(), "{} was given twice", name);
        }
        for (request, outcome) in requests.iter().zip(&outcomes) {
            if matches!(outcome, Outcome::Placed { .. }) {
                continue;
            }
            for host in hosts.iter().filter(|host| request.means(host) && request.bars(host).is_empty()) {
                let taker = got.get(&(&host.namespace, &host.name));
                prop_assert!(
                    taker.is_some_and(|taker| (taker.since, &taker.pool, &taker.claimant) < (request.since, &request.pool, &request.claimant)),
                    "{:?} was refused {:?}, which went to {:?}", request, host, taker
                );
            }
        }

        // The same, whatever the order in which everything was listed.
        let mut shuffled: Vec<_> = (0..requests.len()).collect();
        let turn = usize::try_from(seed % 17).unwrap();
        shuffled.rotate_left(if requests.is_empty() { 0 } else { turn % requests.len() });
        let mut mixed = hosts.clone();
        mixed.reverse();
        let again = place(&shuffled.iter().map(|&index| requests[index].clone()).collect::<Vec<_>>(), &mixed);
        for (position, &index) in shuffled.iter().enumerate() {
            prop_assert_eq!(&again[position], &outcomes[index]);
        }
    }
}

#[test]
fn a_pool_is_a_namespace_or_everything() {
    let elsewhere = Candidate { namespace: "other".to_owned(), ..host("far") };
    let hosts = [elsewhere];
    assert!(refused(request("m"), &hosts).starts_with("There are no hosts in namespace lab."));
    let everywhere = Request { pool: Pool::Everything, ..request("m") };
    let far = Outcome::Placed { namespace: "other".to_owned(), name: "far".to_owned() };
    assert_eq!(place(std::slice::from_ref(&everywhere), &hosts), [far]);
    assert_eq!(refused(everywhere, &[]), "There are no hosts.");
}

#[test]
fn who_names_a_host_gets_that_one_or_none() {
    let hosts = [host("a"), host("b"), Candidate { availability: Availability::Running, ..host("c") }];
    let named = |name: &str| Request { named: Some(name.to_owned()), ..request("m") };
    assert_eq!(placed(named("b"), &hosts), "b");
    assert_eq!(refused(named("z"), &hosts), "There is no host z in namespace lab.");
    let told = refused(named("c"), &hosts);
    assert!(told.starts_with("host c in namespace lab does not fit: 1 is running"), "{told}");
    // Two who name the same one: the first gets it.
    let both = place(&[named("a"), Request { since: at(1), ..named("a") }], &hosts);
    assert!(matches!(&both[..], [Outcome::Placed { .. }, Outcome::Refused(_)]), "{both:?}");
}

#[test]
fn a_taint_keeps_away_who_does_not_tolerate_it() {
    let taint = |value: &str| Taint { key: "firmware".to_owned(), value: value.to_owned() };
    let tolerates = |key: &str, value: Option<&str>| {
        let toleration = Toleration { key: key.to_owned(), value: value.map(str::to_owned) };
        Request { tolerations: vec![toleration], ..request("m") }
    };
    for (request, value, fits) in [
        (request("m"), "old", false),
        (tolerates("firmware", Some("old")), "old", true),
        (tolerates("firmware", None), "old", true),
        (tolerates("firmware", None), "", true),
        (tolerates("firmware", Some("new")), "old", false),
        (tolerates("rack", None), "old", false),
    ] {
        let hosts = [Candidate { taints: vec![taint(value)], ..host("a") }];
        let outcome = place(std::slice::from_ref(&request), &hosts);
        assert_eq!(matches!(outcome[..], [Outcome::Placed { .. }]), fits, "{request:?} {value:?}");
        if !fits {
            let told = refused(request, &hosts);
            assert!(
                told.contains("1 has taints that are not tolerated") && told.contains("tainted firmware=old"),
                "{told}"
            );
        }
    }
    let two =
        Candidate { taints: vec![taint("old"), Taint { key: "rack".to_owned(), value: String::new() }], ..host("a") };
    assert!(refused(tolerates("firmware", None), &[two]).contains("a (tainted rack)"), "each taint counts");
}
