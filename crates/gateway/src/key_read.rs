//! The statement that reads the rows of known keys, and the values with which it is executed.
//!
//! | primary key | one read |
//! | --- | --- |
//! | `(p)` | `p IN ?`: up to [`KEYS_A_READ`] rows |
//! | `(p, q)` as the partition key | `p = ? AND q = ?`: one row |
//! | `(p), c` | `p = ? AND c IN ?`: the rows of one partition |
//! | `(p), c, d` | `p = ? AND (c, d) IN ?`: the rows of one partition |
//!
//! Several reads are on their way at once. The cluster returns the rows of a read in its own order,
//! so the read also selects the key columns, which identify the rows, and removes them afterwards.
//! It also selects the columns that WHERE names, and those of the searches whose vectors or texts
//! are needed: to put candidates in order by them, to give them true scores, for highlights.
//!
//! A [`TableRead`] reads all rows, for a query whose rows no index can name.
//!
//! A row without a vector is left out only where the vector is read anyway. It is never read just
//! for this: even `WRITETIME(v)` makes the node fetch the whole vector, a fifth of the time that
//! reading ten rows of 384 floats takes, and the index learns of the removed vector within moments.

use std::collections::HashMap;

use bytes::{BufMut, Bytes, BytesMut};
use cql::ast::{ProjectionList, Selector};
use cql::error::CqlError;
use cql::quote::quoted;
use cql::wire::{BoundValue, ColumnsMetadata};
use value::join_elements;

use crate::catalog::LoggedTable;

/// The most partitions that one read names: a coordinator reads all of them at once, and holds
/// their rows until the last one has come.
const KEYS_A_READ: usize = 100;

/// A primary key: the serialised values of its columns, partition key first.
pub(crate) type Key = Vec<Bytes>;

/// A statement that reads rows by their keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyRead {
    /// The CQL text. Its bind markers are those of the selection, then those of the key.
    pub(crate) text: String,
    /// The number of columns of the partition key.
    partition_columns: usize,
    /// The number of clustering columns.
    clustering_columns: usize,
    /// The positions of the columns in the rows that are read.
    places: NeededPositions,
}

/// The positions of the needed columns in the rows that are read. They follow from the text, unless
/// all columns are selected.
#[derive(Clone, Debug, PartialEq)]
enum NeededPositions {
    Known(ReadRowLayout),
    /// All columns are selected: positions are found by the names of the columns in the answer.
    ByName {
        key: Vec<String>,
        searched: Vec<String>,
        checked: Vec<String>,
    },
}

/// The layout of the rows that are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReadRowLayout {
    /// The number of columns that the cluster reads for the client. They come first.
    pub(crate) shown: usize,
    /// The positions of the columns of the primary key.
    pub(crate) key: Vec<usize>,
    /// The positions of the columns of searches, in the order in which they were given; `None` for
    /// one that is not read.
    pub(crate) searched: Vec<Option<usize>>,
    /// The positions of the columns outside of the key that WHERE names, in the order in which they
    /// were given.
    pub(crate) checked: Vec<usize>,
}

impl ReadRowLayout {
    /// The layout of rows that hold no more than what the client selected, in this many columns.
    pub(crate) fn of_shown(shown: usize) -> ReadRowLayout {
        ReadRowLayout {
            shown,
            key: Vec::new(),
            searched: Vec::new(),
            checked: Vec::new(),
        }
    }
}

/// A column that searches look at: one of vectors, or of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchedColumn {
    /// The name of the column.
    pub(crate) name: String,
    /// Whether the value is read as it is stored, even if it is not selected.
    pub(crate) is_needed: bool,
}

/// The columns that are read in addition to the primary key and those that the client selects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeededColumns<'a> {
    /// The columns of searches.
    pub(crate) searched: &'a [SearchedColumn],
    /// The columns outside of the key that WHERE names.
    pub(crate) checked: &'a [String],
}

/// A statement that reads all rows of a table, page by page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRead {
    /// The CQL text, without WHERE. Its bind markers are those of the selection.
    pub(crate) text: String,
    /// The positions of the columns in the rows that are read.
    places: NeededPositions,
}

impl KeyRead {
    /// Makes the statement for what a client selects of the cluster. `selection` is the text of
    /// `projection`, empty if that has no items.
    pub(crate) fn of(
        selection: &str,
        projection: &ProjectionList,
        table: &LoggedTable,
        needed: NeededColumns<'_>,
    ) -> KeyRead {
        let (head, places) = head(selection, projection, table, needed);
        KeyRead {
            text: format!("{head} WHERE {}", restrictions(table)),
            partition_columns: table.partition_key_count,
            clustering_columns: table.clustering_key_count,
            places,
        }
    }

