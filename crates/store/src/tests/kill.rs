//! A process that writes is killed, for real, and what it was told is on disk is there.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::task::JoinSet;

use super::*;

const FOLDER: &str = "BESKAR7_STORE_UNDER_FIRE";

const OPTIONS: Options =
    Options { segment_bytes: 256 << 10, checkpoint_bytes: 64 << 10, garbage_bytes: 256 << 10, history: model::LIMITS };

fn folder_from_the_parent() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Starts this test binary again to run one test, with a folder.
fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--ignored"]).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The steps of a key's life; each is acknowledged on stdout as `acknowledged KEY STEP`.
fn life(key: &str, step: usize) -> Option<String> {
    (step < 2).then(|| format!("{key} {step} {}", "x".repeat(key.len() * 100)))
}

#[test]
#[ignore = "the child of the test below"]
fn writes_until_it_is_killed() {
    let Some(folder) = folder_from_the_parent() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = reopen(&folder, OPTIONS).unwrap();
        let start = store.revision();
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let store = store.clone();
            writers.spawn(async move {
                for n in 0.. {
                    let key = format!("/{start}/{writer}/{n}");
                    let first = create(&store, &key, &life(&key, 0).unwrap()).await;
                    println!("acknowledged {key} 0");
                    let second = update(&store, &key, first, &life(&key, 1).unwrap()).await;
                    println!("acknowledged {key} 1");
                    if n % 3 > 0 {
                        delete(&store, &key, second).await;
                        println!("acknowledged {key} 2");
                    }
                }
            });
        }
        writers.join_all().await;
    });
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_promised() {
    let rounds = std::env::var("BESKAR7_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(25);
    let mut random = fastrand::Rng::with_seed(7);
    let folder = tempfile::tempdir().unwrap();
    let mut steps: HashMap<String, usize> = HashMap::new();
    let mut revision = 1;
    for round in 0..rounds {
        let mut child = again("tests::kill::writes_until_it_is_killed", folder.path()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let enough = random.usize(0..150);
        let mut acknowledged = 0;
        let mut note = |line: String| {
            if let Some((key, step)) = line.strip_prefix("acknowledged ").and_then(|line| line.split_once(' ')) {
                steps.insert(key.to_owned(), step.parse().unwrap());
                acknowledged += 1;
            }
            acknowledged
        };
        for line in lines.by_ref() {
            if note(line) >= enough {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            note(line);
        }
        assert!(acknowledged >= enough, "round {round}: the child ended by itself");

        let store = reopen(folder.path(), OPTIONS).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(store.revision() >= revision, "round {round}");
        revision = store.revision();
        for (key, step) in &steps {
            let found = store.get(key).unwrap().map(|entry| String::from_utf8(entry.value.to_vec()).unwrap());
            assert!(
                found == life(key, *step) || found == life(key, *step + 1),
                "round {round}: {key} was acknowledged at step {step}, and is {found:?}"
            );
        }
    }
}

#[test]
#[ignore = "the child of the test below"]
fn fills_a_disk() {
    let Some(folder) = folder_from_the_parent() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let ballast = folder.join("ballast");
        std::fs::write(&ballast, vec![1; 700_000]).unwrap();
        let store = Store::open(&folder.join("data"), Options::default()).unwrap();
        let mut count = 0;
        let fill = async |count: &mut u64| loop {
            let written =
                store.write(&format!("/{count}"), Expect::Absent, Change::Put(text(&"x".repeat(8_000)))).await;
            match written {
                Ok(_) => *count += 1,
                Err(StoreError::Full) => return,
                Err(error) => panic!("{error}"),
            }
        };
        fill(&mut count).await;
        let before = count;
        assert_eq!(store.count(under("/")).unwrap(), before);
        assert_eq!(list(&store, under("/")).unwrap().0.len() as u64, before);
        std::fs::remove_file(&ballast).unwrap();
        fill(&mut count).await;
        assert!(count > before + 50, "{count} after {before}");
        drop(store);
        let store = Store::open(&folder.join("data"), Options::default()).unwrap();
        assert_eq!(list(&store, under("/")).unwrap().0.len() as u64, count);
        println!("filled it twice");
    });
}

/// A small file system of its own, where the system lets an ordinary user have one.
#[test]
fn a_disk_that_is_really_full() {
    let folder = tempfile::tempdir().unwrap();
    let child = again("tests::kill::fills_a_disk", folder.path());
    let mut mount = Command::new("unshare");
    let script = "mount -t tmpfs -o size=2m none \"$0\" || exit 42; exec \"$@\"";
    mount.args(["--mount", "--map-root-user", "sh", "-c", script]).arg(folder.path());
    mount.arg(child.get_program()).args(child.get_args()).env(FOLDER, folder.path());
    let Ok(output) = mount.output() else { return };
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let cannot_mount = output.status.code() == Some(42) || said.contains("unshare");
    assert!(cannot_mount || said.contains("filled it twice"), "{said}");
}
