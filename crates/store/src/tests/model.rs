//! Random use of a store against a model of it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Few keys, so that they meet; some are prefixes of others.
const KEYS: [&str; 8] = ["/a", "/a/", "/a/1", "/a/2", "/ab", "/b/1", "/b/2", "/c"];
const PREFIXES: [&str; 6] = ["", "/", "/a", "/a/", "/b/", "/d"];

/// One thing that someone does with a store.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Writes a key, expecting what is there, or something else.
    Write { key: usize, delete: bool, right: bool, size: usize },
    /// Compares a scan at a revision, this far between the oldest and the newest (and a bit beyond).
    Scan { prefix: usize, after: Option<usize>, back: u64 },
    /// Begins to watch, as far back.
    Watch { prefix: usize, back: u64 },
    /// Lets a watch read some events.
    Read { watch: usize, events: usize },
    /// Forgets history.
    Compact { back: u64 },
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..KEYS.len(), any::<bool>(), prop::bool::weighted(0.9), 0..3000_usize)
            .prop_map(|(key, delete, right, size)| Step::Write { key, delete, right, size }),
        3 => (0..PREFIXES.len(), prop::option::of(0..KEYS.len()), 0..12_u64)
            .prop_map(|(prefix, after, back)| Step::Scan { prefix, after, back }),
        2 => (0..PREFIXES.len(), 0..12_u64).prop_map(|(prefix, back)| Step::Watch { prefix, back }),
        3 => (0..8_usize, 0..6_usize).prop_map(|(watch, events)| Step::Read { watch, events }),
        1 => (4..20_u64).prop_map(|back| Step::Compact { back }),
    ];
    prop::collection::vec(step, 1..120)
}

type State = BTreeMap<String, (Revision, Bytes)>;

/// What a store must be: every state that it ever had.
struct Model {
    /// The state at revision 1 is the first.
    states: Vec<State>,
    changed: Vec<String>,
    oldest: Revision,
}

impl Model {
    fn newest(&self) -> Revision {
        self.states.len() as Revision
    }

    fn at(&self, revision: Revision) -> &State {
        &self.states[usize::try_from(revision).unwrap() - 1]
    }

    /// What a watch must hand out next.
    fn next(&self, prefix: &str, after: Revision) -> Option<Revision> {
        (after + 1..=self.newest())
            .find(|revision| self.changed[usize::try_from(*revision).unwrap() - 2].starts_with(prefix))
    }
}

struct Watching {
    watch: Watch,
    prefix: &'static str,
    revision: Revision,
}

