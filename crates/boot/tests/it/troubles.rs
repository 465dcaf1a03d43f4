//! User's servers and images that fail while a BMC reads.

use std::time::Duration;

use boot::ticket::Purpose;
use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use crate::lab::Lab;
use crate::stage::{Stage, ask, holder, images};
use crate::upstream::Manners;

#[tokio::test]
async fn what_is_wrong_with_an_iso_is_reported_and_asked_for_once() {
    for (manners, status, reason) in [
        (Manners { status: Some(404), ..Manners::default() }, StatusCode::BAD_GATEWAY, "IsoNotFound"),
        (Manners { status: Some(500), ..Manners::default() }, StatusCode::SERVICE_UNAVAILABLE, "IsoServerRefused"),
        (Manners { without_ranges: true, ..Manners::default() }, StatusCode::BAD_GATEWAY, "IsoServerWithoutRanges"),
        (Manners::default(), StatusCode::BAD_GATEWAY, "NotAnIso"),
    ] {
        let stage = Stage::new(Bytes::from(vec![7; 100_000])).await;
        stage.upstream.behave(manners);
        for _ in 0..3 {
            let answer = ask("GET", &stage.iso(1), &[]).await.unwrap();
            assert_eq!(answer.status(), status, "{reason}");
            assert_eq!(answer.headers().contains_key("retry-after"), status == StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(stage.registry.reported(), vec![("d1".to_owned(), reason); 3]);
        assert!(stage.upstream.asked() <= 10, "{reason}: a failure is remembered for a moment");
    }
}

#[tokio::test]
async fn an_iso_without_a_boot_loader_that_we_know_is_reported() {
    let lab = Lab::new();
    let iso = lab.put("readme", "nothing to boot").build(&[]);
    let stage = Stage::new(std::fs::read(iso).unwrap().into()).await;
    assert_eq!(ask("GET", &stage.iso(1), &[]).await.unwrap().status(), StatusCode::BAD_GATEWAY);
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "NoKnownBootLoader")]);
}

#[tokio::test]
async fn a_truncated_download_breaks_off_and_is_reported() {
    let (original, _) = images().await;
    let stage = Stage::new(original.clone()).await;
    assert_eq!(ask("HEAD", &stage.iso(1), &[]).await.unwrap().status(), StatusCode::OK);
    stage.upstream.behave(Manners { cut_at: original.len() as u64 / 2, ..Manners::default() });
    assert!(ask("GET", &stage.iso(1), &[]).await.is_none(), "half an image must not look like a whole one");
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "IsoUnreadable")]);
}

#[tokio::test]
async fn a_replaced_iso_is_served_anew_and_never_mixed() {
    let ((first, _), (second, rewritten)) = (images().await, images().await);
    let stage = Stage::new(first).await;
    let url = stage.iso(1);
    let etag = ask("HEAD", &url, &[]).await.unwrap().headers()["etag"].to_str().unwrap().to_owned();
    stage.upstream.replace(second, "\"two\"");
    assert!(ask("GET", &url, &[]).await.is_none());
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "IsoChanged")]);
    let again = ask("GET", &url, &[("range", "bytes=1000000-"), ("if-range", &etag)]).await.unwrap();
    assert_eq!(again.status(), StatusCode::OK, "who had a part of the old one gets all of the new one");
    assert_ne!(again.headers()["etag"], etag.as_str());
    assert!(again.body() == &rewritten);
}

#[tokio::test]
async fn an_iso_that_was_uploaded_by_half_is_reported() {
    let (original, _) = images().await;
    let stage = Stage::new(original.slice(..original.len() / 2)).await;
    assert_eq!(ask("GET", &stage.iso(1), &[]).await.unwrap().status(), StatusCode::BAD_GATEWAY);
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "IsoTruncated")]);
}

#[tokio::test]
async fn preparing_goes_on_when_an_impatient_bmc_has_left() {
    let (original, _) = images().await;
    let stage = Stage::new(original).await;
    stage.upstream.behave(Manners { thinks: Duration::from_millis(200), ..Manners::default() });
    let url = stage.iso(1);
    assert!(tokio::time::timeout(Duration::from_millis(300), ask("HEAD", &url, &[])).await.is_err());
    assert_eq!(ask("HEAD", &url, &[]).await.unwrap().status(), StatusCode::OK);
    assert_eq!(stage.upstream.opened(), 1);
}

#[tokio::test]
async fn a_server_that_has_come_back_is_asked_again_after_a_moment() {
    let (original, _) = images().await;
    let stage = Stage::new(original).await;
    let (status, thinks) = (Some(500), Duration::from_millis(300));
    stage.upstream.behave(Manners { status, thinks, ..Manners::default() });
    let (url, unseen) = (stage.iso(1), stage.links.iso("d3", &stage.key.ticket(Purpose::Iso, &holder(3))).unwrap());
    stage.registry.deploy(3, &format!("{}?other", stage.upstream.url()));
    assert!(tokio::time::timeout(Duration::from_millis(100), ask("HEAD", &unseen, &[])).await.is_err());
    let begun = Instant::now();
    assert_eq!(ask("HEAD", &url, &[]).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    stage.upstream.behave(Manners::default());
    let again = ask("HEAD", &url, &[]).await.unwrap().status();
    // On a busy machine the moment may be over by now.
    assert!(again == StatusCode::SERVICE_UNAVAILABLE || begun.elapsed() > Duration::from_secs(4), "not yet: {again}");
    let served = async {
        while ask("HEAD", &url, &[]).await.unwrap().status() != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), served).await.expect("asked again after a moment");
    assert_eq!(ask("HEAD", &unseen, &[]).await.unwrap().status(), StatusCode::OK);
}
