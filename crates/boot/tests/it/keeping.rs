//! Images that are kept on disk.

use std::time::Duration;

use boot::fetch::Cache;
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::stage::{Stage, ask, images};
use crate::upstream::Manners;

const LIMIT: u64 = 100 * 1024 * 1024;

async fn keeping(content: Bytes) -> (tempfile::TempDir, Stage) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(&folder.path().join("images"), LIMIT).unwrap();
    (folder, Stage::keeping(content, cache).await)
}

/// Lets the time go by after which a server is asked whether its image is still the same.
async fn later() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_image_is_fetched_once_whoever_reads_it_however() {
    let (original, rewritten) = images().await;
    let (_folder, stage) = keeping(original.clone()).await;
    let urls = [stage.iso(1), stage.iso(2)];
    let whole = join_all((0..20).map(|number| ask("GET", &urls[number % 2], &[])));
    let ranges: Vec<_> = (0..40).map(|_| fastrand::usize(..rewritten.len() - 70_000)).collect();
    let parts = join_all(ranges.iter().map(|&start| {
        let url = &urls[start % 2];
        async move { ask("GET", url, &[("range", &format!("bytes={start}-{}", start + 69_999))]).await }
    }));
    let (whole, parts) = tokio::join!(whole, parts);
    for answer in whole {
        assert!(answer.unwrap().body() == &rewritten);
    }
    for (answer, start) in parts.into_iter().zip(ranges) {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT);
        assert!(answer.body() == &rewritten[start..start + 70_000], "{start}");
    }
    // Each deployment asks for a byte to learn the version.
    assert!(stage.upstream.sent() <= original.len() as u64 + 2, "{} of {}", stage.upstream.sent(), original.len());
    assert_eq!(stage.registry.reported(), []);
}

#[tokio::test]
async fn what_is_kept_is_served_while_its_server_is_away() {
    let (original, rewritten) = images().await;
    let (_folder, stage) = keeping(original).await;
    assert!(ask("GET", &stage.iso(1), &[]).await.unwrap().body() == &rewritten);
    stage.upstream.behave(Manners { status: Some(503), ..Manners::default() });
    later().await;
    assert!(ask("GET", &stage.iso(1), &[]).await.unwrap().body() == &rewritten);
}

#[tokio::test]
async fn a_kept_image_that_was_replaced_is_served_anew_and_never_mixed() {
    let ((first, rewritten_first), (second, rewritten)) = (images().await, images().await);
    let (_folder, stage) = keeping(first.clone()).await;
    let url = stage.iso(1);
    let half = format!("bytes=0-{}", first.len() / 2);
    let begun = ask("GET", &url, &[("range", &half)]).await.unwrap();
    assert!(begun.body() == &rewritten_first[..=first.len() / 2]);
    stage.upstream.replace(second, "\"two\"");
    assert!(ask("GET", &url, &[]).await.is_none(), "the second half is of another image");
    assert_eq!(stage.registry.reported(), [("d1".to_owned(), "IsoChanged")]);
    assert!(ask("GET", &url, &[]).await.unwrap().body() == &rewritten);

    let (third, rewritten) = images().await;
    stage.upstream.replace(third, "\"three\"");
    later().await;
    assert!(ask("GET", &url, &[]).await.is_none(), "all of it is on disk, and yet it is not served any more");
    assert!(ask("GET", &url, &[]).await.unwrap().body() == &rewritten);
}

#[tokio::test]
async fn a_reader_who_leaves_takes_nothing_from_the_others() {
    let (original, rewritten) = images().await;
    let (_folder, stage) = keeping(original.clone()).await;
    let url = stage.iso(1);
    assert_eq!(ask("HEAD", &url, &[]).await.unwrap().status(), StatusCode::OK);
    stage.upstream.behave(Manners { pauses: Duration::from_millis(2), ..Manners::default() });
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let mut body = client.request(Request::get(&url).body(Empty::new()).unwrap()).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(rewritten.starts_with(&first));
    let other = ask("GET", &url, &[]);
    drop((body, client));
    assert!(other.await.unwrap().body() == &rewritten);
    assert!(stage.upstream.sent() <= original.len() as u64 + 1, "{}", stage.upstream.sent());
}

#[tokio::test]
async fn a_connection_that_breaks_while_an_image_is_kept_is_taken_up_again() {
    let (original, rewritten) = images().await;
    let (_folder, stage) = keeping(original).await;
    stage.upstream.behave(Manners { breaks_after: 700_000, ..Manners::default() });
    assert!(ask("GET", &stage.iso(1), &[]).await.unwrap().body() == &rewritten);
    assert_eq!(stage.registry.reported(), []);
}

#[tokio::test]
async fn a_truncated_download_breaks_off_for_everybody_and_is_not_kept() {
    let (original, rewritten) = images().await;
    let (_folder, stage) = keeping(original.clone()).await;
    assert_eq!(ask("HEAD", &stage.iso(1), &[]).await.unwrap().status(), StatusCode::OK);
    stage.upstream.behave(Manners { cut_at: original.len() as u64 / 2, ..Manners::default() });
    let url = stage.iso(1);
    for answer in join_all((0..5).map(|_| ask("GET", &url, &[]))).await {
        assert!(answer.is_none(), "half an image must not look like a whole one");
    }
    stage.upstream.behave(Manners::default());
    assert!(ask("GET", &url, &[]).await.unwrap().body() == &rewritten);
}

#[tokio::test]
async fn what_cannot_be_kept_is_served_all_the_same() {
    let (original, rewritten) = images().await;
    let size = original.len() as u64;
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let without_folder = Cache::open(&gone, LIMIT).unwrap();
    std::fs::remove_dir(&gone).unwrap();
    for (what, cache, etag) in [
        ("no folder", without_folder, "\"one\""),
        ("no room", Cache::open(folder.path(), size - 1).unwrap(), "\"one\""),
        ("switched off", Cache::open(&folder.path().join("off"), 0).unwrap(), "\"one\""),
        ("no version", Cache::open(folder.path(), LIMIT).unwrap(), ""),
    ] {
        let stage = Stage::keeping(original.clone(), cache).await;
        stage.upstream.behave(Manners { etag, ..Manners::default() });
        for _ in 0..2 {
            assert!(ask("GET", &stage.iso(1), &[]).await.unwrap().body() == &rewritten, "{what}");
        }
        assert!(stage.upstream.sent() >= 2 * size - 100_000, "{what}: {} bytes", stage.upstream.sent());
    }
    assert!(!folder.path().join("off").exists());
}
