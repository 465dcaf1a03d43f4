//! A day in the life of a simulated server, for each vendor; and its bad days.

use std::sync::Arc;
use std::time::Duration;

use bmc::{
    Address, Bmc, Client, Credentials, Endpoint, InProcess, Manner, Options, RedfishSystem, SystemChoice,
    TransportError,
};
use engine::failure::Kind;
use engine::hardware::Part;
use engine::server::{BootMode, BootOverride, BootTarget, Media, Persistence, PowerState, Scope, Seen};
use sim::{BmcSpec, Effect, Personality};

const IMAGE: &str = "https://images.example.com/boot.iso";

struct Lab {
    service: sim::Bmc,
    client: Arc<Client>,
    system: RedfishSystem,
}

fn lab(spec: BmcSpec) -> Lab {
    lab_with(spec, SystemChoice::Only)
}

fn lab_with(spec: BmcSpec, choice: SystemChoice) -> Lab {
    let service = sim::Bmc::new(spec);
    let endpoint = Endpoint {
        address: Address::parse("10.0.0.1").unwrap(),
        credentials: Credentials::new("admin", "password"),
        family: None,
    };
    let transport = InProcess::judging(service.clone(), |error: sim::Dropped| match error {
        sim::Dropped::Refused => TransportError::Connect(error.to_string()),
        sim::Dropped::Reset => TransportError::Broken(error.to_string()),
    });
    let client = Client::new(endpoint, Arc::new(transport), Options::default());
    let system = RedfishSystem::new(client.clone(), choice);
    Lab { service, client, system }
}

