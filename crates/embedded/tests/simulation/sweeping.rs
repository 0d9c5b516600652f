//! Rows under a deletion are removed although the disk fails meanwhile.

use std::time::Duration;

use clock::ManualClock;
use storage::{SimulatedDisk, Storage, StorageOptions, WriteAvailability};

use crate::clock::pass;
use crate::model::Effect;
use crate::table;

/// Checks that the rows of a step that failed are swept when the disk takes writes again. They
/// would come back if the deletion were forgotten before, and a secondary index would keep their
/// entries.
#[tokio::test(start_paused = true)]
async fn rows_of_a_step_that_failed_are_swept_later() {
    let clock = ManualClock::new(1_700_000_000_000_000);
    let disk = SimulatedDisk::new(1);
    let options = StorageOptions::default();
    let storage = Storage::open_simulated(&disk, options, clock).unwrap();
    let made = storage.change_catalog(|catalog| table::create(catalog, 1));
    made.await.unwrap();
    let made = storage.change_catalog(|catalog| table::change_secondary(catalog, 2));
    made.await.unwrap();
    let index = table::secondary(&storage).unwrap();
    storage.index_built(index).await;
    let row = Effect::Row {
        key: (1, 1),
        vector: None,
        numbers: [Some(Some(7)), None, None],
        marker: true,
        ttl_s: None,
    };
    storage.write(table::write(&row, 1)).await.unwrap();
    assert_eq!(table::keys_of(&storage, index, 7).unwrap().len(), 1);

    // The deletion is taken, and the step that removes the row is not.
    disk.fail_after(1);
    let deletion = Effect::DeletePartition(1);
    storage.write(table::write(&deletion, 2)).await.unwrap();
    assert_ne!(storage.health(), WriteAvailability::Writable);
    let swept = async {
        while storage.health() != WriteAvailability::Writable
            || storage.statistics().sweeps_waiting > 0
        {
            pass(500).await;
        }
    };
    let swept = tokio::time::timeout(Duration::from_secs(60), swept).await;
    swept.expect("it is swept");
    assert!(table::rows(&storage).unwrap().is_empty());
    assert!(table::keys_of(&storage, index, 7).unwrap().is_empty());
}
