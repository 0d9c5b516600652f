//! Pages of a table take turns on the processor.

use clock::ManualClock;
use cpu_scheduler::{CpuScheduler, SchedulerOptions, WorkClass};
use embedded::Embedded;
use futures::poll;
use storage::{SimulatedDisk, Storage, StorageOptions};
use store::database::{
    KeySchema, RowReader, SourceDatabase as _, TableIdentity, TablePart, TokenRange,
};

use crate::table;

#[tokio::test]
async fn a_page_of_a_range_waits_for_a_turn_in_the_background() {
    let clock = ManualClock::new(1_700_000_000_000_000);
    let disk = SimulatedDisk::new(1);
    let turns = CpuScheduler::new(SchedulerOptions {
        at_once_max: Some(1),
        ..SchedulerOptions::of_threads(1)
    });
    let options = StorageOptions {
        cpu_scheduler: turns.clone(),
        ..StorageOptions::default()
    };
    let storage = Storage::open_simulated(&disk, options, clock).unwrap();
    let made = storage.change_catalog(|catalog| table::create(catalog, 1));
    made.await.unwrap();
    let reader = RowReader {
        table: TableIdentity {
            keyspace: table::KEYSPACE.to_owned(),
            table: "t".to_owned(),
            id: table::id().0,
        },
        keys: KeySchema {
            partition: Vec::new(),
            clustering: Vec::new(),
        },
        columns: Vec::new(),
    };
    let rows = Embedded::new(storage).rows(&reader, 1 << 20);

    let held = turns.try_acquire(WorkClass::Query).unwrap();
    let part = TablePart::Range(TokenRange::WHOLE_RING);
    let mut page = rows.page(&part, None);
    assert!(poll!(&mut page).is_pending());
    assert_eq!(turns.counts(WorkClass::Background).waiting, 1);
    drop(held);
    assert!(page.await.unwrap().rows.is_empty());
    let counts = turns.counts(WorkClass::Background);
    assert_eq!((counts.running, counts.given), (0, 1));
}
