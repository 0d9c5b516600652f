//! The kinds of long work that `/api/v1/tasks` shows, each with its unit and scope.

use tasks::{TaskScope, TaskSpec};

use crate::identity::{IndexIdentity, IndexName, TableIdentity, TokenRange};

/// Steps of the build of an index: first it has its rows, by a scan or from a snapshot; then it has
/// caught up with the log.
pub(crate) const STEPS_OF_A_BUILD: u64 = 2;

/// The build of an index, from its discovery or the opening of its snapshot until it serves.
pub(crate) fn build(index: &IndexIdentity) -> TaskSpec {
    TaskSpec {
        units: "steps",
        total: Some(STEPS_OF_A_BUILD),
        ..spec("build", of_index(index))
    }
}

/// The scan of the table of an index.
pub(crate) fn scan(index: &IndexIdentity, ranges: usize) -> TaskSpec {
    TaskSpec {
        units: "token_ranges",
        total: Some(ranges as u64),
        ..spec("scan", of_index(index))
    }
}

/// The scan of one part of the ring.
pub(crate) fn scan_of_range(index: &IndexIdentity, range: TokenRange) -> TaskSpec {
    spec("scan", of_index(index).in_range(seen(range)))
}

/// One save of an index. If it is aborted, the snapshot before it remains.
pub(crate) fn snapshot(index: &IndexIdentity) -> TaskSpec {
    TaskSpec {
        units: "bytes",
        abortable: true,
        ..spec("snapshot", of_index(index))
    }
}

/// The merges of the segments of an index on texts, with the writing of segments between them.
pub(crate) fn merge(index: &IndexIdentity) -> TaskSpec {
    TaskSpec {
        units: "pieces",
        ..spec("merge", of_index(index))
    }
}

/// The catching up of a log reader that lags by the given number of seconds.
pub(crate) fn catch_up(table: &TableIdentity, reader: &str, behind_s: u64) -> TaskSpec {
    let scope = TaskScope {
        entity: Some(reader.to_owned()),
        ..of_table(table)
    };
    TaskSpec {
        units: "seconds",
        total: Some(behind_s),
        ..spec("catch_up", scope)
    }
}

/// The comparison of an index with its table, with the counters of the repair.
pub(crate) fn repair(index: &IndexIdentity, counters: &'static [&'static str]) -> TaskSpec {
    TaskSpec {
        units: "token_ranges",
        counters,
        abortable: true,
        ..spec("repair", of_index(index))
    }
}

/// The comparison of an index that the database keeps itself with its table.
pub(crate) fn repair_of_database_index(
    index: &IndexName,
    table: &TableIdentity,
    counters: &'static [&'static str],
) -> TaskSpec {
    let scope = TaskScope {
        index: Some(index.index.clone()),
        ..of_table(table)
    };
    TaskSpec {
        units: "keys",
        counters,
        abortable: true,
        ..spec("repair", scope)
    }
}

/// The repair of one part of the ring.
pub(crate) fn repair_of_range(index: &IndexIdentity, range: TokenRange) -> TaskSpec {
    spec("repair", of_index(index).in_range(seen(range)))
}

/// The mending of rows that looked different in a repair. Each of them is read once more.
pub(crate) fn repair_of_rows(index: &IndexIdentity, rows: usize) -> TaskSpec {
    TaskSpec {
        total: Some(rows as u64),
        ..spec("mend", of_index(index))
    }
}

/// The check of an index's recall with so many rows as queries.
pub(crate) fn recall(index: &IndexIdentity, queries: usize) -> TaskSpec {
    TaskSpec {
        units: "queries",
        total: Some(queries as u64),
        abortable: true,
        ..spec("recall", of_index(index))
    }
}

/// The making of an index's map.
pub(crate) fn map(index: &IndexIdentity) -> TaskSpec {
    TaskSpec {
        units: "steps",
        total: Some(point_map::LAYOUT_STEPS),
        abortable: true,
        ..spec("map", of_index(index))
    }
}

/// A scrub, which reads and checks all files, with its counters. Its scope is the whole node.
pub(crate) fn scrub(counters: &'static [&'static str]) -> TaskSpec {
    TaskSpec {
        units: "bytes",
        counters,
        abortable: true,
        ..spec("scrub", TaskScope::default())
    }
}

/// The defaults of a kind of work: it counts rows, without a known total, and can't be aborted.
fn spec(kind: &'static str, scope: TaskScope) -> TaskSpec {
    TaskSpec {
        kind,
        scope,
        units: "rows",
        total: None,
        counters: &[],
        // An index that is not built or does not follow its table is useless. To end such work,
        // drop the index.
        abortable: false,
    }
}

fn of_table(table: &TableIdentity) -> TaskScope {
    TaskScope {
        keyspace: Some(table.keyspace.clone()),
        table: Some(table.table.clone()),
        ..TaskScope::default()
    }
}

fn of_index(index: &IndexIdentity) -> TaskScope {
    TaskScope {
        index: Some(index.name.index.clone()),
        ..of_table(&index.table)
    }
}

fn seen(range: TokenRange) -> tasks::InclusiveTokenRange {
    tasks::InclusiveTokenRange {
        start: range.start,
        end: range.end,
    }
}
