//! Several servers behind one BMC, which come, go, and are listed in another order.

use serde_json::{Value, json};
use sim::{Hardware, PowerState, Timing};
use tokio::time::sleep;
use trials::ironcore::{Objects as _, condition_of};
use trials::world::spec;

use super::{BMC, LONG, NODE, Site, quiet_world};

fn server(number: usize) -> String {
    format!("{BMC}-system-{number}")
}

/// Four servers, of which two are there at first, and their UUIDs.
async fn enclosure() -> (Site, Vec<String>) {
    let mut plan = spec(BMC).timing(Timing::INSTANT);
    plan.hardware = (0..4).map(|index| Hardware::invent(&plan.personality, 5, index)).collect();
    let uuids = plan.hardware.iter().map(|hardware| hardware.uuid.to_ascii_lowercase()).collect();
    let site = Site::with(quiet_world().await, plan);
    site.bmc.set_present(&[0, 1]);
    site.start_operator();
    site.add_endpoint().await;
    for number in [0, 1] {
        site.world.until_server(&server(number), "Available").await;
    }
    (site, uuids)
}

impl Site {
    async fn boot_on(&self, number: usize) {
        let spec = json!({ "power": "On", "image": "os", "serverRef": { "name": server(number) } });
        self.claims().make(json!({ "name": NODE }), json!({ "spec": spec })).await;
        self.world.provide(NODE, "Ready").await;
        self.world.until_ready(self.claims(), NODE, "ServerRuns").await;
    }

    /// How often each system was commanded to change its power.
    fn commands(&self) -> Vec<u32> {
        self.bmc.servers().iter().map(|server| server.resets).collect()
    }

    fn powers(&self) -> Vec<PowerState> {
        self.bmc.servers().iter().map(sim::Server::power).collect()
    }

    /// The numbers of the Servers that there are, with the UUIDs that they name.
    async fn known(&self) -> Vec<(usize, String)> {
        let mut known = Vec::new();
        for number in 0..6 {
            let shown = self.servers().show(&server(number)).await;
            if let Some(uuid) = shown["spec"]["systemUUID"].as_str() {
                known.push((number, uuid.to_owned()));
            }
        }
        known
    }
}

const OFF: PowerState = PowerState::Off;
const ON: PowerState = PowerState::On;

#[tokio::test(start_paused = true)]
async fn a_server_keeps_its_number_however_the_bmc_lists_its_systems() {
    let (site, uuids) = enclosure().await;
    let named = |numbers: &[(usize, usize)]| -> Vec<_> {
        numbers.iter().map(|(number, index)| (*number, uuids[*index].clone())).collect()
    };
    site.boot_on(1).await;
    assert_eq!((site.powers(), site.commands()), (vec![OFF, ON, OFF, OFF], vec![0, 1, 0, 0]));

    for is_restarted in [false, true] {
        // In another order.
        site.bmc.set_present(&[1, 0]);
        if is_restarted {
            site.world.kill_operator().await;
            site.start_operator();
        }
        sleep(LONG).await;
        assert_eq!(site.known().await, named(&[(0, 0), (1, 1)]));
        assert_eq!((site.powers(), site.commands()), (vec![OFF, ON, OFF, OFF], vec![0, 1, 0, 0]), "{}", site.told());
        site.bmc.set_present(&[0, 1]);
        sleep(LONG).await;
    }
    site.bmc.set_present(&[1, 0]);
    site.claims().edit(NODE, json!({ "spec": { "power": "Off" } })).await;
    site.world.until_ready(site.claims(), NODE, "PoweredOff").await;
    site.claims().edit(NODE, json!({ "spec": { "power": "On" } })).await;
    site.world.until_ready(site.claims(), NODE, "ServerRuns").await;
    assert_eq!((site.powers(), site.commands()), (vec![OFF, ON, OFF, OFF], vec![0, 3, 0, 0]), "{}", site.told());

    // One more, listed before all others.
    site.bmc.set_present(&[2, 1, 0]);
    site.world.until_server(&server(2), "Available").await;
    assert_eq!(site.known().await, named(&[(0, 0), (1, 1), (2, 2)]));
    // One less, and another one at once: its number is not given to others.
    site.bmc.set_present(&[3, 2, 1]);
    site.world.until_server(&server(3), "Available").await;
    assert_eq!(site.known().await, named(&[(0, 0), (1, 1), (2, 2), (3, 3)]));
    assert_eq!((site.powers(), site.commands()), (vec![OFF, ON, OFF, OFF], vec![0, 3, 0, 0]), "{}", site.told());
}

#[tokio::test(start_paused = true)]
async fn a_system_that_disappears_is_told_and_its_server_stays() {
    let (site, uuids) = enclosure().await;
    site.boot_on(1).await;
    // The one that nobody has.
    site.bmc.set_present(&[1]);
    let told = site.world.until_ready(site.servers(), &server(0), "SystemNotFound").await;
    let message = condition_of(&told, "Ready")["message"].clone();
    assert!(message.as_str().is_some_and(|message| message.contains(&uuids[1])), "it says what there is: {message}");
    site.world.claim_server("late", json!({})).await;
    let told = site.world.until_ready(site.claims(), "late", "NoServer").await;
    let message = condition_of(&told, "Ready")["message"].clone();
    assert!(message.as_str().is_some_and(|message| message.contains("SystemNotFound")), "{message}");
    site.bmc.set_present(&[0, 1]);
    site.until_bound("late").await;
    site.claims().remove("late").await;
    site.world.until_gone(site.claims(), "late").await;

    // The one in use.
    site.bmc.set_present(&[0]);
    let shown = site.world.until_ready(site.servers(), &server(1), "SystemNotFound").await;
    assert_eq!(shown["status"]["state"], "Reserved");
    site.world.until_ready(site.claims(), NODE, "ServerFaulty").await;
    sleep(LONG).await;
    let claim = site.claims().show(NODE).await;
    assert_eq!((&claim["status"]["phase"], &claim["spec"]["serverRef"]["name"]), (&json!("Bound"), &json!(server(1))));
    site.world.kill_operator().await;
    site.start_operator();
    sleep(LONG).await;
    site.bmc.set_present(&[1, 0]);
    let is_well = |claim: &Value| condition_of(claim, "Ready")["reason"] == "ServerRuns";
    site.world.until(site.claims(), NODE, "it is back", is_well).await;
    assert_eq!((site.powers(), site.commands()), (vec![OFF, ON, OFF, OFF], vec![0, 1, 0, 0]), "{}", site.told());

    // All of them, as when an enclosure is being restarted.
    site.bmc.set_present(&[]);
    sleep(LONG).await;
    site.bmc.set_present(&[0, 1]);
    site.world.until(site.claims(), NODE, "it is back", is_well).await;
    site.world.until_ready(site.servers(), &server(0), "Available").await;
    assert_eq!((site.powers(), site.commands()), (vec![OFF, ON, OFF, OFF], vec![0, 1, 0, 0]), "{}", site.told());
    assert_eq!(site.known().await.len(), 2);
}
