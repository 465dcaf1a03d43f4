//! Where links lead: hosts in front, redirects, pages, compressed answers, and sessions that must be found again.

use std::io::Write as _;
use std::time::Duration;

use bmc::{Bmc, Manner};
use engine::server::{BootOverride, Scope};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::script::{RESET, Reply, SLOT, SYSTEM, Script};

/// The same tree with a host in front of every link and target.
fn absolute(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| match field {
            Value::String(text) if name == "@odata.id" || name == "target" => {
                *text = format!("https://idrac-7.lan{text}");
            }
            _ => absolute(field),
        }),
        Value::Array(items) => items.iter_mut().for_each(absolute),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn links_with_a_host_in_front_are_asked_of_the_bmc_that_gave_them() {
    let script = Script::with(|tree| tree.values_mut().for_each(absolute), |_| None);
    let system = script.system();
    system.look(Scope::Inventory).await.unwrap();
    system.insert_media("http://h/a.iso").await.unwrap();
    system.power_on().await.unwrap();
    assert_eq!(script.count("POST", RESET), 1);
    assert_eq!(script.count("POST", &format!("{SLOT}/Actions/VirtualMedia.InsertMedia")), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_ended_by_whatever_name_the_bmc_calls_itself() {
    let location =
        |reply: Reply| reply.header("location", "https://ilo-cz1234.lan/redfish/v1/SessionService/Sessions/abc/");
    let replies = [
        location(Reply::status(201)),
        Reply::json(201, &json!({"@odata.id": "https://10.1.1.1/redfish/v1/SessionService/Sessions/abc/"})),
        Reply::json(201, &json!({"Id": "abc"})),
    ];
    for reply in replies {
        let script = Script::new(move |asked| {
            (asked.method == "POST" && asked.path.ends_with("/Sessions"))
                .then(|| reply.clone().header("x-auth-token", "t"))
        });
        let client = script.client();
        bmc::RedfishSystem::new(client.clone(), bmc::SystemChoice::Only).look(Scope::Power).await.unwrap();
        client.close().await;
        let last = script.asked().pop().unwrap();
        assert_eq!(last.method, "DELETE");
        assert_eq!(last.path.trim_end_matches('/'), "/redfish/v1/SessionService/Sessions/abc");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_ended_even_while_a_change_hangs() {
    let script = Script::new(|asked| (asked.path == RESET).then(|| Reply::status(204).after(Duration::from_secs(50))));
    let client = script.client();
    let system = bmc::RedfishSystem::new(client.clone(), bmc::SystemChoice::Only);
    system.look(Scope::Power).await.unwrap();
    let begin = Instant::now();
    let (acted, ()) = futures::join!(system.power_on(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.close().await;
        assert!(begin.elapsed() < Duration::from_secs(5));
    });
    acted.unwrap();
    assert_eq!(script.asked().iter().filter(|asked| asked.method == "DELETE").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_sent_on_where_it_was_not_carried_out() {
    let moved = format!("{RESET}/");
    for (status, sent) in [(308, 2), (307, 2), (302, 1)] {
        let there = moved.clone();
        let script = Script::new(move |asked| {
            asked.is("POST", RESET).then(|| Reply::status(status).header("location", there.clone()))
        });
        let _ = script.system().power_on().await;
        assert_eq!(script.changes().len(), sent, "{status}");
    }
    let script = Script::new(|asked| {
        asked.is("POST", RESET).then(|| Reply::status(308).header("location", "https://evil.test/Reset"))
    });
    script.system().power_on().await.unwrap_err();
    assert_eq!(script.changes().len(), 1, "never to another host");
}

#[tokio::test(start_paused = true)]
async fn ilo_keeps_some_answers_compressed_and_in_no_other_form() {
    let body = json!({"@odata.id": SYSTEM, "Id": "1", "PowerState": "On"}).to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(body.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let script = Script::new(move |asked| {
        (asked.path == SYSTEM).then(|| match asked.header("accept-encoding") {
            Some("gzip") => Reply::bytes(200, &packed).header("content-encoding", "gzip"),
            _ => Reply::status(406),
        })
    });
    let seen = script.system().look(Scope::Power).await.unwrap();
    assert_eq!(seen.power, engine::server::PowerState::On);
    assert_eq!(script.count("GET", SYSTEM), 2);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_leads_to_itself_is_read_once() {
    let script = Script::with(
        |tree| {
            tree.get_mut(SYSTEM).unwrap()["Memory"] = json!({"@odata.id": "/m"});
            tree.insert("/m".into(), json!({"Members": [{"@odata.id": "/m/1"}], "Members@odata.nextLink": "/m"}));
            tree.insert("/m/1".into(), json!({"Id": "1", "CapacityMiB": 1024}));
        },
        |_| None,
    );
    let hardware = script.system().look(Scope::Inventory).await.unwrap().hardware.unwrap();
    assert_eq!(hardware.memory_mib, 1024);
    assert_eq!(script.count("GET", "/m"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expand_that_never_ends_is_tried_once() {
    let script = Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["ProtocolFeaturesSupported"] =
                json!({"ExpandQuery": {"NoLinks": true}});
        },
        |asked| asked.path.contains("expand").then(|| Reply::status(200).after(Duration::from_mins(5))),
    );
    script.system().look(Scope::Power).await.unwrap();
    assert_eq!(script.asked().iter().filter(|asked| asked.path.contains("expand")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn huawei_wants_if_match_even_with_an_action() {
    let script = Script::with(
        |tree| tree.get_mut(SYSTEM).unwrap()["@odata.etag"] = json!("W/\"9\""),
        |asked| {
            (asked.method == "POST" && asked.path == RESET && asked.header("if-match").is_none())
                .then(|| Reply::status(412))
        },
    );
    script.system().power_off(Manner::Hard).await.unwrap();
    assert_eq!(script.asked().pop().unwrap().header("if-match"), Some("W/\"9\""));
}

#[tokio::test(start_paused = true)]
async fn what_a_busy_bmc_quotes_of_the_image_is_not_repeated() {
    let image = "http://u:p@h/TICKET/a.iso";
    let script = Script::new(move |asked| {
        let said =
            json!([{"MessageId": "Base.1.8.InsufficientPrivilege", "Message": format!("No access to {image}.")}]);
        asked
            .path
            .ends_with("InsertMedia")
            .then(|| Reply::json(403, &json!({"error": {"@Message.ExtendedInfo": said}})))
    });
    let error = script.system().insert_media(image).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(!told.contains("TICKET") && !told.contains("u:p"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn uefi_http_is_sent_with_its_uri_in_each_shape_and_the_boot_order_is_left_alone() {
    let wish = BootOverride {
        target: engine::server::BootTarget::UefiHttp,
        http_uri: Some("http://h/ipxe.efi".into()),
        ..BootOverride::cd_once(None)
    };
    let sent = json!({"BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideEnabled": "Once", "HttpBootUri": "http://h/ipxe.efi"});
    let mut with_mode = sent.clone();
    with_mode["BootSourceOverrideMode"] = json!("UEFI");
    for (root, expected) in [
        (json!({"Vendor": "Contoso"}), &sent),
        (json!({"Vendor": "HPE"}), &sent),
        (json!({"Oem": {"Supermicro": {}}}), &with_mode),
        (json!({"Vendor": "AMI"}), &with_mode),
    ] {
        let script = Script::with(
            |tree| {
                for (name, value) in root.as_object().unwrap() {
                    tree.get_mut("/redfish/v1").unwrap()[name] = value.clone();
                }
                tree.get_mut(SYSTEM).unwrap()["Boot"]["BootOrder"] = json!(["Boot0001", "Boot0002"]);
            },
            |_| None,
        );
        script.system().set_boot(&wish).await.unwrap();
        let patch = script.asked().into_iter().find(|asked| asked.method == "PATCH").unwrap();
        assert_eq!(patch.body, json!({"Boot": expected}), "{root}");
        assert_eq!(script.changes().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_named_as_a_system_must_be_one() {
    let script = Script::with(
        |tree| tree.get_mut("/redfish/v1/Managers/1").unwrap()["@odata.type"] = json!("#Manager.v1_5_0.Manager"),
        |_| None,
    );
    let choice = bmc::SystemChoice::Named("/redfish/v1/Managers/1".into());
    let error = bmc::RedfishSystem::new(script.client(), choice).power_on().await.unwrap_err();
    assert_eq!(error.kind(), engine::failure::Kind::SystemNotFound);
    assert!(error.to_string().contains("#Manager"), "{error}");
    assert!(script.changes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_override_that_waits_elsewhere_is_not_gone_because_that_cannot_be_read() {
    let settings = "/redfish/v1/Systems/1/Settings";
    let script = Script::with(
        |tree| tree.get_mut(SYSTEM).unwrap()["@Redfish.Settings"] = json!({"SettingsObject": {"@odata.id": settings}}),
        move |asked| (asked.path == settings).then(|| Reply::status(503)),
    );
    assert_eq!(script.system().look(Scope::Boot).await.unwrap_err().kind(), engine::failure::Kind::Busy);
}

#[tokio::test(start_paused = true)]
async fn ilo_adds_a_slash_and_calls_itself_by_its_own_name() {
    let with_slash = |host: &'static str| {
        Script::new(move |asked| {
            let is_bare = asked.method == "GET" && asked.path != "/redfish/v1/" && !asked.path.ends_with('/');
            is_bare.then(|| Reply::status(308).header("location", format!("{host}{}/", asked.path)))
        })
    };
    with_slash("https://ilo-cz1234.lan").system().look(Scope::Inventory).await.unwrap();
    let error = with_slash("http://ilo-cz1234.lan").system().look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), engine::failure::Kind::NotRedfish, "{error}");
}
