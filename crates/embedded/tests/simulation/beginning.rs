//! The position at which following the log of a table begins.

use std::time::Duration;

use clock::ManualClock;
use embedded::Embedded;
use storage::{SimulatedDisk, Storage, StorageOptions};
use store::database::{SourceDatabase, TableIdentity};

use crate::model::Effect;
use crate::table;

/// Checks that no later write lies in the log before its reader begins. A write that a scan comes
/// too early for may be back-dated: its row lies in the log as early as the log was read last,
/// which may be long ago.
#[tokio::test]
async fn no_later_write_lies_in_the_log_before_its_reader_begins() {
    let clock = ManualClock::new(1_700_000_000_000_000);
    let disk = SimulatedDisk::new(1);
    let options = StorageOptions::default();
    let storage = Storage::open_simulated(&disk, options, clock.clone()).unwrap();
    let made = storage.change_catalog(|catalog| table::create(catalog, 1));
    made.await.unwrap();
    // No one reads the log for an hour.
    clock.advance_seconds(3600);
    let identity = TableIdentity {
        keyspace: table::KEYSPACE.to_owned(),
        table: "t".to_owned(),
        id: table::id().0,
    };
    let database = Embedded::new(storage.clone());
    let facts = database.log(&identity).await.unwrap().unwrap();

    let back_dated = clock.now_s() * 1_000_000 - 1_800_000_000;
    let effect = Effect::DeletePartition(1);
    storage
        .write(table::write(&effect, back_dated))
        .await
        .unwrap();
    let log = table::log(&storage).unwrap();
    let rows = table::log_rows(&storage, log).unwrap();
    let [(time_micros, _)] = &rows[..] else {
        panic!("{} rows", rows.len());
    };
    let time = Duration::from_micros(u64::try_from(*time_micros).unwrap());
    assert!(facts.settled.is_some_and(|settled| settled < time));
}