/// Does the steps and compares; the limits are those of the store.
pub(super) async fn follow(store: &Store, limits: Limits, steps: Vec<Step>) {
    assert!(limits.bytes == usize::MAX, "the model counts events only");
    let mut model = Model { states: vec![State::new()], changed: Vec::new(), oldest: 1 };
    let mut watches: Vec<Watching> = Vec::new();
    for step in steps {
        match step {
            Step::Write { key, delete, right, size } => {
                write(store, &mut model, KEYS[key], delete, right, size).await;
                model.oldest = model.oldest.max(model.newest().saturating_sub(limits.events as Revision));
            }
            Step::Scan { prefix, after, back } => {
                let at = (model.newest() + 1).saturating_sub(back);
                compare(
                    store,
                    &model,
                    Scan { prefix: PREFIXES[prefix], after: after.map(|key| KEYS[key]), at: Some(at) },
                );
                compare(store, &model, Scan { prefix: PREFIXES[prefix], after: after.map(|key| KEYS[key]), at: None });
            }
            Step::Watch { prefix, back } => {
                let after = (model.newest() + 1).saturating_sub(back);
                match store.watch(PREFIXES[prefix], after) {
                    Ok(watch) => {
                        assert!((model.oldest..=model.newest()).contains(&after));
                        watches.push(Watching { watch, prefix: PREFIXES[prefix], revision: after });
                    }
                    Err(StoreError::Compacted { oldest, .. }) => {
                        assert!(after < model.oldest && oldest == model.oldest);
                    }
                    Err(StoreError::Future { current, .. }) => assert!(after > current && current == model.newest()),
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Read { watch, events } if !watches.is_empty() => {
                let chosen = watch % watches.len();
                for _ in 0..events {
                    if !read(&model, &mut watches[chosen]) {
                        watches.swap_remove(chosen);
                        break;
                    }
                }
            }
            Step::Read { .. } => {}
            Step::Compact { back } => {
                let to = model.newest().saturating_sub(back);
                store.compact(to);
                model.oldest = model.oldest.max(to);
            }
        }
        assert_eq!((store.compacted(), store.revision()), (model.oldest, model.newest()));
    }
    for mut watching in watches {
        while model.next(watching.prefix, watching.revision).is_some() && read(&model, &mut watching) {}
    }
}

async fn write(store: &Store, model: &mut Model, key: &str, delete: bool, right: bool, size: usize) {
    let mut state = model.at(model.newest()).clone();
    let found = state.get(key).map(|(revision, _)| *revision);
    let expect = match found {
        Some(revision) if right => Expect::Revision(revision),
        Some(revision) if size.is_multiple_of(2) => Expect::Revision(revision + 1),
        None if !right => Expect::Revision(model.newest()),
        _ => Expect::Absent,
    };
    let render: Render = Box::new(move |revision| Bytes::from(format!("{revision}:{}", "x".repeat(size))));
    let change = if delete { Change::Delete(render) } else { Change::Put(render) };
    let result = store.write(key, expect, change).await;
    if !right || (delete && found.is_none()) {
        let Err(StoreError::Mismatch(there)) = result else { panic!("{result:?}") };
        assert_eq!(there.map(|entry| (entry.revision, entry.value)), state.get(key).cloned());
        return;
    }
    let revision = result.unwrap();
    assert_eq!(revision, model.newest() + 1);
    if delete {
        state.remove(key);
    } else {
        state.insert(key.to_owned(), (revision, Bytes::from(format!("{revision}:{}", "x".repeat(size)))));
    }
    model.states.push(state);
    model.changed.push(key.to_owned());
}

fn compare(store: &Store, model: &Model, scan: Scan<'_>) {
    let at = scan.at.unwrap_or(model.newest());
    match list(store, scan) {
        Ok((entries, revision)) => {
            assert_eq!(revision, at);
            assert!(at >= model.oldest);
            let expected: Vec<_> = model
                .at(at)
                .iter()
                .filter(|(key, _)| key.starts_with(scan.prefix) && scan.after.is_none_or(|after| key.as_str() > after))
                .map(|(key, (revision, value))| Entry { key: key.clone(), revision: *revision, value: value.clone() })
                .collect();
            assert_eq!(entries, expected);
            assert_eq!(store.count(scan).unwrap(), expected.len() as u64);
            for entry in expected.iter().filter(|_| at == model.newest()) {
                assert_eq!(store.get(&entry.key).unwrap().as_ref(), Some(entry));
            }
        }
        Err(StoreError::Compacted { .. }) => assert!(at < model.oldest),
        Err(StoreError::Future { .. }) => assert!(at > model.newest()),
        Err(error) => panic!("{error}"),
    }
}

/// Reads one event and compares it. False if the watch is over.
fn read(model: &Model, watching: &mut Watching) -> bool {
    let expected = model.next(watching.prefix, watching.revision);
    assert_eq!(watching.watch.revision(), expected.map_or(model.newest(), |next| next - 1));
    match (watching.watch.try_next(), expected) {
        (None, None) => true,
        (Some(Ok(event)), Some(revision)) => {
            assert_eq!(event.revision, revision);
            let before = model.at(revision - 1).get(&event.key).cloned();
            assert_eq!(event.before.clone().map(|value| (event.before_revision, value)), before);
            let after = model.at(revision).get(&event.key).cloned();
            assert_eq!((!event.deleted).then(|| (revision, event.value.clone())), after);
            watching.revision = revision;
            true
        }
        (Some(Err(StoreError::Compacted { .. })), Some(revision)) => {
            assert!(revision <= model.oldest);
            false
        }
        unexpected => panic!("{unexpected:?}"),
    }
}

pub(super) const LIMITS: Limits = Limits { events: 25, bytes: usize::MAX, least_events: 0, most_bytes: usize::MAX };

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_behaves_like_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(follow(&Store::memory_with(LIMITS), LIMITS, steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn disk_behaves_like_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let disk = sim::Disk::default();
        runtime.block_on(follow(&disk.open(SMALL).unwrap(), LIMITS, steps));
        disk.open(SMALL).unwrap();
    }
}
