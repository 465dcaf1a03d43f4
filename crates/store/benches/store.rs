//! How fast the store on disk is: `cargo bench -p beskar7-store --bench store [-- FOLDER]`.
//!
//! Every figure of a round is taken beside the others of that round, because disks have moods; medians are printed. The
//! floor is a file to which the same bytes are appended and synced, by one thread.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops when something is wrong")]

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use store::{Change, Expect, Options, Scan, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;

const ROUNDS: usize = 7;
const SPELL: Duration = Duration::from_millis(300);
const OBJECTS: usize = 10_000;

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = folder.map_or_else(|| std::env::temp_dir().join("beskar7-bench-store"), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for size in [2_000, 8_000] {
        runtime.block_on(writes(&folder, size));
    }
    runtime.block_on(reads(&folder));
    runtime.block_on(watching());
    std::fs::remove_dir_all(&folder).unwrap();
}

fn value(size: usize) -> Bytes {
    std::iter::repeat_with(|| fastrand::u8(b' '..b'~')).take(size).collect::<Vec<_>>().into()
}

fn key(n: usize) -> String {
    format!("/registry/infrastructure.cluster.x-k8s.io/physicalhosts/default/host-{n:06}")
}

async fn put(store: &Store, key: &str, value: &Bytes) {
    let value = value.clone();
    let was = store.get(key).unwrap().map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
    store.write(key, was, Change::Put(Box::new(move |_| value))).await.unwrap();
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn per_second(done: usize, start: Instant) -> f64 {
    done as f64 / start.elapsed().as_secs_f64()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

async fn writes(folder: &Path, size: usize) {
    let store = Store::open(&folder.join(format!("writes-{size}")), Options::default()).unwrap();
    let mut file = std::fs::File::create(folder.join("floor")).unwrap();
    for writers in [1, 8, 64] {
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        let bytes = value(size * writers);
        let value = value(size);
        for _ in 0..ROUNDS {
            let (start, mut done) = (Instant::now(), 0);
            while start.elapsed() < SPELL {
                file.write_all(&bytes).unwrap();
                file.sync_data().unwrap();
                done += writers;
            }
            floor.push(per_second(done, start));
            let mut tasks = JoinSet::new();
            for writer in 0..writers {
                let (store, value) = (store.clone(), value.clone());
                tasks.spawn(async move {
                    let (start, mut done) = (Instant::now(), 0);
                    while start.elapsed() < SPELL {
                        put(&store, &key(writer * OBJECTS + fastrand::usize(0..OBJECTS / writers)), &value).await;
                        done += 1;
                    }
                    per_second(done, start)
                });
            }
            ours.push(tasks.join_all().await.into_iter().sum());
        }
        let (floor, ours) = (median(floor), median(ours));
        println!("{size} bytes, {writers} writers: {ours:.0} writes/s; append and sync {floor:.0}/s");
    }
}

async fn reads(folder: &Path) {
    let folder = folder.join("reads");
    let store = Store::open(&folder, Options::default()).unwrap();
    let bytes = value(8_000);
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let (store, bytes) = (store.clone(), bytes.clone());
        tasks.spawn(async move {
            for n in (task..OBJECTS).step_by(64) {
                put(&store, &key(n), &bytes).await;
            }
        });
    }
    tasks.join_all().await;
    drop(store);
    let start = Instant::now();
    let store = Store::open(&folder, Options::default()).unwrap();
    println!("open with {OBJECTS} objects of 8,000 bytes: {:?}", start.elapsed());
    for _ in 0..3 {
        let start = Instant::now();
        let mut sum = 0;
        store
            .scan(Scan { prefix: "/", after: None, at: None }, &mut |_, _, value| {
                sum += value.len();
                ControlFlow::Continue(())
            })
            .unwrap();
        let scanned = start.elapsed();
        let start = Instant::now();
        let count = store.count(Scan { prefix: "/", after: None, at: None }).unwrap();
        println!("scan {count} objects, {sum} bytes: {scanned:?}; count them: {:?}", start.elapsed());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("memory: {}", status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("unknown"));
    // As after a crash: the log since the last copy of the index is read.
    for n in 0..1_900 {
        put(&store, &key(n), &bytes).await;
    }
    let crashed = folder.with_extension("crashed");
    std::fs::create_dir_all(&crashed).unwrap();
    for file in std::fs::read_dir(&folder).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), crashed.join(file.file_name())).unwrap();
        std::fs::File::open(crashed.join(file.file_name())).unwrap().sync_all().unwrap();
    }
    let start = Instant::now();
    Store::open(&crashed, Options::default()).unwrap();
    println!("open and close after a crash, 15 MB of log behind the index: {:?}", start.elapsed());
    let start = Instant::now();
    store.backup(&folder.with_extension("backup")).unwrap();
    println!("backup: {:?}", start.elapsed());
}

async fn watching() {
    const EVENTS: usize = 10_000;
    let store = Store::memory();
    let mut watchers = JoinSet::new();
    for _ in 0..50 {
        let mut watch = store.watch("/", 1).unwrap();
        watchers.spawn(async move {
            for _ in 0..EVENTS {
                watch.next().await.unwrap();
            }
        });
    }
    let start = Instant::now();
    let bytes = value(100);
    for n in 0..EVENTS {
        put(&store, &key(n), &bytes).await;
        tokio::task::yield_now().await;
    }
    watchers.join_all().await;
    println!("{EVENTS} events to 50 watchers: {:?}", start.elapsed());
}
