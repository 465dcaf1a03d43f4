//! Bytes change on a disk, as they do over the years. No acknowledged write is lost silently: it is there, or the store
//! says that it is damaged, and where.

use std::collections::{BTreeMap, BTreeSet};

use super::super::disk::{self, Trouble};
use super::super::visible::State as Found;
use super::sim::Disk;
use super::*;

type State = BTreeMap<String, (Revision, Bytes)>;

fn read(found: &Found) -> Result<State, StoreError> {
    let mut state = Ok(State::new());
    found.visit(under(""), &mut |key, revision, stored| match (&mut state, stored.read()) {
        (Ok(state), Ok(value)) => {
            state.insert(key.to_owned(), (revision, value));
            ControlFlow::Continue(())
        }
        (_, Err(error)) => {
            state = Err(error);
            ControlFlow::Break(())
        }
        (Err(_), _) => ControlFlow::Break(()),
    });
    state
}

/// A store after some random writes and a crash: its disk, what it held, and the key of every write.
struct Crashed {
    disk: Disk,
    known: State,
    writes: BTreeMap<Revision, String>,
}

async fn crashed(seed: u64, writes: usize, options: Options) -> Crashed {
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = Disk::default();
    let store = disk.open(options).unwrap();
    let (mut known, mut by_revision) = (State::new(), BTreeMap::new());
    for _ in 0..writes {
        // Several at once share a batch.
        let keys: BTreeSet<String> = (0..random.usize(1..4)).map(|_| format!("/a/{}", random.u8(0..9))).collect();
        let changes = keys.into_iter().map(|key| {
            let found = known.get(&key).map(|(revision, _): &(Revision, Bytes)| *revision);
            let expect = found.map_or(Expect::Absent, Expect::Revision);
            let value = Bytes::from(vec![b'x'; random.usize(0..700)]);
            let rendered = value.clone();
            let deletes = found.is_some() && random.u8(0..4) == 0;
            let render: Render = Box::new(move |_| rendered);
            let change = if deletes { Change::Delete(render) } else { Change::Put(render) };
            let store = &store;
            async move { (store.write(&key, expect, change).await.unwrap(), key, (!deletes).then_some(value)) }
        });
        for (revision, key, value) in futures::future::join_all(changes).await {
            by_revision.insert(revision, key.clone());
            match value {
                Some(value) => drop(known.insert(key, (revision, value))),
                None => drop(known.remove(&key)),
            }
        }
    }
    let crashed = disk.after_power_cut(&mut random);
    drop(store);
    Crashed { disk: crashed, known, writes: by_revision }
}

impl Crashed {
    /// Changes a byte and opens the store; and if that is refused, repairs it.
    fn change(&self, name: &str, at: usize, bits: u8) {
        let disk = self.disk.copy();
        disk.change(name, at, bits);
        let what = format!("{name}, byte {at} ^ {bits:#x}");
        match disk::look(&disk) {
            Ok((found, _)) if disk::unreadable(&found).is_empty() => {
                assert!(read(&found).unwrap() == self.known, "{what}: lost silently");
                return;
            }
            Ok((found, _)) => {
                let told = disk::unreadable(&found).join("; ");
                assert!(told.contains("log-") && told.contains(" at "), "{what}: {told}");
                assert!(read(&found).is_err(), "{what}: a list must not leave out what cannot be read");
            }
            Err(Trouble::Damaged(told)) => {
                assert!(told.contains("log-") || told.contains("index") || told.contains("format"), "{what}: {told}");
            }
            Err(Trouble::Newer { .. }) if name == "format" => return,
            Err(trouble) => panic!("{what}: {trouble:?}"),
        }
        self.repair(&disk, &what);
    }

    /// What is kept is what was written last; what is not is told.
    fn repair(&self, disk: &Disk, what: &str) {
        let told = disk.repair().unwrap_or_else(|trouble| panic!("{what}: {trouble:?}"));
        let (found, revision) = disk::look(disk).unwrap_or_else(|trouble| panic!("{what}: {trouble:?} after {told:?}"));
        let found = read(&found).unwrap();
        assert_eq!(found.len(), told.kept, "{what}");
        let newest = self.writes.keys().last().copied().unwrap_or(1);
        assert!(revision >= newest, "{what}: revisions are used again");
        let lost_writes: BTreeSet<&str> = told
            .lost_writes
            .iter()
            .flat_map(|range| self.writes.range(range.clone()).map(|(_, key)| key.as_str()))
            .chain(told.places.iter().filter_map(|place| place.key.as_deref()))
            .collect();
        let is_told = |key: &str| {
            told.lost.iter().chain(&told.uncertain).any(|lost| lost == key)
                || lost_writes.contains(key)
                || self.writes.values().next_back().is_some_and(|last| last == key && !told.places.is_empty())
        };
        for key in found.keys().chain(self.known.keys()) {
            assert!(found.get(key) == self.known.get(key) || is_told(key), "{what}: {key} is wrong, and {told:?}");
        }
    }
}

