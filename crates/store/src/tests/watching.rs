//! Watches.

use std::time::Duration;

use tokio::time::timeout;

use super::*;

/// Whether nothing comes. With paused time this waits for nothing but other tasks.
async fn is_quiet(watch: &mut Watch) -> bool {
    timeout(Duration::from_secs(1), watch.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_watch_hands_out_what_happens_under_its_prefix_and_nothing_else() {
    let store = Store::memory();
    let a = create(&store, "/a/1", "one").await;
    let mut watch = store.watch("/a/", 1).unwrap();
    let event = watch.next().await.unwrap();
    assert_eq!((event.revision, &*event.key, event.before.as_ref(), event.deleted), (a, "/a/1", None, false));
    assert!(is_quiet(&mut watch).await);

    create(&store, "/b/1", "one").await;
    let b = update(&store, "/a/1", a, "two").await;
    delete(&store, "/a/1", b).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event.value, event.before.as_ref()), (&Bytes::from("two"), Some(&Bytes::from("one"))));
    assert_eq!(event.before_revision, a);
    let event = watch.next().await.unwrap();
    assert_eq!((event.deleted, &event.value, event.before.as_ref()), (true, &"gone".into(), Some(&"two".into())));
    assert!(is_quiet(&mut watch).await);
}

#[tokio::test]
async fn a_watch_claims_only_what_it_handed_out_or_skipped() {
    let store = Store::memory();
    let mut watch = store.watch("/a/", 1).unwrap();
    assert_eq!(watch.revision(), 1);
    create(&store, "/b/1", "skipped").await;
    assert_eq!(watch.revision(), 2);
    create(&store, "/a/1", "mine").await;
    create(&store, "/b/2", "skipped").await;
    create(&store, "/a/2", "mine").await;
    create(&store, "/b/3", "skipped").await;
    assert_eq!(watch.revision(), 2);
    watch.next().await.unwrap();
    assert_eq!(watch.revision(), 4);
    watch.next().await.unwrap();
    assert_eq!(watch.revision(), 6);
    assert!(watch.try_next().is_none());
}

#[tokio::test]
async fn a_slow_reader_is_told_that_it_missed_something_and_an_idle_one_is_not() {
    let store = Store::memory_with(Limits { events: 10, least_events: 0, ..Limits::default() });
    let mut slow = store.watch("/a/", 1).unwrap();
    let mut idle = store.watch("/c/", 1).unwrap();
    create(&store, "/a/1", "missed").await;
    for n in 0..20 {
        create(&store, &format!("/b/{n}"), "other").await;
    }
    create(&store, "/c/1", "mine").await;
    let missed = slow.next().await;
    assert!(matches!(missed, Err(StoreError::Compacted { asked: 1, oldest: 13 })), "{missed:?}");
    assert!(matches!(slow.next().await, Err(StoreError::Compacted { .. })), "and stays told");
    assert_eq!(idle.next().await.unwrap().key, "/c/1");
}

#[tokio::test]
async fn a_list_and_a_watch_from_its_revision_miss_and_repeat_nothing() {
    let store = Store::memory();
    let mut seen = Vec::new();
    for n in 0..10 {
        create(&store, &format!("/a/{n}"), "x").await;
    }
    let (listed, revision) = list(&store, under("/a/")).unwrap();
    seen.extend(listed.into_iter().map(|entry| entry.revision));
    for n in 10..20 {
        create(&store, &format!("/a/{n}"), "x").await;
    }
    let mut watch = store.watch("/a/", revision).unwrap();
    while let Some(event) = watch.try_next() {
        seen.push(event.unwrap().revision);
    }
    assert_eq!(seen, (2..=21).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_waiting_watch_can_be_cancelled_and_a_dropped_one_is_forgotten() {
    let store = Store::memory();
    let mut watch = store.watch("/", 1).unwrap();
    assert!(futures::poll!(std::pin::pin!(watch.next())).is_pending());
    create(&store, "/a", "one").await;
    assert!(futures::poll!(std::pin::pin!(watch.next())).is_ready());
    create(&store, "/b", "one").await;
    assert_eq!(watch.next().await.unwrap().key, "/b");
    assert_eq!(store.visible.watching(), 1);
    drop(watch);
    assert_eq!(store.visible.watching(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_watchers_see_every_event_in_order_while_others_write() {
    let store = Store::memory();
    let mut watchers = tokio::task::JoinSet::new();
    for n in 0..50 {
        let mut watch = store.watch(if n % 2 == 0 { "/" } else { "/even/" }, 1).unwrap();
        watchers.spawn(async move {
            let mut last = 1;
            let mut count = 0;
            loop {
                let event = watch.next().await.unwrap();
                assert!(event.revision > last);
                last = event.revision;
                count += 1;
                if event.key == "/even/end" {
                    return (n, count);
                }
            }
        });
    }
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0..250 {
                let side = if n % 2 == 0 { "even" } else { "odd" };
                create(&store, &format!("/{side}/{writer}-{n}"), "x").await;
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    create(&store, "/even/end", "x").await;
    while let Some(watched) = watchers.join_next().await {
        let (n, count) = watched.unwrap();
        assert_eq!(count, if n % 2 == 0 { 1001 } else { 501 });
    }
}
