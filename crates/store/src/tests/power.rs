//! The power goes at any moment; what was acknowledged is there when it is back.

use std::collections::BTreeMap;

use super::sim::Disk;
use super::*;

type State = BTreeMap<String, (Revision, Bytes)>;

fn state(store: &Store) -> State {
    list(store, under("")).unwrap().0.into_iter().map(|entry| (entry.key, (entry.revision, entry.value))).collect()
}

/// One after the other: the store is exactly as after the last acknowledged write, or as after the one under way.
async fn one_writer(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disk = Disk::default();
    let mut known = State::new();
    let mut revision = 1;
    for _ in 0..6 {
        disk.lose_power_after(random.u64(0..150));
        let mut under_way = known.clone();
        if let Ok(store) = disk.open(SMALL) {
            while disk.has_power() {
                let key = format!("/{}", random.u8(0..12));
                let found = known.get(&key).map(|(revision, _)| *revision);
                let expect = found.map_or(Expect::Absent, Expect::Revision);
                let value = Bytes::from(vec![b'x'; random.usize(0..3000)]);
                let next = revision + 1;
                let rendered = value.clone();
                let render: Render = Box::new(move |revision| {
                    assert_eq!(revision, next);
                    rendered
                });
                under_way = known.clone();
                let change = if found.is_some() && random.u8(0..3) == 0 {
                    under_way.remove(&key);
                    Change::Delete(render)
                } else {
                    under_way.insert(key.clone(), (next, value));
                    Change::Put(render)
                };
                if store.write(&key, expect, change).await.is_ok() {
                    known = under_way.clone();
                    revision = next;
                }
            }
        }
        disk = disk.after_power_cut(&mut random);
        let store = disk.clone().open(SMALL).unwrap_or_else(|trouble| panic!("seed {seed}: {trouble:?}"));
        let found = state(&store);
        assert!(store.revision() == revision || store.revision() == revision + 1, "seed {seed}");
        assert!(found == if store.revision() == revision { known } else { under_way }, "seed {seed}");
        known = found;
        revision = store.revision();
    }
}

/// Many at once: all that were acknowledged are there, and no revision is there twice.
async fn many_writers(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disk = Disk::default();
    let mut acknowledged = State::new();
    for round in 0..3 {
        disk.lose_power_after(random.u64(0..120));
        if let Ok(store) = disk.open(SMALL) {
            for burst in 0.. {
                let writes = (0..random.usize(1..12)).map(|n| {
                    let key = format!("/{round}/{burst}/{n}");
                    let value = Bytes::from(vec![b'x'; random.usize(0..2000)]);
                    let store = &store;
                    async move {
                        let rendered = value.clone();
                        let render: Render = Box::new(move |_| rendered);
                        let written = store.write(&key, Expect::Absent, Change::Put(render)).await;
                        written.ok().map(|revision| (key, (revision, value)))
                    }
                });
                acknowledged.extend(futures::future::join_all(writes).await.into_iter().flatten());
                if !disk.has_power() {
                    break;
                }
            }
        }
        disk = disk.after_power_cut(&mut random);
        let store = disk.open(SMALL).unwrap_or_else(|trouble| panic!("seed {seed}: {trouble:?}"));
        let found = state(&store);
        for (key, value) in &acknowledged {
            assert!(found.get(key) == Some(value), "seed {seed}: {key} is lost");
        }
        let mut revisions: Vec<_> = found.values().map(|(revision, _)| *revision).collect();
        revisions.sort_unstable();
        assert_eq!(revisions, (2..=store.revision()).collect::<Vec<_>>(), "seed {seed}: nothing is deleted here");
    }
}

fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("BESKAR7_POWER_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(25);
    0..count
}

#[test]
fn no_acknowledged_write_is_lost_with_the_power() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for seed in seeds() {
        runtime.block_on(one_writer(seed));
        runtime.block_on(many_writers(seed));
    }
}

/// The disk is full now and then, and then the power goes: what was refused does not come back.
#[test]
fn what_a_full_disk_refused_stays_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for seed in seeds() {
        runtime.block_on(async {
            let mut random = fastrand::Rng::with_seed(seed);
            let disk = Disk::default();
            let store = disk.open(SMALL).unwrap();
            let mut known = State::new();
            for n in 0..60 {
                if random.u8(0..4) == 0 {
                    let room = random.bool().then(|| disk.used() + random.usize(0..2000));
                    disk.limit(room);
                }
                let key = format!("/{n}");
                let value = Bytes::from(vec![b'x'; random.usize(0..3000)]);
                let rendered = value.clone();
                match store.write(&key, Expect::Absent, Change::Put(Box::new(move |_| rendered))).await {
                    Ok(revision) => drop(known.insert(key, (revision, value))),
                    Err(StoreError::Full) => {}
                    Err(error) => panic!("seed {seed}: {error}"),
                }
                assert!(state(&store) == known, "seed {seed}");
            }
            let after = disk.after_power_cut(&mut random).open(SMALL).unwrap();
            assert!(state(&after) == known, "seed {seed}");
        });
    }
}
