//! The API server is away for hours.

use std::time::Duration;

use controllers::leader::Timing;
use controllers::operator::Election;
use trials::gate::Gate;
use trials::outage::Outage;
use trials::world::{EVER, World};

#[tokio::test(start_paused = true)]
async fn a_leader_without_its_api_server_leaves_all_servers_alone_and_goes_on_afterwards() {
    let world = World::quiet_in_process().await;
    let gate = Gate::default();
    let election = Election {
        namespace: world.namespace.clone(),
        lease: "beskar7".into(),
        identity: "only".into(),
        timing: Timing::default(),
    };
    let operator = world.launch(&gate, world.clock(), |config| config.election = Some(election));
    let outage = Outage {
        cut: async |cut| if cut { gate.refuse_api() } else { gate.accept_api() },
        // Long after the lease has run out for everybody, and after the pauses between tries have grown to their longest.
        long: Duration::from_hours(3),
        short: Duration::from_secs(5),
        power_on: Duration::from_secs(40),
        patience: EVER,
    };
    outage.happens_to(&world, operator).await;
}
