//! Logging in: once, with care, and out again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bmc::{Bmc, Credentials, RedfishSystem, SystemChoice};
use engine::failure::Kind;
use engine::server::Scope;

use crate::script::{Asked, Reply, SYSTEM, Script};

const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

fn is_login(asked: &Asked) -> bool {
    asked.is("POST", SESSIONS)
}

#[tokio::test(start_paused = true)]
async fn one_session_serves_all_and_is_ended() {
    let script = Script::new(|_| None);
    let client = script.client();
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    let twin = RedfishSystem::new(client.clone(), SystemChoice::Named("1".into()));
    system.look(Scope::Power).await.unwrap();
    twin.look(Scope::Power).await.unwrap();
    assert_eq!(script.count("POST", SESSIONS), 1);
    let asked = script.asked();
    assert_eq!(asked[0].header("x-auth-token"), None, "the root is open");
    assert_eq!(asked[0].header("authorization"), None);
    assert!(asked[2..].iter().all(|asked| asked.header("x-auth-token") == Some("token-1")));
    assert!(asked.iter().all(|asked| asked.header("odata-version") == Some("4.0")));
    assert!(asked.iter().all(|asked| asked.header("accept-encoding") == Some("identity")));
    client.close().await;
    let last = script.asked().pop().unwrap();
    assert!(last.is("DELETE", "/redfish/v1/SessionService/Sessions/1"));
    assert_eq!(last.header("x-auth-token"), Some("token-1"));
    let before = script.asked().len();
    assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::Internal, "closed is closed");
    assert_eq!(script.asked().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_once_and_never_again() {
    let script = Script::new(|asked| is_login(asked).then(|| Reply::error(401, "Base.1.8.ResourceAtUriUnauthorized")));
    let client = script.client();
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    for _ in 0..3 {
        let error = system.look(Scope::Power).await.unwrap_err();
        assert_eq!(error.kind(), Kind::AuthenticationFailed);
        let told = format!("{error} {error:?}");
        assert!(told.contains("bmc.test") && !told.contains("calvin"), "{told}");
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    let twin = RedfishSystem::new(client, SystemChoice::Only);
    assert_eq!(twin.power_on().await.unwrap_err().kind(), Kind::AuthenticationFailed);
    assert_eq!(script.count("POST", SESSIONS), 1);
    assert_eq!(script.asked().len(), 2, "root and one login");

    let right = script.client_as(Credentials::new("root", "new"));
    assert!(RedfishSystem::new(right, SystemChoice::Only).look(Scope::Power).await.is_err());
    assert_eq!(script.count("POST", SESSIONS), 2, "new credentials, new client, one new try");
}

#[tokio::test(start_paused = true)]
async fn the_owner_may_pardon_credentials_after_a_long_hold() {
    let right = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_right = right.clone();
    let script =
        Script::new(move |asked| (is_login(asked) && !is_right.load(Ordering::Relaxed)).then(|| Reply::status(401)));
    let client = script.client();
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    system.look(Scope::Power).await.unwrap_err();
    client.pardon();
    system.look(Scope::Power).await.unwrap_err();
    assert_eq!(script.count("POST", SESSIONS), 2);
    right.store(true, Ordering::Relaxed);
    system.look(Scope::Power).await.unwrap_err();
    client.pardon();
    system.look(Scope::Power).await.unwrap();
    client.pardon();
    system.look(Scope::Power).await.unwrap();
    assert_eq!(script.count("POST", SESSIONS), 3, "a session that works is kept");
}

#[tokio::test(start_paused = true)]
async fn a_login_that_comes_back_after_the_end_is_ended_too() {
    let script = Script::new(|asked| {
        is_login(asked).then(|| {
            Reply::status(201)
                .header("x-auth-token", "late")
                .header("location", format!("{SESSIONS}/9"))
                .after(Duration::from_secs(40))
        })
    });
    let client = script.client();
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    assert!(tokio::time::timeout(Duration::from_secs(1), system.look(Scope::Power)).await.is_err());
    let begin = tokio::time::Instant::now();
    client.close().await;
    assert!(begin.elapsed() <= Duration::from_secs(20));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(script.count("DELETE", &format!("{SESSIONS}/9")), 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_when_the_client_is_closed_is_not_sent() {
    let script = Script::new(|asked| (asked.path == SYSTEM).then(|| Reply::status(503).after(Duration::from_secs(30))));
    let client = script.client();
    let system = Arc::new(RedfishSystem::new(client.clone(), SystemChoice::Named("1".into())));
    let looks = futures::future::join_all((0..5).map(|_| system.look(Scope::Power)));
    let close = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        client.close().await;
    };
    let (looks, ()) = futures::join!(looks, close);
    assert!(looks.iter().all(Result::is_err));
    assert_eq!(script.count("GET", SYSTEM), 2, "two at a time, and none after the end");
    let last = script.asked().pop().unwrap();
    assert!(last.is("DELETE", &format!("{SESSIONS}/1")));
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_busy_or_hangs_up_is_asked_again_to_end_the_session() {
    for trouble in [Reply::dropped(), Reply::status(503), Reply::status(429)] {
        let ends = AtomicUsize::new(0);
        let script = Script::new(move |asked| {
            let is_first = asked.method == "DELETE" && ends.fetch_add(1, Ordering::Relaxed) == 0;
            is_first.then(|| trouble.clone())
        });
        let client = script.client();
        RedfishSystem::new(client.clone(), SystemChoice::Only).look(Scope::Power).await.unwrap();
        client.close().await;
        assert_eq!(script.count("DELETE", &format!("{SESSIONS}/1")), 2);
    }
    let script = Script::new(|asked| (asked.method == "DELETE").then(|| Reply::status(403)));
    let client = script.client();
    RedfishSystem::new(client.clone(), SystemChoice::Only).look(Scope::Power).await.unwrap();
    client.close().await;
    assert_eq!(script.count("DELETE", &format!("{SESSIONS}/1")), 1, "no is no");
}

#[tokio::test(start_paused = true)]
async fn a_password_that_must_be_changed_gets_its_own_sentence() {
    let script = Script::new(|asked| is_login(asked).then(|| Reply::error(403, "Base.1.8.PasswordChangeRequired")));
    let error = script.system().look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::PasswordChangeRequired);
    // Some let the session in and say it at the first request.
    let script = Script::new(|asked| {
        (asked.header("x-auth-token").is_some() && asked.method == "GET")
            .then(|| Reply::error(403, "Base.1.8.PasswordChangeRequired"))
    });
    let client = script.client();
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::PasswordChangeRequired);
    assert_eq!(script.count("POST", SESSIONS), 1);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn sushy_has_no_sessions_and_gets_basic() {
    for status in [404, 405, 501, 500, 400] {
        let script = Script::new(move |asked| is_login(asked).then(|| Reply::status(status)));
        let system = script.system();
        system.look(Scope::Power).await.unwrap();
        system.look(Scope::Power).await.unwrap();
        assert_eq!(script.count("POST", SESSIONS), 1, "{status}");
        let last = script.asked().pop().unwrap();
        assert_eq!(last.header("authorization"), Some("Basic cm9vdDpjYWx2aW4tMg=="));
        assert_eq!(last.header("x-auth-token"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn sushy_with_a_wrong_password_is_asked_once() {
    let script = Script::new(|asked| match asked.header("authorization") {
        _ if is_login(asked) => Some(Reply::status(405)),
        Some(_) => Some(Reply::status(401).header("www-authenticate", "Basic")),
        None => None,
    });
    let system = script.system();
    for _ in 0..3 {
        assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::AuthenticationFailed);
    }
    assert_eq!(script.asked().iter().filter(|asked| asked.header("authorization").is_some()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_login_without_token_means_basic() {
    let script = Script::new(|asked| is_login(asked).then(|| Reply::status(201)));
    script.system().look(Scope::Power).await.unwrap();
    assert!(script.asked().pop().unwrap().header("authorization").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_renewed_once_and_the_request_repeated() {
    let logins = Arc::new(AtomicUsize::new(0));
    let counted = logins.clone();
    let script = Script::new(move |asked| {
        if is_login(asked) {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            let uri = format!("https://BMC.test{SESSIONS}/{number}");
            return Some(Reply::status(201).header("x-auth-token", format!("token-{number}")).header("location", uri));
        }
        (asked.path == SYSTEM && asked.header("x-auth-token") == Some("token-1")).then(|| Reply::status(401))
    });
    let client = script.client();
    RedfishSystem::new(client.clone(), SystemChoice::Only).look(Scope::Power).await.unwrap();
    assert_eq!(logins.load(Ordering::Relaxed), 2);
    assert_eq!(script.count("GET", SYSTEM), 2);
    client.close().await;
    assert_eq!(script.count("DELETE", &format!("{SESSIONS}/2")), 1, "an absolute Location is understood");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_refuses_every_session_does_not_make_us_loop() {
    let script = Script::new(|asked| (asked.path == SYSTEM).then(|| Reply::status(401)));
    let error = script.system().look(Scope::Power).await.unwrap_err();
    assert_eq!(error.kind(), Kind::BadAnswer);
    assert_eq!(script.count("POST", SESSIONS), 2);
    assert_eq!(script.count("GET", SYSTEM), 2);
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_not_taken_for_an_ended_session() {
    let script = Script::new(|asked| {
        (asked.method == "POST" && !is_login(asked)).then(|| Reply::error(403, "Base.1.8.InsufficientPrivilege"))
    });
    let system = script.system();
    assert_eq!(system.power_on().await.unwrap_err().kind(), Kind::Refused);
    assert_eq!(script.count("POST", SESSIONS), 1);

    // Without a message id it may be either: one new login tells, and from then on it is known.
    let script = Script::new(|asked| (asked.method == "POST" && !is_login(asked)).then(|| Reply::status(403)));
    let system = script.system();
    for _ in 0..3 {
        assert_eq!(system.power_on().await.unwrap_err().kind(), Kind::Refused);
    }
    assert_eq!(script.count("POST", SESSIONS), 2);
    assert_eq!(script.count("DELETE", &format!("{SESSIONS}/1")), 1, "the old session is not left behind");
}

#[tokio::test(start_paused = true)]
async fn idrac_without_a_free_session_is_tried_with_basic_once() {
    let full = || Reply::error(503, "IDRAC.2.8.RAC0218");
    let script = Script::new(move |asked| is_login(asked).then(full));
    script.system().look(Scope::Power).await.unwrap();
    assert!(script.asked().pop().unwrap().header("authorization").is_some());

    let script = Script::new(move |asked| (is_login(asked) || asked.header("authorization").is_some()).then(full));
    let system = script.system();
    assert_eq!(system.look(Scope::Power).await.unwrap_err().kind(), Kind::SessionLimit);
    assert!(script.asked().len() <= 3, "neither is repeated");
}

#[tokio::test(start_paused = true)]
async fn once_a_session_worked_there_is_no_way_back_to_basic() {
    let logins = AtomicUsize::new(0);
    let script = Script::new(move |asked| {
        let is_first = is_login(asked) && logins.fetch_add(1, Ordering::Relaxed) == 0;
        if is_login(asked) && !is_first {
            return Some(Reply::status(404));
        }
        (asked.path == SYSTEM).then(|| Reply::status(401))
    });
    script.system().look(Scope::Power).await.unwrap_err();
    assert!(script.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_login_is_finished_even_when_who_wanted_it_is_gone() {
    let script = Script::new(|asked| {
        is_login(asked).then(|| {
            Reply::status(201)
                .header("x-auth-token", "late")
                .header("location", format!("{SESSIONS}/9"))
                .after(Duration::from_secs(5))
        })
    });
    let client = script.client();
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    let look = tokio::time::timeout(Duration::from_secs(1), system.look(Scope::Power)).await;
    assert!(look.is_err(), "cancelled while the login is under way");
    client.close().await;
    assert_eq!(script.count("DELETE", &format!("{SESSIONS}/9")), 1);
}

#[tokio::test(start_paused = true)]
async fn a_login_whose_answer_was_lost_is_not_repeated() {
    let script = Script::new(|asked| is_login(asked).then(Reply::dropped));
    assert_eq!(script.system().look(Scope::Power).await.unwrap_err().kind(), Kind::Unreachable);
    assert_eq!(script.count("POST", SESSIONS), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_shown_contains_credentials() {
    let script = Script::new(|asked| is_login(asked).then(|| Reply::text(500, "bad password calvin-2")));
    let system = script.system();
    let error = Script::new(|asked| is_login(asked).then(|| Reply::text(503, "bad password calvin-2")))
        .system()
        .look(Scope::Power)
        .await;
    let told = format!("{:?} {}", error, error.as_ref().unwrap_err());
    assert!(told.contains("[password]") && !told.contains("calvin"), "{told}");
    assert!(system.look(Scope::Power).await.is_ok());
    assert!(!format!("{:?}", Credentials::new("root", "calvin-2")).contains("root"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_dropped_ends_its_session() {
    let script = Script::new(|_| None);
    script.system().look(Scope::Power).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(script.count("DELETE", &format!("{SESSIONS}/1")), 1);
}
