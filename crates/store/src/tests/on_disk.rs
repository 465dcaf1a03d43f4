//! What only a store on disk does: be opened again, be refused, be full, be copied.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;

use futures::future::join_all;
use tokio::task::JoinSet;

use super::super::disk::Trouble;
use super::sim::Disk;
use super::*;

async fn put(store: &Store, key: &str, value: &str) -> Result<Revision, StoreError> {
    let was = store.get(key)?.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
    store.write(key, was, Change::Put(text(value))).await
}

#[tokio::test]
async fn a_store_is_as_it_was_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/data");
    let store = Store::open(&path, Options::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let a = create(&store, "/a", "one").await;
    create(&store, "/b", "one").await;
    delete(&store, "/a", a).await;
    let before = list(&store, under("/")).unwrap();
    drop(store);

    let store = reopen(&path, Options::default()).unwrap();
    assert_eq!(list(&store, under("/")).unwrap(), before);
    assert_eq!((store.revision(), store.compacted()), (4, 4));
    assert!(matches!(store.watch("/", 3), Err(StoreError::Compacted { asked: 3, oldest: 4 })));
    let mut watch = store.watch("/", 4).unwrap();
    assert_eq!(create(&store, "/c", "one").await, 5);
    assert_eq!(watch.next().await.unwrap().key, "/c");
}

#[tokio::test]
async fn one_folder_serves_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Options::default()).unwrap();
    let refused = Store::open(folder.path(), Options::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("the data folder {} is in use by another process", folder.path().display())
    );
    store.close();
    let again = reopen(folder.path(), Options::default()).unwrap();
    let closed = store.write("/a", Expect::Absent, Change::Put(text("x"))).await;
    assert!(matches!(closed, Err(StoreError::Io(_))), "{closed:?}");
    drop(again);
}

#[test]
fn data_of_a_newer_version_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("format"), "beskar7 store 3\nand more\n").unwrap();
    let refused = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    std::fs::write(folder.path().join("format"), "beskar7 store 3\n").unwrap();
    let refused = Store::open(folder.path(), Options::default()).unwrap_err();
    let sentence = format!(
        "the data folder {} was written by a newer version (format 3, this one knows up to 2): use that version, or another folder",
        folder.path().display()
    );
    assert_eq!(refused.to_string(), sentence);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn writers_share_a_sync_and_each_gets_its_own_revision() {
    let disk = Disk::default();
    let store = disk.open(Options::default()).unwrap();
    let before = disk.syncs();
    // The first holds the thread that writes until all others are queued.
    let (all_queued, signal) = mpsc::channel::<()>();
    let render: Render = Box::new(move |_| {
        let _ = signal.recv();
        Bytes::from("x")
    });
    let mut first = Box::pin(store.write("/00", Expect::Absent, Change::Put(render)));
    assert!(futures::poll!(&mut first).is_pending());
    let keys: Vec<String> = (1..64).map(|writer| format!("/{writer:02}")).collect();
    let mut others: Vec<_> = keys.iter().map(|key| Box::pin(create(&store, key, "x"))).collect();
    for other in &mut others {
        assert!(futures::poll!(other).is_pending());
    }
    all_queued.send(()).unwrap();
    assert_eq!(first.await.unwrap(), 2);
    assert_eq!(join_all(others).await, (3..66).collect::<Vec<_>>());
    assert_eq!(disk.syncs() - before, 1);
}

#[tokio::test]
async fn writes_of_one_batch_see_each_other() {
    let store = Disk::default().open(Options::default()).unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..50 {
        let store = store.clone();
        writers.spawn(async move {
            let made = store.write("/same", Expect::Absent, Change::Put(text(&writer.to_string()))).await;
            match made {
                Ok(revision) => Some((writer, revision)),
                Err(StoreError::Mismatch(Some(found))) => {
                    assert_eq!(found.revision, 2);
                    None
                }
                Err(error) => panic!("{error}"),
            }
        });
    }
    let made: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    let [(writer, 2)] = made[..] else { panic!("{made:?}") };
    assert_eq!(store.get("/same").unwrap().unwrap().value, writer.to_string());
}

