//! A copy of a table whose process is killed leaves nothing.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;

use schema::TableId;
use storage::{AdoptProgress, AdoptedTableName, Storage};
use uuid::Uuid;

use crate::disk;
use crate::support::*;

const ROWS: i32 = 20_000;

/// Ends the process as if it were killed, once some rows are copied.
struct KilledOnTheWay;

impl AdoptProgress for KilledOnTheWay {
    fn copied(&self, rows: u64, _bytes: u64) {
        assert!(rows > 0);
        std::process::abort();
    }

    fn is_wanted(&self) -> bool {
        true
    }
}

/// Follows a copy to its end.
struct ToTheEnd;

impl AdoptProgress for ToTheEnd {
    fn copied(&self, _rows: u64, _bytes: u64) {}

    fn is_wanted(&self) -> bool {
        true
    }
}

fn to() -> AdoptedTableName {
    AdoptedTableName {
        keyspace: "new".to_owned(),
        table: "t".to_owned(),
    }
}

#[test]
#[ignore = "run by the test below as a process of its own"]
fn copying() {
    let path = |name| PathBuf::from(std::env::var_os(name).expect("set by the test below"));
    let source = Storage::open_read_only(&path("SOURCE"), options()).unwrap();
    let table = source.catalog().table("ks", "t").unwrap().id;
    let target = open(&path("TARGET"));
    let id = TableId(Uuid::new_v4());
    let _ = block_on(target.adopt_table(&source, table, id, to(), &KilledOnTheWay));
}

#[test]
fn a_killed_copy_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let [data, copy, target] = ["data", "copy", "target"].map(|name| home.path().join(name));
    let source = open(&data);
    let table = simple_table();
    create(&source, &table, true);
    for p in 0..ROWS / 1_000 {
        let row = |c| insert(vec![int(c)], vec![set(V, text("some text"))], 1);
        write(&source, &table, vec![int(p)], (0..1_000).map(row).collect());
    }
    block_on(source.checkpoint(&copy)).unwrap();
    let storage = open(&target);
    block_on(storage.change_catalog(|catalog| {
        let made = Arc::new(keyspace("new", true));
        catalog.keyspaces.insert("new".to_owned(), made);
        Ok::<(), ()>(())
    }))
    .unwrap();
    block_on(storage.close()).unwrap();
    drop(storage);
    let spaces = || {
        let folder = target.join("db/keyspaces");
        std::fs::read_dir(folder).unwrap().count()
    };
    let before = spaces();
    let status = disk::spawn_test(
        "adoption::copying",
        &[("SOURCE", &copy), ("TARGET", &target)],
    )
    .0
    .wait()
    .unwrap();
    assert_eq!(status.signal(), Some(6), "it was killed: {status}");
    assert_eq!(spaces(), before + 1, "it had begun");
    let storage = open(&target);
    assert!(storage.catalog().table("new", "t").is_none());
    eventually("its files are removed", || spaces() == before);
    let id = TableId(Uuid::new_v4());
    let adopted = block_on(storage.adopt_table(&source, table.id, id, to(), &ToTheEnd)).unwrap();
    assert_eq!(adopted.id, id);
    let digest = |storage: &Storage, id| storage.table_digest(id, &|| true).unwrap();
    assert_eq!(digest(&storage, adopted.id), digest(&source, table.id));
}
