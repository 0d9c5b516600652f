//! The cells of a row as statements: one for each write time and expiry that the row's cells have.
//!
//! ```text
//! marker at T, cells at T          INSERT INTO t (key, a, b) VALUES ... USING TIMESTAMP T
//! cells at U that expire at E      UPDATE t USING TIMESTAMP U AND TTL E-now SET c = ? WHERE key
//! elements of a set or map at U    ... SET m = m + {...}: an assignment would delete the others
//! fields of a type at U            ... SET u.f = ?
//! elements of a list               read, then appended: a list has no names for its elements
//! counters                         read, then increased by what is missing
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{Column, ColumnId, Table};
use storage::{CellRow, CellTime, StoredCell};
use value::{CqlType, join_elements, join_entries};

/// The longest time to live that CQL takes, seconds.
const TTL_MAX_S: i64 = 20 * 365 * 24 * 3600;

/// A part of SET, or a column of an INSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AssignedPart {
    /// The whole value of a column.
    Value(ColumnId),
    /// Elements that are added to a set or a map.
    Elements(ColumnId),
    /// A field of a user type, by its position.
    Field(ColumnId, usize),
}

/// The form of a statement: the same text serves all rows with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StatementForm {
    /// Whether it is an INSERT, which makes the row exist without other cells.
    pub is_insert: bool,
    /// Whether its row is that of the static columns, which has no clustering key.
    pub is_static: bool,
    /// The parts, each with a marker, in their order.
    pub parts: Vec<AssignedPart>,
}

/// A statement that can be sent again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellStatement {
    /// The form.
    pub form: StatementForm,
    /// The values of the parts.
    pub values: Vec<Bytes>,
    /// The time and the expiry of all of it.
    pub time: CellGroupTime,
}

/// Elements of a list with one time, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListRun {
    /// The elements.
    pub elements: Vec<Bytes>,
    /// Their time.
    pub time: CellGroupTime,
}

/// The statements of a row, and what has to be read before it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowStatements {
    /// Statements, in the order of their times.
    pub plain: Vec<CellStatement>,
    /// Lists by column.
    pub lists: BTreeMap<ColumnId, Vec<ListRun>>,
    /// The totals of counters by column.
    pub counters: BTreeMap<ColumnId, i64>,
}

/// A write time and an expiry. `Ord` by the write time first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellGroupTime {
    /// Microseconds since the epoch.
    pub write_micros: i64,
    /// Seconds since the epoch; `None` for never.
    pub expires_at_s: Option<i64>,
}

impl CellGroupTime {
    fn of(time: CellTime) -> CellGroupTime {
        CellGroupTime {
            write_micros: time.write_micros,
            expires_at_s: time.expires_at_s,
        }
    }

    /// Whether what was written with it is dead at a time, in seconds since the epoch.
    fn is_dead(self, now_s: i64) -> bool {
        self.expires_at_s.is_some_and(|at| at <= now_s)
    }

    /// The time to live from a time on, as a statement has it. 0 is for ever, whatever the table's
    /// default is.
    pub(super) fn ttl_s(self, now_s: i64) -> i32 {
        let left = self
            .expires_at_s
            .map_or(0, |at| at.saturating_sub(now_s).clamp(1, TTL_MAX_S));
        i32::try_from(left).unwrap_or(i32::MAX)
    }
}