    /// The layout of the rows, given the columns that the cluster names.
    ///
    /// # Errors
    /// If these columns are not those that were selected.
    pub(crate) fn layout(&self, columns: &ColumnsMetadata) -> Result<ReadRowLayout, CqlError> {
        self.places.layout(columns)
    }

    /// Whether the rows are read with a column of searches.
    pub(crate) fn reads(&self, searched: usize) -> bool {
        match &self.places {
            NeededPositions::Known(layout) => {
                matches!(layout.searched.get(searched), Some(Some(_)))
            }
            NeededPositions::ByName { searched: all, .. } => searched < all.len(),
        }
    }

    /// The bound values of the reads that together read the rows of `keys`, one list for each read.
    /// `selection` holds the values of the selection's markers.
    pub(crate) fn values(&self, keys: &[Key], selection: &[BoundValue]) -> Vec<Vec<BoundValue>> {
        let with_selection = |key: Vec<Bytes>| {
            let key = key.into_iter().map(BoundValue::Value);
            selection.iter().cloned().chain(key).collect()
        };
        match (self.partition_columns, self.clustering_columns) {
            (1, 0) => keys
                .chunks(KEYS_A_READ)
                .map(|keys| {
                    let partitions = keys.iter().map(|key| key[0].as_ref());
                    with_selection(vec![join_elements(partitions)])
                })
                .collect(),
            (_, 0) => keys.iter().cloned().map(with_selection).collect(),
            _ => self
                .by_partition(keys)
                .into_iter()
                .map(|(partition, rows)| {
                    let mut key = partition.to_vec();
                    key.push(join_elements(rows.iter().map(Bytes::as_ref)));
                    with_selection(key)
                })
                .collect(),
        }
    }

    /// The partitions in the order in which `keys` first names them, each with its clustering keys.
    fn by_partition<'k>(&self, keys: &'k [Key]) -> Vec<(&'k [Bytes], Vec<Bytes>)> {
        let mut places: HashMap<&[Bytes], usize> = HashMap::new();
        let mut partitions: Vec<(&[Bytes], Vec<Bytes>)> = Vec::new();
        for key in keys {
            let (partition, clustering) = key.split_at(self.partition_columns);
            let place = *places.entry(partition).or_insert_with(|| {
                partitions.push((partition, Vec::new()));
                partitions.len() - 1
            });
            partitions[place].1.push(match clustering {
                [one] => one.clone(),
                several => tuple(several),
            });
        }
        partitions
    }
}

impl TableRead {
    /// Makes the statement for what a client selects, as [`KeyRead::of`]. The columns of searches
    /// are read in any case, as rows come in no order of their own.
    pub(crate) fn of(
        selection: &str,
        projection: &ProjectionList,
        table: &LoggedTable,
        needed: NeededColumns<'_>,
    ) -> TableRead {
        let read = |column: &SearchedColumn| SearchedColumn {
            is_needed: true,
            ..column.clone()
        };
        let searched: Vec<SearchedColumn> = needed.searched.iter().map(read).collect();
        let needed = NeededColumns {
            searched: &searched,
            ..needed
        };
        let (text, places) = head(selection, projection, table, needed);
        TableRead { text, places }
    }

    /// The layout of the rows, given the columns that the cluster names.
    ///
    /// # Errors
    /// If these columns are not those that were selected.
    pub(crate) fn layout(&self, columns: &ColumnsMetadata) -> Result<ReadRowLayout, CqlError> {
        self.places.layout(columns)
    }
}

impl NeededPositions {
    fn layout(&self, columns: &ColumnsMetadata) -> Result<ReadRowLayout, CqlError> {
        let count = columns.columns.len();
        let layout = match self {
            NeededPositions::Known(layout) => Some(layout.clone()),
            NeededPositions::ByName {
                key,
                searched,
                checked,
            } => {
                let place = |name: &String| {
                    let named = |column: &cql::wire::ColumnSpec| *column.name == **name;
                    columns.columns.iter().position(named)
                };
                let all =
                    |names: &[String]| names.iter().map(place).collect::<Option<Vec<usize>>>();
                all(key).zip(all(checked)).and_then(|(key, checked)| {
                    Some(ReadRowLayout {
                        shown: count,
                        key,
                        searched: all(searched)?.into_iter().map(Some).collect(),
                        checked,
                    })
                })
            }
        };
        layout
            .filter(|layout| {
                let places = layout.key.iter().chain(layout.searched.iter().flatten());
                let last = places.chain(&layout.checked).max();
                layout.shown <= count && last.is_some_and(|last| *last < count)
            })
            .ok_or_else(|| {
                CqlError::server(
                    "Cassandra answered with other columns than the gateway asked for: try again",
                )
            })
    }
}

