//! Long work as it is seen at `/api/v1/tasks`: what kinds there are, and what each counts.

use tasks::{Scope, Spec};

use crate::identity::{IndexIdentity, TableIdentity, TokenRange};
use crate::{repair, scrub};

/// It has its rows, by a scan or from a snapshot; it is level with the log.
pub const STEPS_OF_A_BUILD: u64 = 2;

/// An index from when it was found, or opened from its snapshot, until it serves.
pub fn build(index: &IndexIdentity) -> Spec {
    Spec {
        units: "steps",
        total: Some(STEPS_OF_A_BUILD),
        ..spec("build", of_index(index))
    }
}

/// The scan of its table.
pub fn scan(index: &IndexIdentity, ranges: usize) -> Spec {
    Spec {
        units: "token_ranges",
        total: Some(ranges as u64),
        ..spec("scan", of_index(index))
    }
}

/// A part of the ring in that scan.
pub fn scan_of_range(index: &IndexIdentity, range: TokenRange) -> Spec {
    spec("scan", of_index(index).in_range(seen(range)))
}

/// An index being saved, once. Aborted it leaves the snapshot before it.
pub fn snapshot(index: &IndexIdentity) -> Spec {
    Spec {
        units: "bytes",
        abortable: true,
        ..spec("snapshot", of_index(index))
    }
}

/// A reader of a table's log that is behind by so many seconds.
pub fn catch_up(table: &TableIdentity, reader: &str, behind_s: u64) -> Spec {
    let scope = Scope {
        entity: Some(reader.to_owned()),
        ..of_table(table)
    };
    Spec {
        units: "seconds",
        total: Some(behind_s),
        ..spec("catch_up", scope)
    }
}

/// The comparison of an index with its table.
pub fn repair(index: &IndexIdentity) -> Spec {
    Spec {
        units: "token_ranges",
        counters: repair::COUNTERS,
        abortable: true,
        ..spec("repair", of_index(index))
    }
}

/// A part of the ring in a repair.
pub fn repair_of_range(index: &IndexIdentity, range: TokenRange) -> Spec {
    spec("repair", of_index(index).in_range(seen(range)))
}

/// Rows that looked different, which a repair looks at once more and mends.
pub fn mend(index: &IndexIdentity, rows: usize) -> Spec {
    Spec {
        total: Some(rows as u64),
        ..spec("mend", of_index(index))
    }
}

/// All files being read and checked. It is on the whole node.
pub fn scrub() -> Spec {
    Spec {
        units: "bytes",
        counters: scrub::COUNTERS,
        abortable: true,
        ..spec("scrub", Scope::default())
    }
}

/// What nothing else is said of: it counts rows, how many is not known.
fn spec(kind: &'static str, scope: Scope) -> Spec {
    Spec {
        kind,
        scope,
        units: "rows",
        total: None,
        counters: &[],
        // An index that is not built, or does not follow its table, is of no use; who doesn't want
        // it drops it.
        abortable: false,
    }
}

fn of_table(table: &TableIdentity) -> Scope {
    Scope {
        keyspace: Some(table.keyspace.clone()),
        table: Some(table.table.clone()),
        ..Scope::default()
    }
}

fn of_index(index: &IndexIdentity) -> Scope {
    Scope {
        index: Some(index.name.index.clone()),
        ..of_table(&index.table)
    }
}

fn seen(range: TokenRange) -> tasks::TokenRange {
    tasks::TokenRange {
        start: range.start,
        end: range.end,
    }
}
