//! The store as its users see it. What holds for one backend holds for the other.

mod damage;
mod kill;
mod model;
mod on_disk;
mod power;
mod sim;
mod watching;

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;

use super::*;

/// Limits so small that files, copies of the index and clearing away all happen in a short test.
pub(super) const SMALL: Options =
    Options { history: model::LIMITS, segment_bytes: 16 << 10, checkpoint_bytes: 8 << 10, garbage_bytes: 16 << 10 };

/// Opens a folder that was closed a moment ago. A child that another test starts has our files, and with them the lock,
/// until it is its own program.
#[expect(clippy::disallowed_methods, reason = "not everybody who opens a store has a runtime with a timer")]
pub(super) fn reopen(folder: &Path, options: Options) -> Result<Store, OpenError> {
    for _ in 0..1000 {
        match Store::open(folder, options) {
            Err(OpenError::InUse(_)) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened,
        }
    }
    Store::open(folder, options)
}

pub(super) fn text(text: &str) -> Render {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    Box::new(move |_| bytes)
}

pub(super) async fn create(store: &Store, key: &str, value: &str) -> Revision {
    store.write(key, Expect::Absent, Change::Put(text(value))).await.unwrap()
}

pub(super) async fn update(store: &Store, key: &str, was: Revision, value: &str) -> Revision {
    store.write(key, Expect::Revision(was), Change::Put(text(value))).await.unwrap()
}

pub(super) async fn delete(store: &Store, key: &str, was: Revision) -> Revision {
    store.write(key, Expect::Revision(was), Change::Delete(text("gone"))).await.unwrap()
}

pub(super) fn under(prefix: &str) -> Scan<'_> {
    Scan { prefix, after: None, at: None }
}

/// Everything that a scan visits, and the revision that it claims.
pub(super) fn list(store: &Store, scan: Scan<'_>) -> Result<(Vec<Entry>, Revision), StoreError> {
    let mut entries = Vec::new();
    let revision = store.scan(scan, &mut |key, revision, value| {
        entries.push(Entry { key: key.to_owned(), revision, value: value.clone() });
        ControlFlow::Continue(())
    })?;
    Ok((entries, revision))
}

pub(super) fn keys(store: &Store, scan: Scan<'_>) -> Vec<String> {
    list(store, scan).unwrap().0.into_iter().map(|entry| entry.key).collect()
}

#[tokio::test]
async fn a_write_gets_the_next_revision_and_its_bytes_know_it() {
    let store = Store::memory();
    assert_eq!(store.revision(), 1);
    let render: Render = Box::new(|revision| Bytes::from(format!("I am {revision}")));
    assert_eq!(store.write("/a", Expect::Absent, Change::Put(render)).await.unwrap(), 2);
    let entry = store.get("/a").unwrap().unwrap();
    assert_eq!((entry.revision, entry.value), (2, Bytes::from("I am 2")));
    assert_eq!(store.revision(), 2);
}

#[tokio::test]
async fn a_write_that_expects_something_else_learns_what_is_there_and_is_not_rendered() {
    let store = Store::memory();
    let made = create(&store, "/a", "one").await;
    let never = || -> Render { Box::new(|_| panic!("rendered")) };
    let wrong = [
        (Expect::Absent, Change::Put(never())),
        (Expect::Absent, Change::Delete(never())),
        (Expect::Revision(made + 1), Change::Put(never())),
        (Expect::Revision(made - 1), Change::Delete(never())),
    ];
    for (expect, change) in wrong {
        let refused = store.write("/a", expect, change).await;
        let Err(StoreError::Mismatch(Some(found))) = refused else { panic!("{refused:?}") };
        assert_eq!((found.revision, found.value), (made, Bytes::from("one")));
    }
    let refused = store.write("/b", Expect::Revision(made), Change::Put(never())).await;
    assert!(matches!(refused, Err(StoreError::Mismatch(None))), "{refused:?}");
    let refused = store.write("/b", Expect::Absent, Change::Delete(never())).await;
    assert!(matches!(refused, Err(StoreError::Mismatch(None))), "{refused:?}");
    assert_eq!(store.revision(), made);
}

