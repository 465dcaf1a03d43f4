//! Orders that do not go smoothly, and the whole way on every vendor's BMC.

use std::time::Duration;

use api::beskar7::{HardwareDetails, PhysicalHost};
use futures::future::join_all;
use serde_json::json;
use sim::personality::MediaRules;
use sim::{BootSource, Effect, Enabled, Hardware, Kind, Personality, PowerState, Timing};
use testkit::wait_for;
use trials::story::{HOST, ISO, resets, running_bmc, runs, sentence, unclaimed, waits_for, world_with};
use trials::world::{EVER, World, claim, condition, fault_of, state_of};

/// The only scheme that all of them take.
const HTTPS_ISO: &str = "https://images.test/os.iso";

/// Registers a server of each vendor, all at once, and goes on with each: `story` gets the vendor's name, its world, its BMC and the
/// inventory that was read.
async fn for_every_vendor(power: PowerState, story: impl AsyncFn(&'static str, World, sim::Bmc, HardwareDetails)) {
    let first = World::quiet_in_process().await;
    let lives = Personality::all().into_iter().map(async |personality| {
        let vendor = personality.name;
        let world = first.beside().await;
        world.start_operator();
        let mut plan = sim::BmcSpec::new(personality);
        plan.hardware = vec![Hardware::invent(&plan.personality, 41, 0)];
        let timing = Timing { power_on: Duration::from_millis(300), post: Duration::from_secs(1), ..Timing::INSTANT };
        let bmc = sim::Bmc::new(plan.timing(timing).power(power));
        world.register(&bmc, json!({})).await;
        let host = world.wait_for_state(HOST, "Available").await;
        let hardware = host.status.unwrap().hardware_details.unwrap().unpack();
        story(vendor, world, bmc, hardware).await;
    });
    join_all(lives).await;
}

#[tokio::test(start_paused = true)]
async fn every_vendors_server_is_registered_provisioned_and_released() {
    for_every_vendor(PowerState::On, async |vendor, world, bmc, hardware| {
        assert!(!hardware.processors.is_empty() && !hardware.drives.is_empty(), "{vendor}: {hardware:?}");

        world.patch_spec(HOST, claim("me", HTTPS_ISO)).await;
        let host = world.wait_until(HOST, vendor, |host| state_of(host) == "Provisioned").await;
        assert_eq!(fault_of(&host), None, "{vendor}");
        wait_for(vendor, EVER, async || (runs(&bmc) == Some(BootSource::Cd(HTTPS_ISO.into()))).then_some(())).await;
        assert_eq!((bmc.first().boots, bmc.first().resets), (1, 2), "{vendor}: {:?}", bmc.journal());

        world.patch_spec(HOST, unclaimed()).await;
        world.wait_until(HOST, vendor, |host| state_of(host) == "Available").await;
        let server = bmc.first();
        assert_eq!((server.power(), server.media()), (PowerState::Off, None), "{vendor}");
        assert_ne!(server.boot.enabled, Enabled::Once, "{vendor}");
        assert_eq!((server.boots, server.resets), (1, 3), "{vendor}: {:?}", bmc.journal());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_bmc_refuses_is_told_in_its_words_and_a_corrected_one_is_tried_at_once() {
    let world = World::in_process().await;
    let bmc = running_bmc();
    world.register(&bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
    let refusal = bmc.faults().add(Effect::RefusesMedia("The image server cannot be resolved.".into()).always());
    world.patch_spec(HOST, claim("me", "http://imagse.test/os.iso")).await;
    let host = world.wait_for_fault(HOST, "MediaRefused").await;
    assert_eq!(state_of(&host), "Claimed");
    assert_eq!(condition(&host, "HostProvisioned"), ("False".into(), "MediaRefused".into()));
    let told = sentence(&host, "HostProvisioned");
    assert!(told.contains("The image server cannot be resolved.") && told.contains("imagse.test"), "{told}");
    let tries = bmc.counters().of(sim::Verb::Post, Kind::InsertMedia);

    bmc.faults().remove(refusal);
    assert_eq!(bmc.counters().of(sim::Verb::Post, Kind::InsertMedia), tries, "the same is not tried again at once");
    world.patch_spec(HOST, json!({ "bootIsoSource": ISO })).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((fault_of(&host), runs(&bmc)), (None, Some(BootSource::Cd(ISO.into()))));
    assert_eq!(resets(&bmc), ["ForceOff", "On"]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_takes_images_in_other_ways_says_in_which() {
    let takes = |schemes: &'static [&'static str]| {
        let mut personality = sim::personality::generic();
        personality.media = MediaRules { schemes, lists_protocols: true, ..personality.media };
        personality
    };
    let cases = [
        (takes(&["https"]), ISO, "takes images by https only"),
        (takes(&["http"]), "https://images.test/os.iso", "takes images by http only"),
        (takes(&["nfs", "cifs", "smb"]), ISO, "takes images by nfs, cifs only"),
        // One that lists nothing, but is known.
        (sim::personality::openbmc(), ISO, "https"),
    ];
    let first = World::quiet_in_process().await;
    join_all(cases.map(async |(personality, image, words)| {
        let (world, bmc) = first.beside().await.with(running(personality)).await;
        world.patch_spec(HOST, claim("me", image)).await;
        let host = world.wait_for_fault(HOST, "MediaRefused").await;
        let told = sentence(&host, "HostProvisioned");
        assert!(told.to_lowercase().contains(words), "{told}");
        assert_eq!((bmc.first().boots, bmc.first().media()), (0, None));
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_bmc_swallows_is_a_fault_that_ends_by_itself() {
    let (world, bmc) = world_with(running_bmc()).await;
    let ignored = bmc.faults().add(Effect::IgnoresMedia.always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_fault(HOST, "NotApplied").await;
    assert_eq!(
        sentence(&host, "HostProvisioned"),
        format!(
            "The BMC accepted the image {ISO}, but does not show it in a drive. Check that the BMC can reach the URL."
        )
    );
    bmc.faults().remove(ignored);
    world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((runs(&bmc), bmc.first().boots), (Some(BootSource::Cd(ISO.into())), 1));
}

#[tokio::test(start_paused = true)]
async fn tasks_that_the_bmc_forgets_are_judged_by_what_became_of_them() {
    let soon = Some(Duration::from_millis(300));
    let lives = [(soon, None), (None, soon)].map(async |(media, power)| {
        let mut personality = sim::personality::generic();
        personality.tasks = sim::personality::TaskRules { media, power, ..personality.tasks };
        let plan = sim::BmcSpec::new(personality).timing(Timing::INSTANT).power(PowerState::On);
        let (world, bmc) = world_with(sim::Bmc::new(plan)).await;
        bmc.faults().add(Effect::LosesTasks.always());
        world.patch_spec(HOST, claim("me", ISO)).await;
        world.wait_until(HOST, "provisioned", |host| state_of(host) == "Provisioned").await;
        assert_eq!((runs(&bmc), bmc.first().boots), (Some(BootSource::Cd(ISO.into())), 1));
        assert_eq!(resets(&bmc), ["ForceOff", "On"]);
    });
    join_all(lives).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_leaves_the_override_unused_is_told_about_and_not_cut() {
    let (world, bmc) = world_with(running_bmc()).await;
    let ignores = bmc.faults().add(Effect::KeepsOneTimeBoot.always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_fault(HOST, "BootIgnored").await;
    assert_eq!(state_of(&host), "Provisioning");
    assert!(sentence(&host, "HostProvisioned").contains("shows the boot override as unused"), "{host:?}");
    assert_eq!((bmc.first().boots, resets(&bmc)), (1, vec!["ForceOff".to_owned(), "On".to_owned()]));

    // A changed order is tried at once.
    bmc.faults().remove(ignores);
    world.patch_spec(HOST, json!({ "bootIsoSource": "http://images.test/other.iso" })).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(fault_of(&host), None);
    assert_eq!(runs(&bmc), Some(BootSource::Cd("http://images.test/other.iso".into())));
    assert_eq!(bmc.first().boots, 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_left_the_override_unused_is_restarted_when_its_owner_asks() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::KeepsOneTimeBoot.always().times(1));
    world.patch_spec(HOST, claim("me", ISO)).await;
    world.wait_for_fault(HOST, "BootIgnored").await;
    world.annotate(HOST, "beskar7.io/reboot", Some("now")).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((fault_of(&host), bmc.first().boots), (None, 2));
    assert_eq!(runs(&bmc), Some(BootSource::Cd(ISO.into())));
}

#[tokio::test(start_paused = true)]
async fn a_running_server_is_never_cut_because_its_bmc_goes_on_showing_the_override() {
    let (world, bmc) = world_with(running_bmc()).await;
    let shows = bmc.faults().add(Effect::ShowsUsedOverride.always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_fault(HOST, "BootIgnored").await;
    assert_eq!(state_of(&host), "Provisioning");
    assert_eq!((runs(&bmc), bmc.first().boots), (Some(BootSource::Cd(ISO.into())), 1));
    assert_eq!(resets(&bmc), ["ForceOff", "On"]);
    bmc.faults().remove(shows);
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((fault_of(&host), bmc.first().boots, resets(&bmc).len()), (None, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn an_override_that_is_used_up_for_the_disk_cannot_be_told_from_one_that_was_obeyed() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::IgnoresOneTimeBoot.always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    let said = host.status.unwrap().timeline.into_iter().map(|moment| moment.message).collect::<Vec<_>>();
    assert!(said.contains(&"The server is on and has used the boot override.".to_owned()), "{said:?}");
    assert_eq!((runs(&bmc), bmc.first().boots), (Some(BootSource::Hdd), 1));
}

/// A BMC that keeps every override.
fn stubborn() -> Personality {
    let mut personality = sim::personality::generic();
    personality.boot.once_is_continuous = true;
    personality
}

fn running(personality: Personality) -> sim::Bmc {
    sim::Bmc::new(sim::BmcSpec::new(personality).timing(Timing::INSTANT).power(PowerState::On))
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_tells_nothing_of_a_boot_is_given_time_and_the_host_says_what_it_rests_on() {
    let lives = [false, true].map(async |told| {
        let mut personality = stubborn();
        personality.shape.boot_progress = told;
        let (world, bmc) = world_with(running(personality)).await;
        world.patch_spec(HOST, claim("me", ISO)).await;
        if !told {
            let is_settling = |host: &PhysicalHost| waits_for(host, "SettlingBoot");
            let host = world.wait_until(HOST, "time to boot", is_settling).await;
            assert_eq!(state_of(&host), "Provisioning");
            assert_eq!(condition(&host, "HostProvisioned").0, "False");
        }
        let host = world.wait_for_state(HOST, "Provisioned").await;
        let reason = if told { "Provisioned" } else { "AssumedBooted" };
        assert_eq!(condition(&host, "HostProvisioned"), ("True".into(), reason.into()));
        assert_eq!((runs(&bmc), bmc.first().boots), (Some(BootSource::Cd(ISO.into())), 1));
        if !told {
            let told = sentence(&host, "HostProvisioned");
            assert_eq!(world.wait_for_event("AssumedBooted").await, told);
            world.stop_operator().await;
            world.start_operator();
            world.annotate(HOST, "beskar7.io/inspect", Some("again")).await;
            world.wait_for_event("Inspected").await;
            assert_eq!(sentence(&world.host(HOST).await, "HostProvisioned"), told, "remembered");
        }
    });
    join_all(lives).await;
}

#[tokio::test(start_paused = true)]
async fn an_override_that_the_bmc_keeps_is_turned_to_the_disk_and_a_restart_boots_that() {
    // One takes "once" and keeps it, one knows nothing but "continuous".
    let lives = [&["Disabled", "Once", "Continuous"][..], &["Continuous"]].map(async |words| {
        let mut personality = stubborn();
        personality.boot.enabled = words;
        let (world, bmc) = world_with(running(personality)).await;
        world.patch_spec(HOST, claim("me", ISO)).await;
        let host = world.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(runs(&bmc), Some(BootSource::Cd(ISO.into())));
        let shown = |bmc: &sim::Bmc| (bmc.first().boot.target.clone(), bmc.first().boot.enabled);
        wait_for("the disk", EVER, async || (shown(&bmc) == ("Hdd".into(), Enabled::Continuous)).then_some(())).await;
        assert_eq!((resets(&bmc).join(" ").as_str(), bmc.first().media()), ("ForceOff On", Some(ISO)));
        assert_eq!((fault_of(&host), bmc.first().boots), (None, 1));

        world.annotate(HOST, "beskar7.io/reboot", Some("now")).await;
        world.wait_until(HOST, "a boot from disk", |_| runs(&bmc) == Some(BootSource::Hdd)).await;
        let host = world.host(HOST).await;
        assert_eq!((state_of(&host).as_str(), fault_of(&host)), ("Provisioned", None));

        world.patch_spec(HOST, unclaimed()).await;
        world.wait_for_state(HOST, "Available").await;
        assert_eq!((bmc.first().power(), bmc.first().media()), (PowerState::Off, None));
        assert_eq!(bmc.first().boot.target, "Hdd");
    });
    join_all(lives).await;
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_does_not_let_go_of_the_override_is_told_about_and_the_host_stays_provisioned() {
    let world = World::in_process().await;
    let delays = Timing { post: Duration::from_mins(2), ..Timing::INSTANT };
    let bmc = sim::Bmc::new(sim::BmcSpec::new(stubborn()).timing(delays).power(PowerState::On));
    world.register(&bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
    world.patch_spec(HOST, claim("me", ISO)).await;
    wait_for("the override", EVER, async || (bmc.first().boot.target == "Cd").then_some(())).await;
    bmc.faults().add(Effect::IgnoresBootOverride.always());
    let told = world.wait_for_event("BootOverrideKept").await;
    assert!(told.contains("4 tries"), "{told}");
    let host = world.host(HOST).await;
    assert_eq!((state_of(&host).as_str(), fault_of(&host)), ("Provisioned", None));
    assert_eq!((runs(&bmc), bmc.first().boots), (Some(BootSource::Cd(ISO.into())), 1));
}

#[tokio::test(start_paused = true)]
async fn an_override_that_the_bmc_swallows_is_a_fault_and_the_server_is_not_started() {
    let (world, bmc) = world_with(running_bmc()).await;
    let swallows = bmc.faults().add(Effect::IgnoresBootOverride.always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_fault(HOST, "NotApplied").await;
    assert!(sentence(&host, "HostProvisioned").contains("accepted the boot override"), "{host:?}");
    assert_eq!(resets(&bmc), ["ForceOff"], "nothing is started that would boot the disk");
    bmc.faults().remove(swallows);
    world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(runs(&bmc), Some(BootSource::Cd(ISO.into())));
}

#[tokio::test(start_paused = true)]
async fn what_is_torn_off_in_the_middle_of_an_order_is_done_once_in_the_end() {
    let troubles = [Effect::DropAnswer, Effect::Drop, Effect::Status { code: 503, body: sim::FaultBody::Html }];
    let acts = [Kind::Reset, Kind::InsertMedia, Kind::System];
    let first = World::quiet_in_process().await;
    let lives =
        troubles.into_iter().flat_map(|trouble| acts.map(|act| (trouble.clone(), act))).map(async |(trouble, act)| {
            let (world, bmc) = first.beside().await.with(running_bmc()).await;
            let what = format!("{trouble:?} at {act}");
            let verb = if act == Kind::System { sim::Verb::Patch } else { sim::Verb::Post };
            bmc.faults().add(trouble.always().kind(act).method(verb).times(1));
            world.patch_spec(HOST, claim("me", ISO)).await;
            let host = world.wait_until(HOST, &what, |host| state_of(host) == "Provisioned").await;
            assert_eq!(fault_of(&host), None, "{what}");
            let (boots, resets) = (bmc.first().boots, bmc.first().resets);
            assert_eq!((runs(&bmc), boots, resets), (Some(BootSource::Cd(ISO.into())), 1, 2), "{what}");
        });
    join_all(lives).await;
}

#[tokio::test(start_paused = true)]
async fn every_vendors_server_boots_from_the_network_once_and_is_released() {
    for_every_vendor(PowerState::Off, async |vendor, world, bmc, hardware| {
        assert_eq!(hardware.network_boot, Some(true), "{vendor}");

        let order = json!({ "consumerRef": { "name": "me" }, "networkBoot": { "protocol": "PXE" } });
        world.patch_spec(HOST, order).await;
        let host = world.wait_until(HOST, vendor, |host| state_of(host) == "Provisioned").await;
        assert_eq!(fault_of(&host), None, "{vendor}");
        wait_for(vendor, EVER, async || (runs(&bmc) == Some(BootSource::Pxe)).then_some(())).await;
        assert_eq!((bmc.first().boots, bmc.first().media()), (1, None), "{vendor}: {:?}", bmc.journal());

        // Somebody restarts it: that boots the disk.
        world.annotate(HOST, "beskar7.io/reboot", Some("1")).await;
        wait_for(vendor, EVER, async || (runs(&bmc) == Some(BootSource::Hdd)).then_some(())).await;

        world.patch_spec(HOST, json!({ "consumerRef": null, "networkBoot": null })).await;
        world.wait_until(HOST, vendor, |host| state_of(host) == "Available").await;
        let server = bmc.first();
        assert_eq!(server.power(), PowerState::Off, "{vendor}");
        assert_ne!(server.boot.enabled, Enabled::Once, "{vendor}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_live_system_boots_its_image_again_at_every_start_by_the_operator() {
    let (world, bmc) = world_with(running_bmc()).await;
    let order = json!({ "consumerRef": { "name": "me" }, "bootIsoSource": ISO, "bootEveryStart": true });
    world.patch_spec(HOST, order).await;
    world.wait_for_state(HOST, "Provisioned").await;
    wait_for("the first boot", EVER, async || (runs(&bmc) == Some(BootSource::Cd(ISO.into()))).then_some(())).await;
    let boots = bmc.first().boots;
    world.annotate(HOST, "beskar7.io/reboot", Some("1")).await;
    wait_for("another boot", EVER, async || (bmc.first().boots > boots).then_some(())).await;
    assert_eq!(runs(&bmc), Some(BootSource::Cd(ISO.into())));
    assert_eq!(bmc.first().media(), Some(ISO), "it was not taken from a running system");
}
