//! Manners: retries, lanes, redirects, ETags, tasks; and what is not Redfish at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bmc::{Bmc, Manner};
use engine::failure::Kind;
use engine::server::{BootOverride, Scope};
use serde_json::json;
use tokio::time::Instant;

use crate::script::{RESET, Reply, SLOT, SYSTEM, Script};

/// Answers the first `times` requests that `test` picks with `reply`.
fn first(times: usize, test: impl Fn(&crate::script::Asked) -> bool + Send + Sync + 'static, reply: Reply) -> Script {
    let left = AtomicUsize::new(times);
    Script::new(move |asked| {
        let hit =
            test(asked) && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        hit.then(|| reply.clone())
    })
}

#[tokio::test(start_paused = true)]
async fn reads_are_tried_four_times_and_changes_once() {
    for reply in [
        Reply::status(500),
        Reply::html(502),
        Reply::status(503),
        Reply::status(504),
        Reply::status(429),
        Reply::status(408),
        Reply::dropped(),
        Reply::error(400, "IDRAC.2.8.SYS518"),
    ] {
        let script = first(3, |asked| asked.path == SYSTEM, reply.clone());
        script.system().look(Scope::Power).await.unwrap_or_else(|error| panic!("{reply:?}: {error}"));
        let script = first(4, |asked| asked.path == SYSTEM, reply.clone());
        script.system().look(Scope::Power).await.unwrap_err();
    }
    for (reply, kind) in
        [(Reply::status(500), Kind::BadAnswer), (Reply::html(503), Kind::Busy), (Reply::dropped(), Kind::Unreachable)]
    {
        let script = first(9, |asked| asked.path == RESET, reply);
        assert_eq!(script.system().power_on().await.unwrap_err().kind(), kind);
        assert_eq!(script.count("POST", RESET), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let script = first(1, |asked| asked.path == SYSTEM, Reply::status(503).header("retry-after", "30"));
    let begin = Instant::now();
    script.system().look(Scope::Power).await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_came_too_early_is_repeated() {
    for id in ["IDRAC.2.8.SYS518", "iLO.2.14.UnableToModifyDuringSystemPOST", "Base.1.8.ServiceTemporarilyUnavailable"]
    {
        let script = first(2, |asked| asked.method == "PATCH", Reply::error(400, id));
        script.system().set_boot(&BootOverride::cd_once(None)).await.unwrap();
        assert_eq!(script.count("PATCH", SYSTEM), 3, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_reads_and_one_change_are_in_flight_at_most() {
    let now = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let most = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let (counted, peak) = (now.clone(), most.clone());
    let script = Script::new(move |asked| {
        let lane = usize::from(asked.method != "GET");
        let running = counted[lane].fetch_add(1, Ordering::Relaxed) + 1;
        peak[lane].fetch_max(running, Ordering::Relaxed);
        None
    });
    // The script answers at once; hold each answer back by a service around it.
    let slow = Slow { script: script.clone(), now };
    let endpoint = bmc::Endpoint {
        address: bmc::Address::parse("bmc.test").unwrap(),
        credentials: bmc::Credentials::new("a", "b"),
        family: None,
    };
    let client = bmc::Client::new(endpoint, Arc::new(bmc::InProcess::new(slow)), bmc::Options::default());
    let systems: Vec<_> = (0..6).map(|_| bmc::RedfishSystem::new(client.clone(), bmc::SystemChoice::Only)).collect();
    let looks = systems.iter().map(|system| system.look(Scope::Power));
    let acts = systems.iter().map(|system| system.power_off(Manner::Hard));
    let (looks, acts) = futures::join!(futures::future::join_all(looks), futures::future::join_all(acts));
    assert!(looks.iter().all(Result::is_ok) && acts.iter().all(Result::is_ok));
    assert_eq!(most[0].load(Ordering::Relaxed), 2);
    assert_eq!(most[1].load(Ordering::Relaxed), 1);
    client.close().await;
}

#[derive(Clone)]
struct Slow {
    script: Script,
    now: Arc<[AtomicUsize; 2]>,
}

impl tower_service::Service<http::Request<bytes::Bytes>> for Slow {
    type Response = http::Response<bytes::Bytes>;
    type Error = crate::script::Dropped;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<bytes::Bytes>) -> Self::Future {
        let lane = usize::from(request.method() != "GET");
        let mut this = self.clone();
        Box::pin(async move {
            let answer = this.script.call(request).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            this.now[lane].fetch_sub(1, Ordering::Relaxed);
            answer
        })
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_are_followed_within_the_bmc_only() {
    let script = Script::new(|asked| {
        asked.is("GET", "/redfish/v1/Systems/by-name").then(|| Reply::status(307).header("location", SYSTEM))
    });
    let system =
        bmc::RedfishSystem::new(script.client(), bmc::SystemChoice::Named("/redfish/v1/Systems/by-name".into()));
    system.power_on().await.unwrap();
    assert_eq!(script.changes().len(), 1);

    let script = Script::new(|asked| {
        (asked.path == SYSTEM).then(|| Reply::status(302).header("location", "https://evil.test/redfish/v1?secret"))
    });
    let error = script.system().look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotRedfish);
    assert!(error.to_string().contains("https://evil.test") && !error.to_string().contains("secret"), "{error}");

    let script = Script::new(|asked| (asked.path == SYSTEM).then(|| Reply::status(308).header("location", SYSTEM)));
    assert_eq!(script.system().look(Scope::Power).await.unwrap_err().kind(), Kind::BadAnswer);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_redfish_is_said_to_be_so() {
    let printer = Reply::html(200);
    for reply in [
        printer,
        Reply::html(404),
        Reply::text(400, "Client sent an HTTP request to an HTTPS server."),
        Reply::json(200, &json!({"hello": 1})),
    ] {
        let script = Script::new(move |_| Some(reply.clone()));
        let error = script.system().look(Scope::Power).await.unwrap_err();
        assert_eq!(error.kind(), Kind::NotRedfish, "{error}");
        assert!(error.to_string().contains("https://bmc.test"), "{error}");
        assert!(script.asked().iter().all(|asked| asked.method == "GET"), "no password is sent to a stranger");
    }
}

#[tokio::test(start_paused = true)]
async fn a_root_behind_a_login_is_read_after_the_login() {
    let script = Script::new(|asked| {
        (asked.method == "GET" && asked.header("x-auth-token").is_none()).then(|| Reply::status(401))
    });
    script.system().look(Scope::Power).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_patch_carries_the_etag_of_the_last_read_and_a_post_none() {
    let script = Script::with(|tree| tree.get_mut(SYSTEM).unwrap()["@odata.etag"] = json!("W/\"17\""), |_| None);
    let system = script.system();
    system.look(Scope::Power).await.unwrap();
    script.forget();
    system.set_boot(&BootOverride::cd_once(None)).await.unwrap();
    system.power_on().await.unwrap();
    let asked = script.asked();
    assert_eq!(asked.len(), 2, "no read in between");
    assert_eq!(asked[0].header("if-match"), Some("W/\"17\""));
    assert_eq!(asked[1].header("if-match"), None);
}

#[tokio::test(start_paused = true)]
async fn the_412_ladder_finds_the_form_that_a_bmc_takes() {
    // What is taken, and how many PATCHes it costs.
    for (taken, patches) in [(Some("\"17\""), 2), (None, 3), (Some("*"), 4)] {
        let script = Script::with(
            |tree| tree.get_mut(SYSTEM).unwrap()["@odata.etag"] = json!("W/\"17\""),
            move |asked| (asked.method == "PATCH" && asked.header("if-match") != taken).then(|| Reply::status(412)),
        );
        script.system().set_boot(&BootOverride::cd_once(None)).await.unwrap();
        assert_eq!(script.count("PATCH", SYSTEM), patches, "{taken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_followed_to_their_end_and_forgotten_ones_do_not_hang() {
    let monitor = "/redfish/v1/TaskService/TaskMonitors/7";
    let insert = format!("{SLOT}/Actions/VirtualMedia.InsertMedia");
    let accepted = move || Reply::status(202).header("location", monitor).header("retry-after", "1");
    let task = |state: &str| {
        Reply::json(200, &json!({"TaskState": state, "Messages": [{"Message": "RAC0904: no such share."}]}))
    };
    for (answer, expected) in [
        (task("Completed"), None),
        (Reply::status(204), None),
        (task("Exception"), Some(Kind::MediaRefused)),
        (Reply::error(404, "Base.1.8.ResourceMissingAtURI"), None),
        (Reply::status(202), None),
        (task("Running"), None),
        (Reply::error(400, "Base.1.8.GeneralError"), Some(Kind::MediaRefused)),
    ] {
        let (path, reply) = (insert.clone(), answer.clone());
        let script = Script::new(move |asked| match asked.path.as_str() {
            _ if asked.is("POST", &path) => Some(accepted()),
            p if p == monitor => Some(reply.clone()),
            _ => None,
        });
        let begin = Instant::now();
        let outcome = script.system().insert_media("http://h/a.iso").await;
        assert_eq!(outcome.as_ref().err().map(bmc::Error::kind), expected, "{answer:?}: {outcome:?}");
        assert!(begin.elapsed() < Duration::from_secs(70));
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_turned_and_broken_members_left_out() {
    let member = |number: usize| format!("/redfish/v1/Systems/1/Processors/{number}");
    let script = Script::with(
        |tree| {
            tree.get_mut(SYSTEM).unwrap()["Processors"] = json!({"@odata.id": "/redfish/v1/Systems/1/Processors"});
            let link = |number: usize| json!({"@odata.id": member(number)});
            tree.insert(
                "/redfish/v1/Systems/1/Processors".into(),
                json!({"Members": [link(1), link(2), null, {}], "Members@odata.nextLink": "/redfish/v1/page2"}),
            );
            tree.insert(
                "/redfish/v1/page2".into(),
                json!({"Members": [link(3)], "Members@odata.nextLink": "/redfish/v1/page2"}),
            );
            for number in [1, 3] {
                tree.insert(
                    member(number),
                    json!({"Id": number.to_string(), "TotalCores": "8", "MaxSpeedMHz": null, "Status": "odd"}),
                );
            }
        },
        |_| None,
    );
    let seen = script.system().look(Scope::Inventory).await.unwrap();
    let hardware = seen.hardware.unwrap();
    let mut ids: Vec<&str> = hardware.processors.iter().map(|processor| processor.id.as_str()).collect();
    ids.dedup();
    assert_eq!(ids, ["1", "3"]);
    assert_eq!(hardware.processors[0].cores, Some(8));
}

#[tokio::test(start_paused = true)]
async fn an_announced_expand_that_does_not_work_is_noticed_once() {
    let expands = |tree: &mut std::collections::BTreeMap<String, serde_json::Value>| {
        tree.get_mut("/redfish/v1").unwrap()["ProtocolFeaturesSupported"] =
            json!({"ExpandQuery": {"NoLinks": true, "Levels": true}});
    };
    // It is ignored, or it is refused; a failure gets a second chance.
    let ignoring = Script::with(expands, |_| None);
    let answering =
        |status: u16| Script::with(expands, move |asked| asked.path.contains("$expand").then(|| Reply::status(status)));
    for (script, tries) in
        [(ignoring, 1), (answering(400), 1), (answering(404), 1), (answering(501), 1), (answering(500), 2)]
    {
        let system = script.system();
        for _ in 0..3 {
            system.look(Scope::Boot).await.unwrap();
        }
        assert_eq!(script.asked().iter().filter(|asked| asked.path.contains("$expand")).count(), tries);
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_of_every_request() {
    #[derive(Default)]
    struct Ears(std::sync::Mutex<Vec<String>>);
    impl bmc::Observer for Ears {
        fn request(&self, method: &http::Method, outcome: &'static str, status: Option<u16>, _: Duration) {
            self.0.lock().unwrap().push(format!("{method} {outcome} {}", status.unwrap_or(0)));
        }
    }
    let ears = Arc::new(Ears::default());
    let script = first(1, |asked| asked.path == SYSTEM, Reply::dropped());
    let endpoint = bmc::Endpoint {
        address: bmc::Address::parse("bmc.test").unwrap(),
        credentials: bmc::Credentials::new("a", "b"),
        family: None,
    };
    let client = bmc::Client::new(
        endpoint,
        Arc::new(bmc::InProcess::new(script)),
        bmc::Options { observer: ears.clone(), seed: 7 },
    );
    bmc::RedfishSystem::new(client.clone(), bmc::SystemChoice::Only).look(Scope::Power).await.unwrap();
    client.close().await;
    let heard = ears.0.lock().unwrap().clone();
    assert_eq!(heard, ["GET ok 200", "POST ok 201", "GET ok 200", "GET unreachable 0", "GET ok 200", "DELETE ok 204"]);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_sends_nothing_and_then_one_question_for_the_root() {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let down = is_down.clone();
    let script = Script::new(move |_| down.load(Ordering::Relaxed).then(|| Reply::html(503)));
    let system = script.system();
    system.look(Scope::Power).await.unwrap();
    is_down.store(true, Ordering::Relaxed);
    assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::Busy, "four tries");
    assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::Busy, "the fifth failure opens it");
    script.forget();
    let error = system.power_on().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Busy);
    assert!(error.to_string().contains("503"), "what it said last: {error}");
    assert!(script.asked().is_empty());

    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(system.power_on().await.unwrap_err().kind(), Kind::Busy);
    assert_eq!(script.asked().len(), 1, "one harmless question");
    assert!(script.asked()[0].is("GET", "/redfish/v1/"));

    is_down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(80)).await;
    system.power_on().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_a_bmc_failed_over_is_not_sent_again() {
    for reply in [Reply::error(503, "Base.1.8.ServiceTemporarilyUnavailable"), Reply::html(502), Reply::status(504)] {
        let script = Script::with(
            |tree| tree.get_mut(SYSTEM).unwrap()["PowerState"] = json!("On"),
            move |asked| (asked.path == RESET).then(|| reply.clone()),
        );
        script.system().restart(Manner::Hard).await.unwrap_err();
        assert_eq!(script.count("POST", RESET), 1);
    }
}
