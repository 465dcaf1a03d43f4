//! Images on web servers, well-behaved and not.

use std::sync::Arc;
use std::time::Duration;

use boot::fetch::{FetchError, Fetcher, Guard, HttpSource, Patience};
use boot::iso::Source as _;
use bytes::Bytes;
use engine::failure::Class;
use futures::TryStreamExt as _;

use crate::stage::{closed_port, fetcher, impatient};
use crate::upstream::{Manners, Upstream};

fn noise(len: usize) -> Bytes {
    std::iter::repeat_with(|| fastrand::u8(..)).take(len).collect::<Vec<_>>().into()
}

async fn stream(source: &Arc<HttpSource>, range: std::ops::Range<u64>) -> Result<Bytes, FetchError> {
    let chunks: Vec<Bytes> = source.clone().stream(range).try_collect().await?;
    Ok(chunks.concat().into())
}

async fn reason(upstream: &Upstream, manners: Manners) -> (&'static str, Class) {
    upstream.behave(manners);
    let error = fetcher().open(&upstream.url()).await.unwrap_err();
    (error.reason(), error.class())
}

#[tokio::test]
async fn an_image_is_read_at_any_place() {
    let content = noise(1_000_000);
    let upstream = Upstream::start(content.clone()).await;
    let source = Arc::new(fetcher().open(&upstream.url()).await.unwrap());
    assert_eq!(source.size(), 1_000_000);
    for _ in 0..50 {
        let start = fastrand::usize(..content.len());
        let len = fastrand::usize(1..=(content.len() - start).min(100_000));
        let expected = content.slice(start..start + len);
        assert!(source.read_at(start as u64, len).await.unwrap() == expected, "{start} {len}");
        assert!(stream(&source, start as u64..(start + len) as u64).await.unwrap() == expected, "{start} {len}");
    }
    assert_eq!((upstream.opened(), upstream.asked()), (1, 101), "each range is one request");
}

#[tokio::test]
async fn servers_that_cannot_serve_an_image_are_told_apart() {
    let upstream = Upstream::start(noise(1000)).await;
    let status = |status| Manners { status: Some(status), ..Manners::default() };
    assert_eq!(
        reason(&upstream, Manners { without_ranges: true, ..Manners::default() }).await,
        ("IsoServerWithoutRanges", Class::Unsupported)
    );
    assert_eq!(reason(&upstream, status(404)).await, ("IsoNotFound", Class::Rejected));
    assert_eq!(reason(&upstream, status(403)).await, ("IsoServerRefused", Class::Rejected));
    assert_eq!(reason(&upstream, status(500)).await, ("IsoServerRefused", Class::Transient));
    assert_eq!(reason(&upstream, status(503)).await, ("IsoServerRefused", Class::Throttled));
    upstream.behave(Manners { thinks: Duration::from_secs(10), ..Manners::default() });
    let error = impatient().open(&upstream.url()).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("IsoServerUnreachable", Class::Transient));
    let error = fetcher().open(&format!("http://{}/a.iso?signature", closed_port().await)).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("IsoServerUnreachable", Class::Transient));
    assert!(!error.to_string().contains("signature"), "{error}");
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let upstream = Upstream::start(noise(1000)).await;
    let hops = |count: usize| {
        let redirects = (0..count).map(|hop| {
            let from = if hop == 0 { "/image.iso".into() } else { format!("/{hop}") };
            (from, format!("/{}", hop + 1))
        });
        Manners { redirects: redirects.collect(), ..Manners::default() }
    };
    upstream.behave(hops(5));
    let source = fetcher().open(&upstream.url()).await.unwrap();
    let before = upstream.asked();
    source.read_at(10, 10).await.unwrap();
    assert_eq!(upstream.asked() - before, 1, "the way is remembered");
    assert_eq!(reason(&upstream, hops(6)).await, ("IsoRedirectRefused", Class::Rejected));
}

