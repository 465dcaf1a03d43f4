//! Clusters of Metal3's own provider under the real controllers: Cluster API 1.13, CAPM3 and IPAM claim BareMetalHosts, and
//! nodes are stood in for.

mod fake;
mod manifests;
mod site;

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use testkit::{Cluster, Move};

use fake::FakeHosts;
use site::{Management, Site};

/// Who looks after the BareMetalHosts of a cluster, and the servers behind them.
pub(crate) trait HostSide: Sized {
    /// What the first network interface of every server is called in `status.hardware`.
    const INTERFACE: &'static str;

    /// Brings the definitions of hosts to a cluster and begins to look after those of one namespace, which it makes.
    async fn start(cluster: &'static Cluster) -> Self;

    /// Looks after the same servers from another cluster, in a namespace of the same name.
    async fn start_beside(&self, cluster: &'static Cluster) -> Self;

    fn namespace(&self) -> &str;

    /// Applies so many hosts, `server-0` and so on, and waits until all are available.
    async fn add_hosts(&self, count: usize);

    /// What has been done to servers so far: changes of power, boot order and media.
    fn acts(&self) -> Vec<String>;

    /// Panics if a server was switched off that somebody used, or if one that is free still runs.
    async fn check_servers(&self, free: &[DynamicObject]);
}

#[tokio::test]
async fn a_metal3_cluster_lives_and_dies_under_cluster_api_1_13() {
    Box::pin(lives_and_dies::<FakeHosts>()).await;
}

async fn lives_and_dies<H: HostSide>() {
    let site = Site::<H>::start(7).await;
    site.apply_cluster(3, 2).await;
    site.wait_for_running(3, 2).await;
    site.check_hosts_and_machines().await;

    site.scale_workers(4).await;
    site.wait_for_running(3, 4).await;
    site.check_hosts_and_machines().await;
    let (leaders, workers) = (site.hosts_of(true).await, site.hosts_of(false).await);
    site.scale_workers(2).await;
    site.wait_for_running(3, 2).await;
    site.wait_for_free_hosts(2).await;

    pause_and_unpause(&site).await;

    site.roll_out("walk-2").await;
    site.wait_for_running(3, 2).await;
    site.check_hosts_and_machines().await;
    assert_eq!(site.hosts_of(true).await, leaders, "the control plane takes its own servers again");
    assert!(site.hosts_of(false).await.is_subset(&workers), "and so do the workers");

    site.delete_cluster().await;
    site.wait_for_free_hosts(7).await;
    site.hosts.check_servers(&site.bare_metal_hosts().await).await;
}

/// CAPM3 pauses every host of a paused cluster, and keeps a copy of its status.
async fn pause_and_unpause<H: HostSide>(site: &Site<H>) {
    let used: BTreeSet<String> = &site.hosts_of(true).await | &site.hosts_of(false).await;
    let acts = site.hosts.acts();
    for paused in [true, false] {
        site.pause(paused).await;
        site.wait_for_paused_hosts(if paused { used.len() } else { 0 }).await;
    }
    site.wait_for_running(3, 2).await;
    assert_eq!(site.hosts.acts(), acts, "a pause does nothing to servers");
}

#[tokio::test]
async fn a_metal3_cluster_moves_and_an_interrupted_move_is_repeated_under_cluster_api_1_13() {
    Box::pin(moves_there_and_back::<FakeHosts>()).await;
}

/// The API server on which the cluster began plays its workload cluster to the end.
async fn moves_there_and_back<H: HostSide>() {
    let (here, there) = tokio::join!(Site::<H>::start(3), Management::start());
    let there = here.beside(there).await;
    here.apply_cluster(1, 2).await;
    here.wait_for_running(1, 2).await;
    here.check_hosts_and_machines().await;
    let acts = here.hosts.acts();

    move_between(&here, &there).await;

    // Cut short while objects are created: nothing is deleted before everything was created.
    here.refuse("create", "server-2").await;
    let interrupted = Move::start(there.cluster(), here.cluster(), here.namespace());
    here.wait_for_refusal("create").await;
    interrupted.interrupt().await;
    assert_eq!(there.bare_metal_hosts().await.len(), 3);
    here.accept().await;
    // clusterctl moves no cluster that is paused, and has left this one so.
    there.pause(false).await;
    there.wait_for_paused_hosts(0).await;
    move_between(&there, &here).await;

    // Cut short while objects are deleted: one host has lost all its annotations, others may be gone. From then on that one bears
    // `delete-for-move`, which the repeated move carries over; it is released at the end all the same.
    here.refuse("delete", "server-2").await;
    let interrupted = Move::start(here.cluster(), there.cluster(), here.namespace());
    here.wait_for_refusal("delete").await;
    interrupted.interrupt().await;
    assert_eq!(there.bare_metal_hosts().await.len(), 3);
    here.accept().await;
    here.pause(false).await;
    move_between(&here, &there).await;
    assert_eq!(here.hosts.acts(), acts, "moves do nothing to servers");

    there.delete_cluster().await;
    there.wait_for_free_hosts(3).await;
    there.hosts.check_servers(&there.bare_metal_hosts().await).await;
}

async fn move_between<H: HostSide>(from: &Site<H>, to: &Site<H>) {
    Move::start(from.cluster(), to.cluster(), from.namespace()).finish().await;
    assert_eq!(from.bare_metal_hosts().await.len(), 0, "every host has moved");
    to.wake_data().await;
    to.wait_for_running(1, 2).await;
    to.wait_for_paused_hosts(0).await;
    to.check_hosts_and_machines().await;
}