/// The statement without WHERE that reads what a client selects and what else is needed, and the
/// places of the columns.
fn head(
    selection: &str,
    projection: &ProjectionList,
    table: &LoggedTable,
    needed: NeededColumns<'_>,
) -> (String, NeededPositions) {
    let mut appended: Vec<&str> = Vec::new();
    let places = match projection {
        ProjectionList::All => NeededPositions::ByName {
            key: names(table),
            searched: needed.searched.iter().map(|one| one.name.clone()).collect(),
            checked: needed.checked.to_vec(),
        },
        ProjectionList::Items(items) => {
            let shown = items.len();
            let selected = |name: &str| {
                items.iter().position(
                    |item| matches!(&item.selector, Selector::Column(column) if column == name),
                )
            };
            let mut place = |name| {
                let before = selected(name).or_else(|| {
                    let mut appended = appended.iter();
                    Some(shown + appended.position(|one| *one == name)?)
                });
                before.unwrap_or_else(|| {
                    appended.push(name);
                    shown + appended.len() - 1
                })
            };
            let key = table.primary_key().iter();
            let key = key.map(|column| place(&column.name)).collect();
            let checked = needed.checked.iter().map(|name| place(name)).collect();
            let searched = needed.searched.iter().map(|one| match one.is_needed {
                true => Some(place(&one.name)),
                false => selected(&one.name),
            });
            let searched = searched.collect();
            NeededPositions::Known(ReadRowLayout {
                shown,
                key,
                searched,
                checked,
            })
        }
    };
    // The selection may end with a comment to the end of its line.
    let mut text = format!("SELECT {selection}\n");
    let appended: Vec<String> = appended.into_iter().map(quoted).collect();
    if !selection.is_empty() && !appended.is_empty() {
        text += ", ";
    }
    text += &appended.join(", ");
    text += &format!(" FROM {}.{}", quoted(&table.keyspace), quoted(&table.name));
    (text, places)
}

fn names(table: &LoggedTable) -> Vec<String> {
    let columns = table.primary_key().iter();
    columns.map(|column| column.name.clone()).collect()
}

fn restrictions(table: &LoggedTable) -> String {
    let is_whole_key = table.partition_key_count == 1 && table.clustering_key_count == 0;
    let partition = table.partition_key().iter().map(|column| {
        let operator = if is_whole_key { "IN" } else { "=" };
        format!("{} {operator} ?", quoted(&column.name))
    });
    let clustering: Vec<String> = table
        .clustering_key()
        .iter()
        .map(|column| quoted(&column.name))
        .collect();
    let clustering = match clustering.as_slice() {
        [] => None,
        [one] => Some(format!("{one} IN ?")),
        several => Some(format!("({}) IN ?", several.join(", "))),
    };
    partition
        .chain(clustering)
        .collect::<Vec<_>>()
        .join(" AND ")
}

