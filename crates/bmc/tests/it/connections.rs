//! Connections, with real sockets and therefore in real time: few of them, and what becomes of a change when one breaks.

use std::sync::Arc;
use std::time::Duration;

use bmc::{
    Address, Bmc, Client, Credentials, Endpoint, Https, Manner, Options, RedfishSystem, SystemChoice, Transport as _,
    Trust,
};
use bytes::Bytes;
use engine::failure::Kind;
use engine::server::{BootOverride, Scope};
use sim::{BmcSpec, Effect, Personality, PowerState, Timing};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::captures::recording;

/// A BMC behind a socket, and a client of it.
struct Site {
    bmc: sim::Bmc,
    endpoint: sim::Endpoint,
    client: Arc<Client>,
    system: RedfishSystem,
    _stop: DropGuard,
}

async fn site(bmc: sim::Bmc) -> Site {
    let stop = CancellationToken::new();
    let loopback = "127.0.0.1:0".parse().unwrap();
    let endpoint = sim::Endpoint::open(bmc.clone(), loopback, true, &TaskTracker::new(), &stop).await.unwrap();
    let address = Address::parse(&endpoint.url()).unwrap();
    let transport = Https::new(&address, &Trust::Anything).unwrap();
    let credentials = Credentials::new("admin", "password");
    let whom = Endpoint { address, credentials, family: None };
    let client = Client::new(whom, Arc::new(transport), Options::default());
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    Site { bmc, endpoint, client, system, _stop: stop.drop_guard() }
}

fn running(personality: Personality) -> sim::Bmc {
    sim::Bmc::new(BmcSpec::new(personality).timing(Timing::INSTANT).power(PowerState::On))
}

#[tokio::test]
async fn an_action_is_sent_once_when_the_connection_drops_before_the_answer() {
    let site = site(running(sim::personality::generic())).await;
    site.system.look(Scope::Power).await.unwrap();
    let resets = site.bmc.first().resets;
    site.bmc.faults().add(Effect::DropAnswer.always().kind(sim::Kind::Reset));
    let error = site.system.restart(Manner::Hard).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
    assert!(error.to_string().contains("shows whether it took effect"), "{error}");
    assert_eq!(site.bmc.first().resets - resets, 1);
    assert_eq!(site.bmc.journal().len(), 1);
    site.client.close().await;
}

#[tokio::test]
async fn a_broken_patch_is_not_repeated_either() {
    let site = site(running(sim::personality::generic())).await;
    site.system.look(Scope::Power).await.unwrap();
    site.bmc.faults().add(Effect::DropAnswer.always().method(sim::Verb::Patch));
    site.system.set_boot(&BootOverride::cd_once(None)).await.unwrap_err();
    assert_eq!(site.bmc.journal().len(), 1);
    site.client.close().await;
}

#[tokio::test]
async fn a_change_does_not_go_over_a_connection_that_a_bmc_has_forgotten() {
    let mut personality = sim::personality::hpe_ilo5();
    personality.login.forgets_connections = Some(Duration::from_millis(1200));
    let site = site(running(personality)).await;
    site.system.look(Scope::Power).await.unwrap();
    let resets = site.bmc.first().resets;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    site.system.restart(Manner::Hard).await.unwrap();
    assert_eq!(site.bmc.first().resets - resets, 1);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    site.system.look(Scope::Power).await.unwrap();
    site.client.close().await;
    assert_eq!(site.bmc.sessions_open(), 0);
}

#[tokio::test]
async fn a_registration_takes_two_handshakes_at_most_and_a_look_at_rest_none() {
    let built = Personality::all().into_iter().map(running);
    let recorded = ["dell-r750-idrac9", "hpe-dl385-ilo5", "openbmc-stock"].into_iter().filter_map(recording);
    let recorded = recorded.map(|tree| {
        let spec = BmcSpec::new(tree.personality());
        sim::Bmc::replay(tree, spec)
    });
    for bmc in built.chain(recorded) {
        let site = site(bmc).await;
        let name = site.bmc.name().to_owned();
        site.system.look(Scope::Inventory).await.unwrap();
        let registered = site.endpoint.connections();
        assert!(registered <= 2, "{name}: {registered} handshakes to register");
        // The spare one has gone by then.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        site.system.look(Scope::Power).await.unwrap();
        site.system.look(Scope::Power).await.unwrap();
        assert_eq!(site.endpoint.connections(), registered, "{name}: a handshake at rest");
        site.client.close().await;
    }
}

/// Answers one request as a server does that keeps connections.
async fn answer_once(socket: &mut TcpStream) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        assert_ne!(socket.read_buf(&mut asked).await.unwrap(), 0, "closed before all was asked");
    }
    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
}

/// Waits until the other side closes; fails when it says something instead, or nothing for seconds.
async fn is_closed(socket: &mut TcpStream) {
    let end = tokio::time::timeout(Duration::from_secs(5), socket.read(&mut [0])).await;
    assert!(matches!(end, Ok(Ok(0))), "not closed: {end:?}");
}

#[tokio::test]
async fn a_connection_at_rest_ends_with_the_bmc_or_the_client_and_serves_until_then() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let transport = Https::new(&Address::parse(&url).unwrap(), &Trust::Anything).unwrap();
    let ask = || transport.send(http::Request::get(format!("{url}/redfish/v1/")).body(Bytes::new()).unwrap());

    let accept = async || listener.accept().await.unwrap().0;
    let (answer, mut first) = futures::join!(ask(), async {
        let mut socket = accept().await;
        answer_once(&mut socket).await;
        socket
    });
    assert_eq!(answer.unwrap().body().as_ref(), b"{}");
    let (answer, ()) = futures::join!(ask(), answer_once(&mut first));
    answer.unwrap();

    // The BMC has waited long enough for a request.
    first.shutdown().await.unwrap();
    is_closed(&mut first).await;
    let (answer, mut second) = futures::join!(ask(), async {
        let mut socket = accept().await;
        answer_once(&mut socket).await;
        socket
    });
    answer.unwrap();

    // A host that is deleted.
    drop(transport);
    is_closed(&mut second).await;
}