#[tokio::test]
async fn a_signed_redirect_that_has_expired_is_asked_for_again() {
    let content = noise(1000);
    let upstream = Upstream::start(content.clone()).await;
    let leading_to = |place: &str, expired: &[&str]| Manners {
        redirects: [("/image.iso".to_owned(), place.to_owned())].into(),
        expired: expired.iter().map(|path| (*path).to_owned()).collect(),
        ..Manners::default()
    };
    upstream.behave(leading_to("/signed-1", &[]));
    let source = fetcher().open(&upstream.url()).await.unwrap();
    upstream.behave(leading_to("/signed-2", &["/signed-1"]));
    assert_eq!(source.read_at(10, 10).await.unwrap(), content.slice(10..20));
    upstream.behave(leading_to("/signed-2", &["/signed-1", "/signed-2"]));
    assert!(!source.read_at(10, 10).await.unwrap_err().transient);
}

#[tokio::test]
async fn nobody_sends_us_to_forbidden_addresses() {
    let upstream = Upstream::start(noise(1000)).await;
    for location in [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::1]/",
        "http://2852039166/",
        "http://0/",
    ] {
        let redirects = [("/image.iso".to_owned(), location.to_owned())].into();
        let (reason, class) = reason(&upstream, Manners { redirects, ..Manners::default() }).await;
        assert_eq!((reason, class), ("IsoAddressForbidden", Class::Rejected), "{location}");
    }
    // By default loopback is forbidden as well, whatever it is called.
    upstream.behave(Manners::default());
    let asked = upstream.asked();
    let strict = Fetcher::new(Guard::default(), None, Patience::default()).unwrap();
    for host in ["localhost", "127.0.0.1", "2130706433"] {
        let error = strict.open(&format!("http://{host}:{}/", upstream.address.port())).await.unwrap_err();
        assert_eq!(error.reason(), "IsoAddressForbidden", "{host}");
    }
    assert_eq!(upstream.asked(), asked, "nothing was sent");
}

#[tokio::test]
async fn a_replaced_image_is_noticed_whatever_the_server_makes_of_if_range() {
    for ignores_if_range in [false, true] {
        let upstream = Upstream::start(noise(1000)).await;
        upstream.behave(Manners { ignores_if_range, ..Manners::default() });
        let source = Arc::new(fetcher().open(&upstream.url()).await.unwrap());
        upstream.replace(noise(1000), "\"two\"");
        let error = stream(&source, 10..20).await.unwrap_err();
        assert_eq!((error.reason(), error.class()), ("IsoChanged", Class::Transient), "{ignores_if_range}");
    }
    // Without versions, at least the size tells.
    let upstream = Upstream::start(noise(1000)).await;
    upstream.behave(Manners { etag: "", ..Manners::default() });
    let source = Arc::new(fetcher().open(&upstream.url()).await.unwrap());
    assert!(!source.version().is_certain());
    upstream.replace(noise(999), "");
    assert_eq!(stream(&source, 10..20).await.unwrap_err().reason(), "IsoChanged");
}

#[tokio::test]
async fn reading_goes_on_after_a_broken_connection() {
    let content = noise(500_000);
    let upstream = Upstream::start(content.clone()).await;
    let source = Arc::new(fetcher().open(&upstream.url()).await.unwrap());
    upstream.behave(Manners { breaks_after: 200_000, ..Manners::default() });
    assert!(stream(&source, 1..500_000).await.unwrap() == content.slice(1..));
    assert!(source.read_at(1, 499_999).await.unwrap() == content.slice(1..));
}

#[tokio::test]
async fn what_never_comes_is_an_error_that_may_pass_and_what_comes_slowly_is_none() {
    let content = noise(100_000);
    let upstream = Upstream::start(content.clone()).await;
    let source = Arc::new(impatient().open(&upstream.url()).await.unwrap());
    let pausing = |millis| Manners { pauses: Duration::from_millis(millis), ..Manners::default() };
    for manners in [
        Manners { cut_at: 70_000, ..Manners::default() },
        Manners { breaks_after: 0, ..Manners::default() },
        pausing(60_000),
    ] {
        upstream.behave(manners);
        let error = stream(&source, 0..100_000).await.unwrap_err();
        assert_eq!((error.reason(), error.class()), ("IsoUnreadable", Class::Transient), "{error}");
    }
    upstream.behave(pausing(200));
    let source = Arc::new(fetcher().open(&upstream.url()).await.unwrap());
    assert!(stream(&source, 0..100_000).await.unwrap() == content);
}
