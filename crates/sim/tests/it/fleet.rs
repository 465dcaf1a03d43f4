use sim::{Bmc, Fleet, FleetSpec};

use crate::client::Client;

async fn uuid(bmc: &Bmc) -> String {
    let client = Client::new(bmc.clone()).await;
    client.read(&client.system().await).await["UUID"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_fleet_is_mixed_by_weight_and_the_same_every_time() {
    let mix = vec![(sim::personality::generic(), 3), (sim::personality::dell_idrac9(), 1)];
    let spec = FleetSpec { count: 40, mix, prefix: "rack".into(), ..FleetSpec::default() };
    let fleet = Fleet::new(&spec);
    let dells = fleet.bmcs().iter().filter(|b| b.personality().name == "dell-idrac9").count();
    assert_eq!(dells, 10);
    assert_eq!(fleet.bmcs()[7].name(), "rack-007");
    assert_eq!(fleet.get("rack-039").unwrap().name(), "rack-039");
    let again = Fleet::new(&spec);
    assert_eq!(uuid(&fleet.bmcs()[7]).await, uuid(&again.bmcs()[7]).await);
}