#[tokio::test]
async fn a_full_disk_refuses_writes_answers_reads_and_recovers() {
    let disk = Disk::default();
    let store = disk.open(SMALL).unwrap();
    create(&store, "/a", "precious").await;
    disk.limit(Some(disk.used() + 2_000));
    let mut written = Vec::new();
    let full = loop {
        let key = format!("/filler/{}", written.len());
        match put(&store, &key, &"x".repeat(700)).await {
            Ok(revision) => written.push((key, revision)),
            Err(full) => break full,
        }
    };
    assert!(matches!(full, StoreError::Full), "{full}");
    assert_eq!(full.to_string(), "the disk is full");
    let revision = store.revision();
    for _ in 0..10 {
        let full = put(&store, "/more", &"x".repeat(700_000)).await;
        assert!(matches!(full, Err(StoreError::Full)), "{full:?}");
    }
    let conflict = store.write("/a", Expect::Absent, Change::Put(text("x"))).await;
    assert!(
        matches!(conflict, Err(StoreError::Mismatch(Some(_)))),
        "a conflict is one on a full disk too: {conflict:?}"
    );
    assert_eq!(store.get("/a").unwrap().unwrap().value, "precious");
    assert_eq!(list(&store, under("/")).unwrap().1, revision);
    assert!(store.get("/more").unwrap().is_none());

    disk.limit(None);
    assert_eq!(put(&store, "/more", "now").await.unwrap(), revision + 1);
    drop(store);
    let store = disk.open(SMALL).unwrap();
    assert_eq!(store.revision(), revision + 1);
    for (key, revision) in written {
        assert_eq!(store.get(&key).unwrap().unwrap().revision, revision);
    }
    assert_eq!(store.get("/more").unwrap().unwrap().value, "now");
}

#[tokio::test]
async fn after_a_failed_sync_the_log_goes_on_in_a_new_file() {
    let disk = Disk::default();
    let store = disk.open(Options::default()).unwrap();
    create(&store, "/a", "one").await;
    disk.fail_syncs(true);
    for _ in 0..3 {
        let failed = put(&store, "/b", "two").await;
        assert!(matches!(&failed, Err(StoreError::Io(why)) if why == "the disk is on fire"), "{failed:?}");
    }
    assert_eq!((store.revision(), store.get("/b").unwrap()), (2, None));
    disk.fail_syncs(false);
    assert_eq!(put(&store, "/b", "three").await.unwrap(), 3);
    drop(store);
    let store = disk.open(Options::default()).unwrap();
    assert_eq!(store.get("/a").unwrap().unwrap().value, "one");
    assert_eq!(store.get("/b").unwrap().unwrap().value, "three");
    assert_eq!(disk.files(), ["format", "index", "log-0000000001", "log-0000000002"]);
}

#[tokio::test]
async fn outdated_files_are_cleared_away_while_the_store_is_in_use() {
    let disk = Disk::default();
    let store = disk.open(SMALL).unwrap();
    for n in 0..10 {
        create(&store, &format!("/kept/{n}"), &"k".repeat(1000)).await;
        for _ in 0..50 {
            put(&store, "/busy", &"b".repeat(1000)).await.unwrap();
        }
    }
    let mut watch = store.watch("/", store.revision()).unwrap();
    drop(store);
    assert!(watch.try_next().is_none(), "nothing happens when things are moved");
    let live = 11 * 1_050;
    assert!(disk.used() < 2 * live + 4 * 16_384 + 8_192, "{} bytes in {:?}", disk.used(), disk.files());
    assert!(!disk.files().contains(&"log-0000000001".to_owned()), "{:?}", disk.files());
    let store = disk.open(SMALL).unwrap();
    assert_eq!(store.count(under("/kept/")).unwrap(), 10);
    for entry in list(&store, under("/kept/")).unwrap().0 {
        assert_eq!((entry.value.len(), entry.revision % 51), (1000, 2), "{entry:?}");
    }
}

