//! Tests passes step by step, and over rows and entries that are damaged.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::executor::block_on;
use schema::{CdcOptions, DeltaMode, ImageMode};

use super::Committer;
use crate::commit::building::IndexBuild;
use crate::commit::fixtures::{START_S, committer, int, row, table, write};
use crate::commit::sweep::DeletionSweep;
use crate::engine::{SpaceId, SyncTarget};
use crate::key::SuffixRange;
use crate::mutation::PartitionChange;
use crate::record::DeletionTime;

fn expired(committer: &Committer) -> u64 {
    let expired = &committer.shared.statistics.rows_expired;
    expired.load(Ordering::Relaxed)
}

/// Does a whole pass. Returns the number of steps.
fn pass(committer: &mut Committer) -> usize {
    committer.begin_expiry();
    std::iter::from_fn(|| block_on(committer.expire()).then_some(())).count()
}

/// Damages the value under the first key of a space.
fn damage(committer: &Committer, space: SpaceId) {
    let engine = &committer.shared.engine;
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut entries = engine
        .scan_at(&engine.snapshot().unwrap(), space, all)
        .unwrap();
    let (key, _) = entries.next().expect("an entry").unwrap();
    let damaged = Some(Bytes::from_static(b"\xff"));
    let now_micros = committer.shared.clock.now_micros();
    engine
        .commit(vec![(space, key, damaged)], SyncTarget::Kernel, now_micros)
        .unwrap();
}

#[test]
fn rows_whose_column_is_empty_are_never_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let mut rows: Vec<_> = (0..200).map(|p| row(&table, p, Bytes::new(), "")).collect();
    rows.push(row(&table, 200, int(START_S + 5), ""));
    rows.push(row(&table, 201, int(START_S + 500), ""));
    let mut committer = committer(directory.path(), &table, rows, 10);
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 1));
    // Such a row that is written again does not take the place back.
    let place = committer.expiry.places.clone();
    write(&mut committer, row(&table, 3, Bytes::new(), "again"));
    assert_eq!(committer.expiry.places, place);
}

#[test]
fn a_step_ends_when_its_images_are_large() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(Some(CdcOptions {
        enabled: true,
        preimage: ImageMode::Full,
        postimage: false,
        delta: DeltaMode::Full,
        ttl_s: 86_400,
    }));
    let text = "x".repeat(100_000);
    let rows = (0..30)
        .map(|p| row(&table, p, int(START_S + 5), &text))
        .collect();
    let mut committer = committer(directory.path(), &table, rows, 10);
    committer.begin_expiry();
    assert!(block_on(committer.expire()));
    assert_eq!(expired(&committer), 6, "rows and images of a mebibyte");
    assert_eq!((pass(&mut committer), expired(&committer)), (4, 30));
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 30));
}

#[test]
fn a_step_ends_when_the_rows_that_it_reads_are_large() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let text = "x".repeat(100_000);
    let large = |p, at| row(&table, p, int(at), &text);
    let rows = (0..30).map(|p| large(p, START_S + 5)).collect();
    let mut committer = committer(directory.path(), &table, rows, 10);
    committer.begin_expiry();
    assert!(block_on(committer.expire()));
    assert_eq!(expired(&committer), 11, "rows of a mebibyte");
    assert_eq!((pass(&mut committer), expired(&committer)), (2, 30));
}

#[test]
fn damaged_rows_and_entries_hold_up_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let rows = (0..300)
        .map(|p| row(&table, p, int(START_S + 5), ""))
        .collect();
    let mut committer = committer(directory.path(), &table, rows, 10);
    let schema = committer.shared.schema();
    let laid_out = schema.table(table.id).unwrap();
    damage(&committer, laid_out.space);
    assert_eq!((pass(&mut committer), expired(&committer)), (3, 299));
    assert!(committer.expiry.failing.is_empty());

    // Only the entry of the damaged row is left.
    damage(&committer, laid_out.expiry().unwrap().space);
    committer.expiry.reset();
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 299));
    assert!(committer.expiry.failing.is_empty());
}

#[test]
fn the_last_second_of_an_int_comes() {
    let table = table(None);
    let last = i64::from(i32::MAX);
    for (now_s, count) in [(last - 1, 1), (last, 2), (last + 1_000, 2)] {
        let directory = tempfile::tempdir().unwrap();
        let rows = [(1, last), (2, last - 1)];
        let rows = rows.map(|(p, at)| row(&table, p, int(at), "")).into();
        let mut committer = committer(directory.path(), &table, rows, now_s - START_S);
        assert_eq!((pass(&mut committer), expired(&committer)), (1, count));
    }
}

#[test]
fn rows_expire_while_deleted_ones_are_swept_and_an_index_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let rows = (0..300).map(|p| row(&table, p, int(START_S + 5), ""));
    let mut committer = committer(directory.path(), &table, rows.collect(), 10);
    let schema = committer.shared.schema();
    let laid_out = schema.table(table.id).unwrap();
    let version = table.row_ttl.unwrap().version;
    let builds = vec![IndexBuild::new(version, laid_out.space)];
    committer.builds.extend(builds);
    let deletion = DeletionTime {
        timestamp: 1,
        local_s: START_S,
    };
    let range = SuffixRange::whole();
    for _ in 0..5 {
        let sweep = DeletionSweep::new(laid_out.space, b"none", range.clone(), deletion);
        committer.sweeps.push_back(sweep);
    }
    committer.begin_expiry();
    assert!(block_on(committer.work()));
    assert_eq!((committer.sweeps.len(), committer.builds.len()), (4, 1));
    assert_eq!(expired(&committer), 128);
}

#[test]
fn rows_from_the_past_expire_without_a_look_at_what_has_gone() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let rows = [row(&table, 0, int(START_S + 5), "")];
    let mut committer = committer(directory.path(), &table, rows.into(), 10);
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 1));
    let place = committer.expiry.places.clone();
    // More than a step takes, one of which has a later time and one none when the pass comes.
    for p in 1..=200 {
        write(&mut committer, row(&table, p, int(1_000 + p), ""));
    }
    let later = |p, at| {
        let mut later = row(&table, p, at, "");
        for change in &mut later.mutations[0].changes {
            if let PartitionChange::Row { timestamp, .. } = change {
                *timestamp = 2;
            }
        }
        later
    };
    write(&mut committer, later(7, int(START_S + 500)));
    write(&mut committer, later(8, Bytes::new()));
    assert_eq!(committer.expiry.places, place);
    assert_eq!((pass(&mut committer), expired(&committer)), (2, 199));
    assert_eq!(committer.expiry.places, place);
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 199));

    // If they are too many, the place moves back.
    let mut many = row(&table, 1_000, int(3_000), "");
    for p in 1_001..3_000 {
        let one = row(&table, p, int(2_000 + p), "");
        many.mutations.extend(one.mutations);
    }
    write(&mut committer, many);
    assert_ne!(committer.expiry.places, place);
    assert_eq!((pass(&mut committer), expired(&committer)), (16, 2_199));
    assert_eq!(committer.expiry.places, place);
}