/// Serialises a tuple of serialised values.
fn tuple(values: &[Bytes]) -> Bytes {
    let mut out = BytesMut::new();
    for value in values {
        out.put_i32(i32::try_from(value.len()).expect("bug: a key column beyond 31 bits"));
        out.put_slice(value);
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::{parse_statement, selection_text};

    use super::*;
    use crate::catalog::LoggedColumnKind;
    use crate::vector_search::fixtures::{column, table};

    fn read(select: &str, table: &LoggedTable, needs_vector: bool) -> KeyRead {
        let Statement::Select(parsed) = parse_statement(select).unwrap().statement else {
            panic!("{select}")
        };
        let selection = selection_text(select).unwrap().text;
        let searched = [SearchedColumn {
            name: "v".to_owned(),
            is_needed: needs_vector,
        }];
        let needed = NeededColumns {
            searched: &searched,
            checked: &[],
        };
        KeyRead::of(selection, &parsed.projection, table, needed)
    }

    fn keys(keys: &[&[&'static str]]) -> Vec<Key> {
        let bytes = |value: &&'static str| Bytes::from_static(value.as_bytes());
        keys.iter()
            .map(|key| key.iter().map(bytes).collect())
            .collect()
    }

    #[test]
    fn key_columns_are_read_too() {
        let read = read(
            "SELECT name, length(v) FROM films",
            &table(&["id"], &[]),
            false,
        );
        assert_eq!(
            read.text,
            "SELECT name, length(v) \n, \"id\" FROM \"shop\".\"films\" WHERE \"id\" IN ?"
        );
        let columns = ColumnsMetadata {
            columns: vec![column("name"), column("x"), column("id")],
        };
        let layout = ReadRowLayout {
            shown: 2,
            key: vec![2],
            searched: vec![None],
            checked: Vec::new(),
        };
        assert_eq!(read.layout(&columns), Ok(layout));
        assert!(read.layout(&ColumnsMetadata::default()).is_err());
    }

    #[test]
    fn columns_that_are_selected_anyway_are_read_once() {
        let table = table(&["id"], &[]);
        let selects_it = read("SELECT v, id FROM films", &table, true);
        assert_eq!(
            selects_it.text,
            "SELECT v, id \n FROM \"shop\".\"films\" WHERE \"id\" IN ?"
        );
        let all = read("SELECT * FROM films", &table, false);
        assert_eq!(
            all.text,
            "SELECT * \n FROM \"shop\".\"films\" WHERE \"id\" IN ?"
        );
        let columns = ColumnsMetadata {
            columns: vec![column("id"), column("name"), column("v")],
        };
        let layout = all.layout(&columns).unwrap();
        assert_eq!(
            (layout.shown, layout.key, layout.searched),
            (3, vec![0], vec![Some(2)])
        );
        let renamed = read("SELECT name AS id FROM films", &table, true);
        assert!(
            renamed
                .text
                .starts_with("SELECT name AS id \n, \"id\", \"v\" FROM")
        );
    }

    #[test]
    fn columns_of_searches_are_read_once_where_they_are_needed() {
        let table = table(&["id"], &[]);
        let column = |name: &str, is_needed| SearchedColumn {
            name: name.to_owned(),
            is_needed,
        };
        let searched = [column("v", true), column("name", true), column("w", false)];
        let needed = NeededColumns {
            searched: &searched,
            checked: &["name".to_owned()],
        };
        let nothing = ProjectionList::Items(Vec::new());
        let read = KeyRead::of("", &nothing, &table, needed);
        assert_eq!(
            read.text,
            "SELECT \n\"id\", \"name\", \"v\" FROM \"shop\".\"films\" WHERE \"id\" IN ?"
        );
        let NeededPositions::Known(layout) = read.places else {
            panic!("{read:?}")
        };
        assert_eq!(
            (layout.shown, layout.key, layout.checked),
            (0, vec![0], vec![1])
        );
        assert_eq!(layout.searched, [Some(2), Some(1), None]);
        let scan = TableRead::of("", &nothing, &table, needed);
        assert!(scan.text.contains("\"w\""), "{}", scan.text);
    }

    #[test]
    fn rows_of_a_partition_are_read_together() {
        let read = read(
            "SELECT f(v, ?) FROM films",
            &table(&["p"], &["c", "D"]),
            false,
        );
        assert!(
            read.text
                .ends_with(" WHERE \"p\" = ? AND (\"c\", \"D\") IN ?")
        );
        let selection = [BoundValue::Null];
        let keys = keys(&[&["a", "x", "y"], &["b", "x", "y"], &["a", "", "z"]]);
        let values = read.values(&keys, &selection);
        let in_a = Bytes::from_static(
            b"\0\0\0\x02\0\0\0\x0a\0\0\0\x01x\0\0\0\x01y\0\0\0\x09\0\0\0\0\0\0\0\x01z",
        );
        assert_eq!(
            values[0],
            [
                BoundValue::Null,
                BoundValue::Value(Bytes::from_static(b"a")),
                BoundValue::Value(in_a)
            ]
        );
        assert_eq!(values.len(), 2);
    }

    #[test]
    fn partitions_are_read_together_but_not_all_at_once() {
        let one = read("SELECT id FROM films", &table(&["id"], &[]), false);
        let many: Vec<Key> = (0..250)
            .map(|number: i32| vec![Bytes::copy_from_slice(&number.to_be_bytes())])
            .collect();
        let values = one.values(&many, &[]);
        assert_eq!(values.len(), 3);
        let BoundValue::Value(last) = &values[2][0] else {
            panic!("{values:?}")
        };
        assert_eq!(last.len(), 4 + 50 * 8);

        let two = read("SELECT p FROM films", &table(&["p", "q"], &[]), false);
        assert!(two.text.ends_with("WHERE \"p\" = ? AND \"q\" = ?"));
        assert_eq!(two.values(&keys(&[&["a", "b"], &["a", "c"]]), &[]).len(), 2);
        let both = read("SELECT p FROM films", &table(&["p", "q"], &["c"]), false);
        assert!(
            both.text
                .ends_with("WHERE \"p\" = ? AND \"q\" = ? AND \"c\" IN ?")
        );
        assert_eq!(
            LoggedColumnKind::Regular,
            table(&["p"], &[]).columns[1].kind
        );
    }
}