impl Lab {
    /// Looks again and again, as the engine does, until it is so.
    async fn until(&self, scope: Scope, what: &str, test: impl Fn(&Seen) -> bool) -> Seen {
        for _ in 0..100 {
            let seen = self.system.look(scope).await.unwrap();
            if test(&seen) {
                return seen;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        panic!("{}: never {what}", self.service.name());
    }

    async fn end(self) {
        self.client.close().await;
        assert_eq!(self.service.sessions_open(), 0, "{}: a session was left", self.service.name());
    }
}

#[tokio::test(start_paused = true)]
async fn every_personality_registers_boots_an_iso_and_is_left_tidy() {
    for personality in Personality::all() {
        let lab = lab(BmcSpec::new(personality));
        let name = lab.service.name().to_owned();
        let system = &lab.system;
        let seen = system.look(Scope::Inventory).await.unwrap();
        let hardware = seen.hardware.unwrap();
        assert!(hardware.serial_number.is_some() && hardware.uuid.is_some(), "{name}: {hardware:?}");
        assert!(hardware.cores() > 0 && hardware.memory_mib > 0 && hardware.disk_bytes() > 0, "{name}: {hardware:?}");
        assert!(!hardware.nics.is_empty() && hardware.bmc.firmware_version.is_some(), "{name}: {hardware:?}");

        // Something is in the drive already, and the server runs.
        system.insert_media("https://images.example.com/old.iso").await.unwrap();
        system.power_on().await.unwrap();
        lab.until(Scope::Power, "on", |seen| seen.power == PowerState::On).await;
        system.power_on().await.unwrap_or_else(|error| panic!("{name}: on when on: {error}"));
        system.power_off(Manner::Soft).await.unwrap();
        system.power_off(Manner::Hard).await.unwrap();
        lab.until(Scope::Power, "off", |seen| seen.power == PowerState::Off).await;
        system.power_off(Manner::Hard).await.unwrap_or_else(|error| panic!("{name}: off when off: {error}"));

        system.insert_media(IMAGE).await.unwrap_or_else(|error| panic!("{name}: insert: {error}"));
        system.set_boot(&BootOverride::cd_once(Some(BootMode::Uefi))).await.unwrap();
        let armed = system.look(Scope::Boot).await.unwrap();
        let boot = armed.boot.unwrap();
        assert_eq!((boot.target, boot.persistence), (BootTarget::Cd, Persistence::Once), "{name}");
        let media = armed.media.unwrap();
        assert!(media.iter().any(|media| media.inserted && media.image.as_deref() == Some(IMAGE)), "{name}: {media:?}");
        system.power_on().await.unwrap();
        lab.until(Scope::Power, "booted", |seen| seen.boot.as_ref().is_some_and(BootOverride::is_clear)).await;
        assert_eq!(lab.service.first().media(), Some(IMAGE), "{name}");
        system.restart(Manner::Hard).await.unwrap_or_else(|error| panic!("{name}: restart: {error}"));

        system.power_off(Manner::Hard).await.unwrap();
        lab.until(Scope::Power, "off", |seen| seen.power == PowerState::Off).await;
        system
            .set_boot(&BootOverride { persistence: Persistence::Continuous, ..BootOverride::cd_once(None) })
            .await
            .unwrap();
        system.clear_boot().await.unwrap_or_else(|error| panic!("{name}: clear: {error}"));
        system.eject_media().await.unwrap_or_else(|error| panic!("{name}: eject: {error}"));
        system.eject_media().await.unwrap_or_else(|error| panic!("{name}: eject nothing: {error}"));
        let tidy = system.look(Scope::Boot).await.unwrap();
        assert!(tidy.boot.unwrap().is_clear(), "{name}");
        assert!(!tidy.media.unwrap().iter().any(Media::is_occupied), "{name}");
        system.restart(Manner::Hard).await.unwrap_or_else(|error| panic!("{name}: restart when off: {error}"));
        lab.until(Scope::Power, "on", |seen| seen.power == PowerState::On).await;
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_personality_boots_a_known_server_from_an_iso_in_8_requests() {
    for personality in Personality::all() {
        let lab = lab(BmcSpec::new(personality));
        lab.system.look(Scope::Inventory).await.unwrap();
        lab.system.look(Scope::Boot).await.unwrap();
        lab.service.reset_counters();
        lab.system.insert_media(IMAGE).await.unwrap();
        lab.system.set_boot(&BootOverride::cd_once(None)).await.unwrap();
        lab.system.look(Scope::Boot).await.unwrap();
        lab.system.power_on().await.unwrap();
        lab.system.look(Scope::Power).await.unwrap();
        let requests = lab.service.counters().total();
        assert!(
            requests <= 8,
            "{}: {requests} {:#?}",
            lab.service.name(),
            lab.service.counters().iter().collect::<Vec<_>>()
        );
        lab.service.reset_counters();
        lab.system.look(Scope::Power).await.unwrap();
        assert_eq!(lab.service.counters().total(), 1);
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_several_systems_is_chosen_by_id_or_uuid() {
    let spec = || BmcSpec::new(sim::personality::generic()).systems(3);
    let lab = lab(spec());
    let error = lab.system.look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SystemAmbiguous);
    let servers = lab.service.servers();
    for server in &servers {
        assert!(error.to_string().contains(&server.id), "{error}");
    }
    lab.end().await;

    let uuid = spec().hardware[1].uuid.to_uppercase();
    for name in [servers[1].id.clone(), uuid, format!("/redfish/v1/Systems/{}", servers[1].id)] {
        let lab = lab_with(spec(), SystemChoice::Named(name));
        lab.system.power_on().await.unwrap();
        tokio::time::sleep(Duration::from_mins(5)).await;
        let powers: Vec<bool> =
            lab.service.servers().iter().map(|server| server.power() == sim::PowerState::On).collect();
        assert_eq!(powers, [false, true, false]);
        lab.end().await;
    }

    let lab = lab_with(spec(), SystemChoice::Named("nine".into()));
    let error = lab.system.look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SystemNotFound);
    assert!(error.to_string().contains("nine") && error.to_string().contains(&servers[0].id), "{error}");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_answer_does_not_repeat_a_change() {
    let lab = lab(BmcSpec::new(sim::personality::generic()));
    lab.system.look(Scope::Power).await.unwrap();
    lab.service.faults().add(Effect::DropAnswer.always().method(sim::Verb::Post).times(1));
    let error = lab.system.restart(Manner::Hard).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
    assert_eq!(lab.service.journal().len(), 1, "sent once");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_lets_a_change_be_repeated() {
    let lab = lab(BmcSpec::new(sim::personality::generic()));
    lab.system.look(Scope::Power).await.unwrap();
    lab.service.faults().add(Effect::Refuse.always().method(sim::Verb::Post).times(2));
    lab.system.power_on().await.unwrap();
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_is_renewed_and_a_full_bmc_says_so() {
    let lab = lab(BmcSpec::new(sim::personality::dell_idrac9()));
    lab.system.look(Scope::Power).await.unwrap();
    lab.service.drop_sessions();
    lab.system.look(Scope::Power).await.unwrap();
    assert_eq!(lab.service.sessions_open(), 1);

    lab.service.drop_sessions();
    lab.service.faults().add(Effect::SessionLimit(0).always());
    let error = lab.system.look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SessionLimit, "{error}");
    let before = lab.service.counters().total();
    assert_eq!(lab.system.look(Scope::Power).await.unwrap_err().kind(), Kind::SessionLimit);
    assert_eq!(lab.service.counters().total(), before, "held back for a minute");
    lab.service.faults().clear();
    tokio::time::sleep(Duration::from_secs(61)).await;
    lab.system.look(Scope::Power).await.unwrap();
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_503_for_minutes_opens_the_breaker_and_recovers() {
    let lab = lab(BmcSpec::new(sim::personality::generic()));
    lab.system.look(Scope::Power).await.unwrap();
    let busy = Effect::Status { code: 503, body: sim::FaultBody::Html };
    lab.service.faults().add(busy.always().lasting(Duration::from_mins(5)));
    let begin = tokio::time::Instant::now();
    let mut kinds = Vec::new();
    for _ in 0..80 {
        match lab.system.look(Scope::Power).await {
            Ok(_) => break,
            Err(error) => kinds.push(error.kind()),
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert!(kinds.iter().all(|kind| *kind == Kind::Busy), "what is said does not change: {kinds:?}");
    assert!(begin.elapsed() < Duration::from_secs(340), "noticed {:?} after it began", begin.elapsed());
    assert!(lab.service.counters().total() < 80, "and it is left alone in between");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_hangs_costs_two_minutes_at_most() {
    let lab = lab(BmcSpec::new(sim::personality::generic()));
    lab.system.look(Scope::Power).await.unwrap();
    lab.service.faults().add(Effect::Hang.always());
    let before = tokio::time::Instant::now();
    let error = lab.system.look(Scope::Power).await.unwrap_err();
    assert!(before.elapsed() <= Duration::from_secs(121), "{:?}", before.elapsed());
    assert_eq!(error.kind(), Kind::Unreachable);
    assert!(error.to_string().contains("120 s") && error.to_string().contains("no answer within 60 s"), "{error}");
    lab.service.faults().clear();
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn lost_tasks_do_not_hang_and_a_refused_image_is_told() {
    for personality in Personality::all() {
        let lab = lab(BmcSpec::new(personality));
        let name = lab.service.name().to_owned();
        lab.service.faults().add(Effect::LosesTasks.always());
        lab.system.insert_media(IMAGE).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        lab.system.eject_media().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        lab.service.faults().clear();
        lab.service.faults().add(Effect::RefusesMedia("Unable to locate the ISO.".into()).always());
        let error = lab.system.insert_media(IMAGE).await.unwrap_err();
        assert_eq!(error.kind(), Kind::MediaRefused, "{name}: {error}");
        assert!(error.to_string().contains("Unable to locate the ISO."), "{name}: {error}");
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_drive_that_shows_the_word_none_is_empty() {
    for personality in Personality::all() {
        let lab = lab(BmcSpec::new(personality));
        let name = lab.service.name().to_owned();
        lab.service.faults().add(Effect::ShowsNone.always());
        let is_empty = |seen: &Seen| !seen.media.iter().flatten().any(Media::is_occupied);
        assert!(is_empty(&lab.system.look(Scope::Boot).await.unwrap()), "{name}");
        lab.system.eject_media().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        lab.system.insert_media(IMAGE).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        lab.until(Scope::Boot, "inserted", |seen| !is_empty(seen)).await;
        lab.system.eject_media().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        lab.until(Scope::Boot, "ejected", is_empty).await;
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_insertion_may_take_two_minutes() {
    for seconds in [75, 120] {
        let lab = lab(BmcSpec::new(sim::personality::generic()));
        let slow = Effect::Latency(Duration::from_secs(seconds));
        lab.service.faults().add(slow.always().kind(sim::Kind::InsertMedia));
        lab.system.insert_media(IMAGE).await.unwrap();
        let drive = lab.until(Scope::Boot, "inserted", |seen| seen.media.iter().flatten().any(|drive| drive.inserted));
        assert!(drive.await.media.unwrap()[0].may_hold(IMAGE));
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_passing_404_is_an_outage_and_no_missing_function() {
    for path in ["/redfish/v1/Systems*", "*/VirtualMedia*"] {
        let lab = lab(BmcSpec::new(sim::personality::generic()));
        lab.system.look(Scope::Boot).await.unwrap();
        let gone = Effect::Status { code: 404, body: sim::FaultBody::Redfish };
        lab.service.faults().add(gone.always().path(path).method(sim::Verb::Get));
        for _ in 0..3 {
            let error = lab.system.look(Scope::Boot).await.unwrap_err();
            assert_eq!(error.kind(), Kind::ResourceMissing, "{path}: {error}");
            assert_eq!(error.kind().class(), engine::failure::Class::Transient);
            assert!(error.kind().is_about_reaching_the_bmc());
        }
        lab.service.faults().clear();
        assert_eq!(lab.system.look(Scope::Boot).await.unwrap().media.unwrap().len(), 1, "{path}");
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_cannot_be_read_is_said_to_be_missing_and_blocks_nothing() {
    let status = |code| Effect::Status { code, body: sim::FaultBody::Html };
    let passing = [Effect::Drop, Effect::Refuse, Effect::Hang];
    // With 200, what comes is no JSON.
    for effect in passing.into_iter().chain([200, 500, 502, 503, 504].map(status)) {
        for (path, part) in [
            ("*/Storage*", Part::Drives),
            ("*/EthernetInterfaces*", Part::Nics),
            ("*/Memory*", Part::Memory),
            ("*/Processors*", Part::Processors),
            ("*/Managers/*", Part::Manager),
            ("*/FirmwareInventory*", Part::Firmware),
        ] {
            let lab = lab(BmcSpec::new(sim::personality::generic()));
            lab.service.faults().add(effect.clone().always().path(path));
            let seen = lab.system.look(Scope::Inventory).await.unwrap_or_else(|error| panic!("{path}: {error}"));
            let hardware = seen.hardware.unwrap();
            assert_eq!(hardware.unread, [part], "{effect:?} {path}");
            assert!(hardware.cores() > 0 && hardware.memory_mib > 0, "{effect:?} {path}: summed up");
            lab.system.look(Scope::Power).await.unwrap();
            lab.service.faults().clear();
            let whole = lab.system.look(Scope::Inventory).await.unwrap().hardware.unwrap();
            assert!(whole.unread.is_empty(), "{path}: {:?}", whole.unread);
            assert_eq!((hardware.cores(), hardware.memory_mib), (whole.cores(), whole.memory_mib), "{effect:?} {path}");
            lab.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_member_that_cannot_be_read_is_counted_by_the_summary() {
    let spec = || {
        let mut spec = BmcSpec::new(sim::personality::openbmc());
        spec.hardware[0].dimms = 4;
        spec
    };
    let whole = lab(spec());
    let truth = whole.system.look(Scope::Inventory).await.unwrap().hardware.unwrap();
    whole.end().await;
    assert!(truth.processors.len() > 1 && truth.memory_modules.len() > 1);
    for code in [404, 500, 503] {
        let lab = lab(spec());
        let fault = Effect::Status { code, body: sim::FaultBody::Redfish }.always();
        let (cpu, module) = (&truth.processors[0].id, &truth.memory_modules[0].id);
        lab.service.faults().add(fault.clone().path(format!("*/Processors/{cpu}")));
        lab.service.faults().add(fault.path(format!("*/Memory/{module}")));
        let hardware = lab.system.look(Scope::Inventory).await.unwrap().hardware.unwrap();
        assert_eq!(hardware.cores(), truth.cores(), "{code}");
        assert_eq!(hardware.memory_mib, truth.memory_mib, "{code}");
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_act_that_was_refused_is_told_from_one_that_may_have_happened() {
    let refused = Effect::Status { code: 400, body: sim::FaultBody::Redfish };
    let unknown = [502, 503, 504].map(|code| Effect::StatusAfter { code, body: sim::FaultBody::Html });
    let table = [(refused, 0), (Effect::DropAnswer, 1)].into_iter().chain(unknown.map(|effect| (effect, 1)));
    for (effect, resets) in table {
        let lab = lab(BmcSpec::new(sim::personality::generic()).power(sim::PowerState::On));
        lab.service.faults().add(effect.clone().always().kind(sim::Kind::Reset));
        let before = lab.service.first().resets;
        let error = lab.system.restart(Manner::Hard).await.unwrap_err();
        assert_eq!(error.was_not_performed(), resets == 0, "{effect:?}: {error}");
        assert_eq!(lab.service.first().resets - before, resets, "{effect:?}: {error}");
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_needs_five_seconds_for_each_answer_is_read_whole() {
    for personality in Personality::all() {
        let name = personality.name;
        let lab = lab(BmcSpec::new(personality));
        lab.service.set_latency(Duration::from_secs(5));
        let hardware = lab.system.look(Scope::Inventory).await.unwrap().hardware.unwrap();
        assert!(hardware.unread.is_empty(), "{name}: {:?}", hardware.unread);
        assert!(!hardware.drives.is_empty() && hardware.cores() > 0, "{name}");
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_during_the_inventory_does_not_look_like_a_server_without_disks() {
    for effect in [Effect::Drop, Effect::Refuse, Effect::Status { code: 503, body: sim::FaultBody::Html }] {
        for after in 4..=8 {
            let lab = lab(BmcSpec::new(sim::personality::hpe_ilo5()));
            lab.service.set_latency(Duration::from_secs(1));
            let outage = async {
                tokio::time::sleep(Duration::from_secs(after)).await;
                lab.service.faults().add(effect.clone().always());
            };
            let (seen, ()) = futures::join!(lab.system.look(Scope::Inventory), outage);
            match seen {
                Ok(seen) => assert!(after > 5 && seen.hardware.unwrap().unread.is_empty(), "after {after} s"),
                Err(error) => assert!(error.kind().is_about_reaching_the_bmc(), "after {after} s: {error}"),
            }
            lab.service.faults().clear();
            tokio::time::sleep(Duration::from_mins(10)).await;
            lab.system.look(Scope::Inventory).await.unwrap();
            lab.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resetting_the_bmc_ends_well_although_it_goes_away() {
    let lab = lab(BmcSpec::new(sim::personality::dell_idrac9()));
    lab.system.look(Scope::Power).await.unwrap();
    lab.system.reset_bmc().await.unwrap();
    lab.client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_drive_that_two_servers_share_is_told_and_never_emptied_for_the_other() {
    for personality in Personality::all() {
        let name = personality.name;
        let is_shared = personality.media.place != sim::personality::MediaPlace::System;
        let ids: Vec<String> = {
            let both = sim::Bmc::new(BmcSpec::new(personality.clone()).systems(2));
            both.servers().iter().map(|server| server.id.clone()).collect()
        };
        let lab = lab_with(BmcSpec::new(personality).systems(2), SystemChoice::Named(ids[0].clone()));
        let second = RedfishSystem::new(lab.client.clone(), SystemChoice::Named(ids[1].clone()));
        let by_uri = SystemChoice::Named(format!("/redfish/v1/Systems/{}", ids[1]));
        let by_uri = RedfishSystem::new(lab.client.clone(), by_uri);
        for system in [&lab.system, &second, &by_uri] {
            assert_eq!(system.look(Scope::Boot).await.unwrap().shares_drives, is_shared, "{name}");
        }
        lab.system.insert_media(IMAGE).await.unwrap();
        lab.until(Scope::Boot, "inserted", |seen| seen.media.iter().flatten().any(Media::is_occupied)).await;
        if is_shared {
            let changes = lab.service.journal().len();
            let error = second.insert_media("https://images.example.com/second.iso").await.unwrap_err();
            assert_eq!(error.kind(), Kind::MediaRefused, "{name}: {error}");
            assert!(error.to_string().contains("several servers"), "{name}: {error}");
            assert_eq!(lab.service.journal().len(), changes, "{name}: nothing was changed");
        }
        lab.end().await;
    }
    let alone = lab(BmcSpec::new(sim::personality::hpe_ilo5()));
    assert!(!alone.system.look(Scope::Boot).await.unwrap().shares_drives);
    alone.end().await;
}

#[tokio::test(start_paused = true)]
async fn two_servers_that_fill_a_shared_drive_at_once_do_not_take_it_from_each_other() {
    let spec = BmcSpec::new(sim::personality::hpe_ilo5()).systems(2);
    let lab = lab_with(spec, SystemChoice::Named("1".into()));
    let second = RedfishSystem::new(lab.client.clone(), SystemChoice::Named("2".into()));
    let (one, two) =
        futures::join!(lab.system.insert_media(IMAGE), second.insert_media("https://images.example.com/b.iso"));
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_utf_8_and_members_that_are_listed_twice_spoil_nothing() {
    for personality in Personality::all() {
        let (name, spec) = (personality.name, BmcSpec::new(personality));
        let plain = lab(spec.clone());
        let expected = plain.system.look(Scope::Inventory).await.unwrap().hardware;
        plain.end().await;
        for effect in [Effect::Garbles, Effect::RepeatsMembers] {
            let lab = lab(spec.clone());
            lab.service.faults().add(effect.clone().always());
            let seen =
                lab.system.look(Scope::Inventory).await.unwrap_or_else(|error| panic!("{name} {effect:?}: {error}"));
            assert_eq!(seen.hardware, expected, "{name} {effect:?}");
            lab.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_uuid_in_the_other_byte_order_is_told_as_it_is() {
    let lab = lab(BmcSpec::new(sim::personality::generic()));
    let before = lab.system.look(Scope::Power).await.unwrap().uuid.unwrap();
    lab.service.faults().add(Effect::TurnsUuid.always());
    let after = lab.system.look(Scope::Power).await.unwrap().uuid.unwrap();
    assert_ne!(before, after);
    assert!(engine::hardware::is_same_uuid(&before, &after), "{before} {after}");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_token_that_a_bmc_quotes_is_not_repeated() {
    let lab = lab(BmcSpec::new(sim::personality::generic()));
    lab.system.look(Scope::Power).await.unwrap();
    for code in [200, 400, 500, 503] {
        let fault = Effect::Status { code, body: sim::FaultBody::Token }.always();
        let fault = lab.service.faults().add(fault.kind(sim::Kind::System));
        let error = lab.system.look(Scope::Power).await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(told.contains("[token]"), "{code}: {told}");
        lab.service.faults().remove(fault);
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_has_managers_only_gets_its_sentence() {
    for code in [404, 405] {
        let lab = lab(BmcSpec::new(sim::personality::generic()));
        let fault = Effect::Status { code, body: sim::FaultBody::Redfish }.always();
        lab.service.faults().add(fault.path("/redfish/v1/Systems"));
        let error = lab.system.look(Scope::Power).await.unwrap_err();
        assert_eq!(error.kind(), Kind::ResourceMissing);
        assert!(error.to_string().contains("lists no system"), "{error}");
        lab.end().await;
    }
}
