//! Servers that fetch their bootstrap data.

use std::net::Ipv4Addr;

use bytes::Bytes;
use http::StatusCode;
use testkit::fetch_from;

use crate::stage::{Stage, ask};

const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn stage() -> Stage {
    Stage::new(Bytes::new()).await
}

async fn status(url: &str) -> StatusCode {
    ask("GET", url, &[]).await.unwrap().status()
}

#[tokio::test]
async fn a_server_gets_its_own_data_and_may_retry_for_a_quarter_of_an_hour() {
    let stage = stage().await;
    for number in [1, 2] {
        let answer = ask("GET", &stage.config(number), &[]).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["content-type"], "text/cloud-config");
        assert_eq!(answer.body(), &format!("#cloud-config\nhost: host-{number}\n"));
    }
    stage.registry.advance(900);
    assert_eq!(status(&stage.config(1)).await, StatusCode::OK);
    stage.registry.advance(1);
    assert_eq!(status(&stage.config(1)).await, StatusCode::NOT_FOUND);
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "BootstrapDataClosed")]);
}

#[tokio::test]
async fn a_second_address_gets_nothing_and_that_is_told() {
    let stage = stage().await;
    assert_eq!(fetch_from(SECOND, "GET", &stage.config(1), &[]).await.unwrap().status(), StatusCode::OK);
    let refused = ask("GET", &stage.config(1), &[]).await.unwrap();
    assert_eq!((refused.status(), refused.body().as_ref()), (StatusCode::NOT_FOUND, &b"not found\n"[..]));
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "BootstrapDataSecondAddress")]);
    assert_eq!(fetch_from(SECOND, "GET", &stage.config(1), &[]).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_late_secret_does_not_use_up_the_time() {
    let stage = stage().await;
    stage.registry.lose_secret(true);
    assert_eq!(status(&stage.config(1)).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "BootstrapDataUnavailable")]);
    stage.registry.lose_secret(false);
    stage.registry.advance(3600);
    assert_eq!(fetch_from(SECOND, "GET", &stage.config(1), &[]).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_look_at_the_head_does_not_close_the_door_for_the_server() {
    let stage = stage().await;
    let answer = fetch_from(SECOND, "HEAD", &stage.config(1), &[]).await.unwrap();
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(status(&stage.config(1)).await, StatusCode::OK);
}

#[tokio::test]
async fn nobody_gets_the_data_before_the_server_was_powered_on() {
    let stage = stage().await;
    stage.registry.change(1, |delivery| delivery.powered_on = false);
    // Whoever reads the ISO finds the URL in it; the BMC reads it before the server runs.
    assert_eq!(
        fetch_from(SECOND, "GET", &stage.config(1), &[]).await.unwrap().status(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "BootstrapDataTooEarly")]);
    stage.registry.change(1, |delivery| delivery.powered_on = true);
    assert_eq!(status(&stage.config(1)).await, StatusCode::OK, "the early one was not the first");
}

#[tokio::test]
async fn all_ends_at_release() {
    let stage = stage().await;
    let url = stage.config(1);
    assert_eq!(status(&url).await, StatusCode::OK);
    stage.registry.release(1);
    assert_eq!(status(&url).await, StatusCode::NOT_FOUND);
}