/// The cells of one time.
#[derive(Default)]
struct CellGroup<'r> {
    has_marker: bool,
    values: Vec<(ColumnId, &'r Bytes)>,
    fields: Vec<(ColumnId, usize, &'r Bytes)>,
    elements: BTreeMap<ColumnId, Vec<(&'r Bytes, &'r Bytes)>>,
}

/// Groups the cells of a row into statements. Cells that are dead at `now_s` are left out.
///
/// # Errors
/// If a cell has no valid form. The text names its column.
pub(super) fn group(table: &Table, row: &CellRow, now_s: i64) -> Result<RowStatements, String> {
    let mut groups: BTreeMap<CellGroupTime, CellGroup<'_>> = BTreeMap::new();
    let mut statements = RowStatements::default();
    if let Some(time) = row
        .marker
        .map(CellGroupTime::of)
        .filter(|it| !it.is_dead(now_s))
    {
        groups.entry(time).or_default().has_marker = true;
    }
    for cell in &row.cells {
        let time = CellGroupTime::of(cell.time);
        // A column that was dropped has no name to write to.
        let Some(column) = table.column_by_id(cell.column) else {
            continue;
        };
        if time.is_dead(now_s) {
            continue;
        }
        match &column.cql_type {
            CqlType::Counter => {
                let total = counter(column, cell)?;
                statements.counters.insert(column.id, total);
            }
            CqlType::List { frozen: false, .. } => {
                let runs = statements.lists.entry(column.id).or_default();
                append(runs, time, cell);
            }
            _ => groups.entry(time).or_default().take(column, cell)?,
        }
    }
    for (time, group) in groups {
        group.into_statements(table, row.is_static, time, &mut statements.plain);
    }
    Ok(statements)
}

/// The total of a counter.
fn counter(column: &Column, cell: &StoredCell) -> Result<i64, String> {
    let total = cell.value.as_ref().try_into().map(i64::from_be_bytes);
    total.map_err(|_| format!("{}: a counter of {} bytes", column.name, cell.value.len()))
}

/// Adds an element to a list, whose elements come in their order.
fn append(runs: &mut Vec<ListRun>, time: CellGroupTime, cell: &StoredCell) {
    match runs.last_mut() {
        Some(last) if last.time == time => last.elements.push(cell.value.clone()),
        _ => runs.push(ListRun {
            elements: vec![cell.value.clone()],
            time,
        }),
    }
}

impl<'r> CellGroup<'r> {
    fn take(&mut self, column: &Column, cell: &'r StoredCell) -> Result<(), String> {
        let Some(path) = &cell.path else {
            self.values.push((column.id, &cell.value));
            return Ok(());
        };
        if column.cql_type.user_type().is_some() {
            let position = path.as_ref().try_into().map(i16::from_be_bytes);
            let position = position.ok().and_then(|it| usize::try_from(it).ok());
            let position =
                position.ok_or_else(|| format!("{}: a field without a position", column.name))?;
            self.fields.push((column.id, position, &cell.value));
        } else {
            let elements = self.elements.entry(column.id).or_default();
            elements.push((path, &cell.value));
        }
        Ok(())
    }

    fn into_statements(
        self,
        table: &Table,
        is_static: bool,
        time: CellGroupTime,
        out: &mut Vec<CellStatement>,
    ) {
        let mut values = Vec::new();
        let mut parts = Vec::new();
        for (column, value) in self.values {
            parts.push(AssignedPart::Value(column));
            values.push(value.clone());
        }
        if self.has_marker {
            // Values alone: elements that an INSERT has replace all others.
            out.push(CellStatement {
                form: StatementForm {
                    is_insert: true,
                    is_static,
                    parts: std::mem::take(&mut parts),
                },
                values: std::mem::take(&mut values),
                time,
            });
        }
        for (column, position, value) in self.fields {
            parts.push(AssignedPart::Field(column, position));
            values.push(value.clone());
        }
        for (column, elements) in self.elements {
            let is_map = table
                .column_by_id(column)
                .is_some_and(|column| matches!(column.cql_type, CqlType::Map { .. }));
            parts.push(AssignedPart::Elements(column));
            values.push(match is_map {
                true => join_entries(elements.iter().map(|(key, value)| (&key[..], &value[..]))),
                false => join_elements(elements.iter().map(|(element, _)| &element[..])),
            });
        }
        if !parts.is_empty() {
            out.push(CellStatement {
                form: StatementForm {
                    is_insert: false,
                    is_static,
                    parts,
                },
                values,
                time,
            });
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use schema::{ColumnKind, TableId, TablePartitioner};
    use uuid::Uuid;
    use value::UserType;

    use super::*;

    const NOW_S: i64 = 1_000;

    /// A column of each form: a key, a clustering column, a static one, values and collections.
    fn columns() -> Vec<Column> {
        let text = || Box::new(CqlType::Text);
        let pair = UserType {
            keyspace: "ks".to_owned(),
            name: "pair".to_owned(),
            field_names: vec!["a".to_owned(), "B".to_owned()],
            field_types: vec![CqlType::Int, CqlType::Int],
        };
        let (key, value, element) = (text(), text(), text());
        let clustering = ColumnKind::Clustering {
            position: 0,
            descending: false,
        };
        let frozen = false;
        let map = CqlType::Map { key, value, frozen };
        let set = CqlType::Set { element, frozen };
        let element = text();
        let list = CqlType::List { element, frozen };
        let definition = std::sync::Arc::new(pair);
        let user = CqlType::UserType { definition, frozen };
        let columns = [
            ("p", ColumnKind::PartitionKey { position: 0 }, CqlType::Int),
            ("c", clustering, CqlType::Int),
            ("st", ColumnKind::Static, CqlType::Text),
            ("a", ColumnKind::Regular, CqlType::Text),
            ("Odd", ColumnKind::Regular, CqlType::Int),
            ("m", ColumnKind::Regular, map),
            ("s", ColumnKind::Regular, set),
            ("l", ColumnKind::Regular, list),
            ("u", ColumnKind::Regular, user),
        ];
        let columns = columns.into_iter().enumerate();
        columns
            .map(|(id, (name, kind, cql_type))| Column {
                id: ColumnId(id as u32),
                name: name.to_owned(),
                kind,
                cql_type,
            })
            .collect()
    }

    /// A table `ks.t` with these columns.
    pub(in crate::by_cql) fn table() -> Table {
        let columns = columns();
        Table {
            id: TableId(Uuid::nil()),
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            next_column: ColumnId(columns.len() as u32),
            columns,
            dropped_columns: BTreeMap::new(),
            partitioner: TablePartitioner::Murmur3,
            default_ttl_s: 0,
            row_ttl: None,
            gc_grace_s: 0,
            options: BTreeMap::new(),
            indexes: BTreeMap::new(),
            secondary_indexes: BTreeMap::new(),
            cdc: None,
            log: None,
            log_of: None,
            truncated_at_ms: None,
        }
    }

    fn at(write_micros: i64, expires_at_s: Option<i64>) -> CellTime {
        CellTime {
            write_micros,
            expires_at_s,
        }
    }

    fn cell(
        table: &Table,
        column: &str,
        path: Option<&[u8]>,
        value: &[u8],
        time: CellTime,
    ) -> StoredCell {
        StoredCell {
            column: table.column(column).unwrap().id,
            path: path.map(Bytes::copy_from_slice),
            value: Bytes::copy_from_slice(value),
            time,
        }
    }

    fn row(marker: Option<CellTime>, cells: Vec<StoredCell>) -> CellRow {
        CellRow {
            key: vec![
                Bytes::from_static(&[0, 0, 0, 1]),
                Bytes::from_static(&[0, 0, 0, 2]),
            ],
            is_static: false,
            marker,
            cells,
        }
    }

    #[test]
    fn cells_of_one_time_are_one_statement() {
        let table = table();
        let cells = vec![
            cell(&table, "a", None, b"x", at(5, None)),
            cell(&table, "Odd", None, &[0, 0, 0, 9], at(5, None)),
        ];
        let grouped = group(&table, &row(Some(at(5, None)), cells), NOW_S).unwrap();
        let [insert] = &grouped.plain[..] else {
            panic!("{grouped:?}");
        };
        assert!(insert.form.is_insert);
        assert_eq!(insert.form.parts.len(), 2);
        assert_eq!(insert.time.ttl_s(NOW_S), 0);
    }

    #[test]
    fn other_times_and_expiries_are_statements_of_their_own() {
        let table = table();
        let cells = vec![
            cell(&table, "a", None, b"x", at(7, Some(NOW_S + 60))),
            cell(&table, "Odd", None, &[0, 0, 0, 9], at(6, None)),
        ];
        let grouped = group(&table, &row(Some(at(5, None)), cells), NOW_S).unwrap();
        let times: Vec<_> = grouped
            .plain
            .iter()
            .map(|it| {
                (
                    it.time.write_micros,
                    it.time.ttl_s(NOW_S),
                    it.form.is_insert,
                )
            })
            .collect();
        assert_eq!(times, [(5, 0, true), (6, 0, false), (7, 60, false)]);
        assert!(grouped.plain[0].form.parts.is_empty(), "the key alone");
    }

    #[test]
    fn expired_cells_are_left_out_and_a_row_without_a_marker_is_an_update() {
        let table = table();
        let cells = vec![
            cell(&table, "a", None, b"x", at(7, Some(NOW_S))),
            cell(&table, "Odd", None, &[0, 0, 0, 9], at(6, None)),
        ];
        let grouped = group(&table, &row(Some(at(5, Some(NOW_S - 1))), cells), NOW_S).unwrap();
        assert_eq!(grouped.plain.len(), 1);
        assert!(!grouped.plain[0].form.is_insert);
        let far = CellGroupTime::of(at(1, Some(i64::MAX)));
        assert_eq!(i64::from(far.ttl_s(NOW_S)), TTL_MAX_S);
    }

    #[test]
    fn elements_are_added_by_their_times_and_never_assigned() {
        let table = table();
        let cells = vec![
            cell(&table, "m", Some(b"k1"), b"v1", at(5, None)),
            cell(&table, "m", Some(b"k2"), b"v2", at(5, None)),
            cell(&table, "m", Some(b"k3"), b"v3", at(6, None)),
            cell(&table, "s", Some(b"e"), b"", at(5, None)),
            cell(&table, "u", Some(&[0, 1]), &[0, 0, 0, 4], at(6, None)),
        ];
        let grouped = group(&table, &row(Some(at(5, None)), cells), NOW_S).unwrap();
        let map = table.column("m").unwrap().id;
        let [insert, first, second] = &grouped.plain[..] else {
            panic!("{grouped:?}");
        };
        assert!(insert.form.is_insert && insert.form.parts.is_empty());
        assert_eq!(first.form.parts[0], AssignedPart::Elements(map));
        assert_eq!(value::split_entries(&first.values[0]).unwrap().len(), 2);
        let set = value::split_elements(&first.values[1]).unwrap();
        assert_eq!(set, [Bytes::from_static(b"e")]);
        let user = table.column("u").unwrap().id;
        assert_eq!(
            second.form.parts,
            [AssignedPart::Field(user, 1), AssignedPart::Elements(map)]
        );
    }

    #[test]
    fn a_list_is_cut_where_the_times_of_its_elements_change() {
        let table = table();
        let of = |value: &[u8], time| cell(&table, "l", Some(b"id"), value, time);
        let cells = vec![
            of(b"1", at(5, None)),
            of(b"2", at(5, None)),
            of(b"3", at(4, None)),
        ];
        let grouped = group(&table, &row(None, cells), NOW_S).unwrap();
        assert!(grouped.plain.is_empty());
        let runs = &grouped.lists[&table.column("l").unwrap().id];
        let lengths: Vec<usize> = runs.iter().map(|run| run.elements.len()).collect();
        assert_eq!(lengths, [2, 1]);
        assert_eq!(runs[1].time.write_micros, 4);
    }

    #[test]
    fn counters_are_totals_and_faults_name_their_column() {
        let mut counters = table();
        counters.columns[4].cql_type = CqlType::Counter;
        let cells = vec![cell(
            &counters,
            "Odd",
            None,
            &7_i64.to_be_bytes(),
            at(5, None),
        )];
        let grouped = group(&counters, &row(None, cells), NOW_S).unwrap();
        assert_eq!(grouped.counters.values().collect::<Vec<_>>(), [&7]);
        let cells = vec![cell(&counters, "Odd", None, b"short", at(5, None))];
        let error = group(&counters, &row(None, cells), NOW_S).unwrap_err();
        assert!(error.starts_with("Odd:"), "{error}");
        let cells = vec![cell(&table(), "u", Some(b"x"), b"", at(5, None))];
        assert!(group(&table(), &row(None, cells), NOW_S).is_err());
    }
}