#[tokio::test]
async fn a_bug_in_rendering_stops_one_write_only() {
    let store = Disk::default().open(Options::default()).unwrap();
    let failed = store.write("/a", Expect::Absent, Change::Put(Box::new(|_| panic!("a bug")))).await;
    assert!(matches!(failed, Err(StoreError::Io(_))), "{failed:?}");
    assert_eq!(create(&store, "/a", "one").await, 2);
}

#[tokio::test]
async fn the_last_owner_may_be_a_write_in_the_queue() {
    let store = Disk::default().open(Options::default()).unwrap();
    let owner = store.clone();
    let render: Render = Box::new(move |_| Bytes::from(owner.revision().to_string()));
    let visible = store.visible.clone();
    let mut write = Box::pin(async move { store.write("/a", Expect::Absent, Change::Put(render)).await });
    let _ = futures::poll!(&mut write);
    drop(write);
    let mut watch = Watch::begin(visible, "/", 1).unwrap();
    assert_eq!(watch.next().await.unwrap().value, "1");
}

#[tokio::test]
async fn a_backup_is_a_store_as_of_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("data"), SMALL).unwrap();
    for n in 0..100 {
        create(&store, &format!("/a/{n:03}"), &"x".repeat(500)).await;
    }
    let to = folder.path().join("backup");
    store.backup(&to).unwrap();
    let then = list(&store, under("/")).unwrap();
    create(&store, "/later", "x").await;
    assert_eq!(store.backup(&to).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);

    let copy = Store::open(&to, SMALL).unwrap();
    assert_eq!(list(&copy, under("/")).unwrap(), then);
    assert_eq!(create(&copy, "/other", "x").await, then.1 + 1);
    drop(copy);
    assert_eq!(reopen(&to, SMALL).unwrap().count(under("/")).unwrap(), 101);
}

#[tokio::test]
async fn damage_is_told_and_not_hidden() {
    let filled = async || {
        let disk = Disk::default();
        let store = disk.open(SMALL).unwrap();
        for n in 0..40 {
            create(&store, &format!("/a/{n:03}"), &"x".repeat(1000)).await;
        }
        drop(store);
        disk
    };
    let refused = |disk: &Disk| match disk.open(SMALL) {
        Err(Trouble::Damaged(what)) => what,
        other => panic!("{other:?}"),
    };

    let disk = filled().await;
    disk.rot("index", |len| len / 2);
    assert_eq!(refused(&disk), "the file index is not what was written");

    let disk = filled().await;
    disk.remove_file("log-0000000001");
    assert_eq!(refused(&disk), "the file that holds /a/000 is missing");

    let disk = filled().await;
    disk.remove_file("format");
    assert_eq!(refused(&disk), "the file format is missing");

    let disk = filled().await;
    disk.remove_file("index");
    disk.rot("log-0000000001", |len| len / 2);
    assert_eq!(
        refused(&disk),
        "log-0000000001 at byte 7245 is not what was written; 8 intact records follow in this file, up to revision 17, \
         and more files from log-0000000002 on"
    );

    let disk = filled().await;
    disk.replace("log-0000000001", b"what?");
    assert_eq!(refused(&disk), "the head of log-0000000001 is not whole");

    let disk = filled().await;
    disk.rot("log-0000000001", |_| 100);
    let store = disk.open(SMALL).unwrap();
    let told = store.get("/a/000").unwrap_err();
    assert_eq!(
        told.to_string(),
        "the store failed: the record of /a/000 in log-0000000001 at 28 is not what was written"
    );
    assert!(store.get("/a/001").unwrap().is_some());
    assert_eq!(
        store.unreadable(),
        ["the record of /a/000 in log-0000000001 at 28 is not what was written"],
        "and it is told before anybody asks"
    );
    let (listed, omitted) = (list(&store, under("/a/")), keys(&store, under("/b/")));
    assert!(listed.unwrap_err().to_string().contains("/a/000"), "a list without it would look as if it were gone");
    assert!(omitted.is_empty());
}