/// Which byte to change how: every `step`th of what is not prepared space.
fn changes(disk: &Disk, name: &str, step: usize, random: &mut fastrand::Rng) -> Vec<(usize, u8)> {
    let content = disk.content(name);
    let filled = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut changes: Vec<_> =
        (random.usize(0..step)..filled).step_by(step).map(|at| (at, 1 << random.u8(0..8))).collect();
    if filled < content.len() {
        changes.push((random.usize(filled..content.len()), 1 << random.u8(0..8)));
    }
    changes
}

#[test]
fn no_changed_byte_of_an_unindexed_log_loses_a_write_silently() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for seed in 0..2 {
        let never = Options { checkpoint_bytes: 1 << 40, ..SMALL };
        let crashed = runtime.block_on(crashed(seed, 3, never));
        let mut random = fastrand::Rng::with_seed(seed);
        for name in crashed.disk.files() {
            for (at, bits) in changes(&crashed.disk, &name, 4, &mut random) {
                crashed.change(&name, at, bits);
            }
        }
    }
}

#[test]
fn no_changed_byte_of_a_store_with_an_index_loses_a_write_silently() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for seed in 0..3 {
        let crashed = runtime.block_on(crashed(seed, 80, SMALL));
        assert!(crashed.disk.files().contains(&"index".to_owned()));
        let mut random = fastrand::Rng::with_seed(seed);
        for name in crashed.disk.files() {
            for (at, bits) in changes(&crashed.disk, &name, if name == "index" { 3 } else { 97 }, &mut random) {
                crashed.change(&name, at, bits);
            }
        }
    }
}

#[test]
fn intact_writes_behind_a_bad_one_are_damage_and_a_repair_keeps_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let disk = runtime.block_on(async {
        let disk = Disk::default();
        let store = disk.open(Options::default()).unwrap();
        for n in 0..10 {
            create(&store, &format!("/a/{n}"), &"x".repeat(100)).await;
        }
        disk.after_power_cut(&mut fastrand::Rng::with_seed(1))
    });
    disk.change("log-0000000001", 28 + 3 * 129 + 60, 0x10);
    let Err(Trouble::Damaged(told)) = disk.open(Options::default()) else { panic!("opened") };
    assert_eq!(
        told,
        "log-0000000001 at byte 415 is not what was written; 6 intact records follow in this file, up to revision 11"
    );
    let told = disk.repair().unwrap();
    assert_eq!((told.kept, &told.lost, &told.uncertain), (9, &vec![], &vec![]));
    assert_eq!(told.lost_writes, [5..=5]);
    assert_eq!(
        told.places,
        [Damaged { file: "log-0000000001".into(), offset: 415, bytes: 129, key: Some("/a/3".into()) }]
    );
    let store = disk.open(Options::default()).unwrap();
    assert_eq!(store.count(under("/a/")).unwrap(), 9);
    assert!(store.get("/a/3").unwrap().is_none());
    let next = runtime.block_on(create(&store, "/a/3", "again"));
    assert!(next > 11, "{next}");
}

#[test]
fn a_repair_on_a_real_disk_keeps_the_damaged_files_and_leaves_a_whole_store_alone() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path, SMALL).unwrap();
    for n in 0..10 {
        runtime.block_on(create(&store, &format!("/a/{n}"), &"x".repeat(100)));
    }
    drop(store);
    assert_eq!(Store::repair(&path).unwrap(), None);
    let log = path.join("log-0000000001");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[28 + 3 * 129 + 60] ^= 1;
    std::fs::write(&log, &bytes).unwrap();

    let (told, aside) = Store::repair(&path).unwrap().unwrap();
    assert_eq!((told.kept, &*told.lost), (9, &["/a/3".to_owned()][..]));
    assert_eq!(aside, folder.path().join("store-damaged-1"));
    assert_eq!(std::fs::read(aside.join("log-0000000001")).unwrap(), bytes);
    let store = reopen(&path, SMALL).unwrap();
    assert_eq!(store.count(under("/a/")).unwrap(), 9);
    assert!(store.unreadable().is_empty());
}
