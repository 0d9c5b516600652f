//! Tests that the rows that the committer holds in memory are bounded: those of a batch end it, and
//! those of one write refuse it.

use bytes::Bytes;
use futures::future::join_all;
use schema::{CdcOptions, ImageMode};
use storage::mutation::{CellOperation, WriteOutcome};
use storage::{Storage, StorageOptions};
use value::CqlType;

use crate::support::*;

const ROW_BYTES: usize = 256 << 10;
const BATCH_BYTES: usize = 2 << 20;
const UPDATES: i32 = 60;

#[test]
fn rows_and_their_images_end_a_batch() {
    let directory = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        batch_bytes: BATCH_BYTES,
        write_rows_bytes: 4 * ROW_BYTES,
        ..options()
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .regular("n", CqlType::Int)
        .regular("b", CqlType::Blob)
        .cdc(CdcOptions {
            preimage: ImageMode::Full,
            postimage: true,
            ..cdc_options()
        })
        .build();
    create(&storage, &table, true);
    let columns: Vec<_> = table.columns.iter().map(|column| column.id).collect();
    let blob = Bytes::from(vec![7; ROW_BYTES]);
    for p in 0..8 {
        let cells = vec![set(columns[1], int(0)), set(columns[2], blob.clone())];
        write(
            &storage,
            &table,
            vec![int(p)],
            vec![insert(vec![], cells, 1)],
        );
    }
    let changed = |p: i32, n: i32| {
        let cells = vec![cell(columns[1], CellOperation::Set(int(n)))];
        write_of(
            &table,
            vec![int(p)],
            vec![update(vec![], cells, i64::from(n) + 2)],
        )
    };
    // All wait together, each of a few bytes. With its images each takes three times its row.
    let updates = (0..UPDATES).map(|n| storage.write(changed(0, n)));
    let outcomes = block_on(join_all(updates));
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Ok(WriteOutcome::Applied)))
    );
    let peak = storage.statistics().batch_bytes_peak as usize;
    let of_one = 3 * (ROW_BYTES + 1024);
    assert!(peak <= BATCH_BYTES + of_one, "{peak} bytes in a batch");
    assert!(peak > of_one, "several updates are in a batch");
    let rows = read_partition(&storage, &table, vec![int(0)]);
    assert_eq!(rows[0].cell(columns[1]).map(|_| ()), Some(()));
    assert_eq!(simple_value(&rows[0], columns[1]), Some(int(UPDATES - 1)));

    // A write of many rows is refused where it would read too much, and leaves nothing.
    let mut many = changed(0, UPDATES);
    for p in 1..8 {
        many.mutations.extend(changed(p, UPDATES).mutations);
    }
    let error = block_on(storage.write(many)).unwrap_err().to_string();
    assert!(
        error.contains("hold more than 1 MiB: make smaller batches"),
        "{error}"
    );
    let rows = read_partition(&storage, &table, vec![int(1)]);
    assert_eq!(simple_value(&rows[0], columns[1]), Some(int(0)));
}
