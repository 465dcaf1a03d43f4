//! Clusters of Metal3's own provider under the real controllers: Cluster API 1.13, CAPM3 and IPAM claim BareMetalHosts, which our
//! operator looks after. BMCs are simulated, nodes are stood in for.

mod hosts;
mod manifests;
mod site;
mod vm;

use testkit::Move;

use site::{Management, Site};

#[tokio::test]
async fn a_metal3_cluster_lives_and_dies_under_cluster_api_1_13() {
    Box::pin(lives_and_dies()).await;
}

async fn lives_and_dies() {
    let site = Site::start(7).await;
    site.apply_cluster(3, 2).await;
    site.wait_for_running(3, 2).await;
    site.check_hosts_and_machines().await;
    let used = site.used_hosts().await;
    let acts = site.hosts.acts(&used);
    assert!(!acts.is_empty());

    pause_and_unpause(&site, used.len()).await;

    site.scale_workers(4).await;
    site.wait_for_running(3, 4).await;
    site.check_hosts_and_machines().await;
    assert_eq!(site.hosts.acts(&used), acts, "neither a pause nor new machines do anything to servers in use");
    let (leaders, workers) = (site.hosts_of(true).await, site.hosts_of(false).await);
    site.scale_workers(2).await;
    site.wait_for_running(3, 2).await;
    site.wait_for_free_hosts(2).await;

    site.roll_out("walk-2").await;
    site.wait_for_running(3, 2).await;
    site.check_hosts_and_machines().await;
    assert_eq!(site.hosts_of(true).await, leaders, "the control plane takes its own servers again");
    assert!(site.hosts_of(false).await.is_subset(&workers), "and so do the workers");

    site.delete_cluster().await;
    site.wait_for_free_hosts(7).await;
    site.hosts.check_all_unused();
}

/// CAPM3 pauses every host of a paused cluster, and keeps a copy of its status.
async fn pause_and_unpause(site: &Site, used: usize) {
    for paused in [true, false] {
        site.pause(paused).await;
        site.wait_for_paused_hosts(if paused { used } else { 0 }).await;
    }
    site.wait_for_running(3, 2).await;
}

#[tokio::test]
async fn a_metal3_cluster_moves_and_an_interrupted_move_is_repeated_under_cluster_api_1_13() {
    Box::pin(moves_there_and_back()).await;
}

/// The API server on which the cluster began plays its workload cluster to the end. One of the hosts is nobody's.
async fn moves_there_and_back() {
    let (here, there) = tokio::join!(Site::start(4), Management::start());
    let there = here.beside(there).await;
    here.move_free_hosts().await;
    there.move_free_hosts().await;
    here.apply_cluster(1, 2).await;
    here.wait_for_running(1, 2).await;
    here.check_hosts_and_machines().await;
    let one = here.used_hosts().await.pop_first().unwrap();
    let acts = here.hosts.all_acts();
    assert!(!acts.is_empty());

    move_between(&here, &there).await;

    // Cut short while objects are created: nothing is deleted before everything was created.
    here.refuse("create", &one).await;
    let interrupted = Move::start(there.cluster(), here.cluster(), here.namespace());
    here.wait_for_refusal("create").await;
    interrupted.interrupt().await;
    assert_eq!(there.bare_metal_hosts().await.len(), 4);
    here.accept().await;
    // clusterctl moves no cluster that is paused, and has left this one so.
    there.pause(false).await;
    there.wait_for_paused_hosts(0).await;
    move_between(&there, &here).await;

    // Cut short while objects are deleted: one host has lost all its annotations, others may be gone. From then on that one bears
    // `delete-for-move`, which the repeated move carries over; it is released at the end all the same.
    here.refuse("delete", &one).await;
    let interrupted = Move::start(here.cluster(), there.cluster(), here.namespace());
    here.wait_for_refusal("delete").await;
    interrupted.interrupt().await;
    assert_eq!(there.bare_metal_hosts().await.len(), 4);
    here.accept().await;
    here.pause(false).await;
    move_between(&here, &there).await;
    assert_eq!(here.hosts.all_acts(), acts, "moves do nothing to servers");

    there.delete_cluster().await;
    there.wait_for_free_hosts(4).await;
    there.hosts.check_all_unused();
}

async fn move_between(from: &Site, to: &Site) {
    Move::start(from.cluster(), to.cluster(), from.namespace()).finish().await;
    from.wait_for_no_hosts().await;
    to.wake_data().await;
    to.wait_for_running(1, 2).await;
    to.wait_for_paused_hosts(0).await;
    to.wait_for_free_hosts(1).await;
    to.check_hosts_and_machines().await;
}