#[tokio::test]
async fn a_deleted_lock_file_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Options::default()).unwrap();
    std::fs::remove_file(folder.path().join("lock")).unwrap();
    let refused = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse(_)), "{refused}");
    let refused = Store::repair(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse(_)), "{refused}");
    drop(store);
    reopen(folder.path(), Options::default()).unwrap();
}

#[tokio::test]
async fn the_folder_is_closed_for_others_at_every_start() {
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    create(&Store::open(&path, Options::default()).unwrap(), "/a", "secret").await;
    let open_for_all = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let files = || std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    open_for_all(&path, 0o755);
    for file in files() {
        open_for_all(&file, 0o644);
    }
    let store = reopen(&path, Options::default()).unwrap();
    assert_eq!(mode(&path), 0o700);
    for file in files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop(store);
}

#[tokio::test]
async fn a_store_of_the_first_format_is_opened_and_becomes_one_of_the_second() {
    let disk = Disk::default();
    let store = disk.open(SMALL).unwrap();
    create(&store, "/a", "one").await;
    drop(store);
    disk.replace("format", b"beskar7 store 1\n");
    let store = disk.open(SMALL).unwrap();
    assert_eq!(store.get("/a").unwrap().unwrap().value, "one");
    assert_eq!(disk.content("format"), b"beskar7 store 2\n");
}

#[tokio::test]
async fn one_object_overwritten_for_ever_fits_on_a_small_disk() {
    let disk = Disk::default();
    disk.limit(Some(48 << 20));
    let store = disk.open(Options::default()).unwrap();
    let mut most = 0;
    for n in 0..900 {
        put(&store, "/a", &format!("{n:060000}")).await.unwrap();
        most = most.max(disk.used());
    }
    assert!(most < 6 << 20, "{most} bytes for one object of 60 KB");
}

#[tokio::test]
async fn a_full_disk_gives_back_what_is_outdated_before_a_write_is_refused() {
    let never = 1 << 40;
    let options = Options { segment_bytes: 64 << 10, checkpoint_bytes: never, garbage_bytes: never, ..SMALL };
    let disk = Disk::default();
    let store = disk.open(options).unwrap();
    create(&store, "/kept", &"k".repeat(5_000)).await;
    disk.limit(Some(300 << 10));
    for n in 0..500 {
        put(&store, "/busy", &format!("{n:05000}")).await.unwrap_or_else(|error| panic!("write {n}: {error}"));
    }
    drop(store);
    let store = disk.open(options).unwrap();
    assert_eq!(store.get("/kept").unwrap().unwrap().value.len(), 5_000);
    assert_eq!(store.get("/busy").unwrap().unwrap().value, format!("{:05000}", 499));
}

#[tokio::test]
async fn a_disk_that_was_filled_by_one_object_is_not_full_for_long() {
    let never = 1 << 40;
    let disk = Disk::default();
    let store = disk.open(Options { segment_bytes: 1 << 20, checkpoint_bytes: never, garbage_bytes: never, ..SMALL });
    let store = store.unwrap();
    for n in 0..40 {
        put(&store, "/busy", &format!("{n:060000}")).await.unwrap();
    }
    disk.limit(Some(disk.used() + 20_000));
    drop(store);
    let store = disk.open(Options::default()).unwrap();
    for n in 0..40 {
        put(&store, "/busy", &format!("{n:060000}")).await.unwrap_or_else(|error| panic!("write {n}: {error}"));
    }
    assert!(disk.used() < 4 << 20, "{} bytes", disk.used());
}