#[tokio::test]
async fn a_scan_takes_a_prefix_page_by_page_and_stops_when_told() {
    let store = Store::memory();
    for key in ["/a", "/b/", "/b/1", "/b/2", "/b/3", "/b0", "/c"] {
        create(&store, key, key).await;
    }
    assert_eq!(keys(&store, under("/b/")), ["/b/", "/b/1", "/b/2", "/b/3"]);
    assert_eq!(keys(&store, Scan { after: Some("/b/1"), ..under("/b/") }), ["/b/2", "/b/3"]);
    assert_eq!(keys(&store, Scan { after: Some("/b/10"), ..under("/b/") }), ["/b/2", "/b/3"]);
    assert_eq!(keys(&store, Scan { after: Some("/a"), ..under("/b/") }).len(), 4);
    assert_eq!(keys(&store, Scan { after: Some("/z"), ..under("/b/") }).len(), 0);
    assert_eq!(store.count(under("")).unwrap(), 7);
    let mut seen = 0;
    let stop_at_the_second = &mut |_: &str, _: Revision, _: &Bytes| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert_eq!(store.scan(under("/b/"), stop_at_the_second).unwrap(), 8);
    assert_eq!(seen, 2);
}

#[tokio::test]
async fn pages_of_an_older_revision_are_as_it_was_then() {
    let store = Store::memory();
    let a = create(&store, "/a", "one").await;
    let b = create(&store, "/b", "one").await;
    delete(&store, "/a", a).await;
    update(&store, "/b", b, "two").await;
    create(&store, "/c", "one").await;
    create(&store, "/a", "again").await;
    let (then, revision) = list(&store, Scan { at: Some(b), ..under("/") }).unwrap();
    assert_eq!(revision, b);
    let one = Bytes::from("one");
    assert_eq!(
        then,
        [
            Entry { key: "/a".into(), revision: a, value: one.clone() },
            Entry { key: "/b".into(), revision: b, value: one }
        ]
    );
    assert_eq!(store.count(Scan { at: Some(b), ..under("/") }).unwrap(), 2);
    assert_eq!(keys(&store, Scan { at: Some(b), after: Some("/a"), ..under("/") }), ["/b"]);
}

#[tokio::test]
async fn what_was_compacted_and_what_is_to_come_cannot_be_asked_for() {
    let store = Store::memory_with(Limits { events: 3, least_events: 0, ..Limits::default() });
    for key in ["/a", "/b", "/c", "/d", "/e"] {
        create(&store, key, key).await;
    }
    assert_eq!((store.compacted(), store.revision()), (3, 6));
    let too_old = list(&store, Scan { at: Some(2), ..under("/") });
    assert!(matches!(too_old, Err(StoreError::Compacted { asked: 2, oldest: 3 })), "{too_old:?}");
    assert!(matches!(store.watch("/", 2), Err(StoreError::Compacted { asked: 2, oldest: 3 })));
    assert_eq!(keys(&store, Scan { at: Some(3), ..under("/") }), ["/a", "/b"]);
    let too_new = list(&store, Scan { at: Some(7), ..under("/") });
    assert!(matches!(too_new, Err(StoreError::Future { asked: 7, current: 6 })), "{too_new:?}");
    assert!(matches!(store.watch("/", 7), Err(StoreError::Future { asked: 7, current: 6 })));

    store.compact(5);
    assert_eq!(store.compacted(), 5);
    store.compact(100);
    assert_eq!(store.compacted(), 6);
    assert_eq!(keys(&store, Scan { at: Some(6), ..under("/") }).len(), 5);
}

#[tokio::test]
async fn few_large_events_are_kept_until_they_are_far_too_large() {
    let limits = Limits { events: 100, bytes: 10_000, least_events: 5, most_bytes: 100_000 };
    let store = Store::memory_with(limits);
    let remembered = async |count: usize, size: usize| {
        for _ in 0..count {
            let was = store.get("/a").unwrap().map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
            store.write("/a", was, Change::Put(text(&"x".repeat(size)))).await.unwrap();
        }
        store.revision() - store.compacted()
    };
    assert_eq!(remembered(200, 1).await, 61, "10,000 bytes with the overhead of each");
    assert_eq!(remembered(200, 5_000).await, 5);
    assert_eq!(remembered(200, 60_000).await, 1);
}

#[tokio::test]
async fn a_visitor_may_use_the_store() {
    let store = Store::memory();
    create(&store, "/a", "one").await;
    store
        .scan(under("/"), &mut |key, _, _| {
            assert!(store.get(key).unwrap().is_some());
            assert_eq!(store.count(under("/")).unwrap(), 1);
            ControlFlow::Continue(())
        })
        .unwrap();
}
