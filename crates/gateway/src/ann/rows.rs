//! The rows that were read by their keys, and their order, which is that of the neighbours.

use std::collections::HashMap;

use bytes::Bytes;
use cql::wire::{Metadata, RowsEncoder};
use index::Metric;
use query::Nearest;

use super::key_read::{Key, Layout};

/// The cells of a row as it was read; `None` for null.
pub(super) type Row = Vec<Option<Bytes>>;

/// The rows read so far, by their keys.
#[derive(Debug, Default)]
pub(super) struct ReadRows {
    /// The rows by their keys. `None`: the row is deleted, WHERE leaves it out, or it was read with
    /// its vector and has none.
    rows: HashMap<Key, Option<Row>>,
    /// The number of `None` in `rows`.
    gone: usize,
}

impl ReadRows {
    /// The keys to read next, so that the first `enough` living rows of `keys` become known. Empty
    /// if they are known, or if all keys were read.
    pub(super) fn unread(&self, keys: &[Key], enough: usize) -> Vec<Key> {
        let mut alive = 0;
        let mut unread = Vec::new();
        for key in keys {
            // If many rows are gone, more keys are read at a time. Otherwise that would take many
            // rounds.
            let at_least = if unread.is_empty() { 0 } else { self.gone };
            if alive + unread.len() >= enough && unread.len() >= at_least {
                break;
            }
            match self.rows.get(key) {
                Some(row) => alive += usize::from(row.is_some()),
                None => unread.push(key.clone()),
            }
        }
        unread
    }

    /// Adds the rows that were read of `keys`, those that `is_wanted`. A key without one counts as
    /// gone.
    pub(super) fn add(
        &mut self,
        keys: &[Key],
        rows: Vec<Row>,
        layout: &Layout,
        is_wanted: impl Fn(&Row) -> bool,
    ) {
        let mut read: HashMap<Key, Row> = HashMap::with_capacity(rows.len());
        for row in rows {
            let has_no_vector = layout.vector.is_some_and(|vector| row[vector].is_none());
            if has_no_vector || !is_wanted(&row) {
                continue;
            }
            let key = layout.key.iter().map(|column| row[*column].clone());
            if let Some(key) = key.collect::<Option<Key>>() {
                read.insert(key, row);
            }
        }
        for key in keys {
            let row = read.remove(key);
            self.gone += usize::from(row.is_none());
            self.rows.insert(key.clone(), row);
        }
    }

    /// The first `enough` rows in the order of `keys`, nearest first.
    pub(super) fn in_order(&self, keys: &[Key], enough: usize) -> Vec<Row> {
        let rows = keys.iter().filter_map(|key| self.rows.get(key)?.clone());
        rows.take(enough).collect()
    }
}

/// The `limit` rows whose stored vectors are nearest to `vector`, nearest first.
pub(super) fn rescored(
    rows: Vec<Row>,
    similarity: Metric,
    vector: &[u8],
    layout: &Layout,
    limit: usize,
) -> Vec<Row> {
    let mut nearest = Nearest::new(limit);
    for row in rows {
        if let Some(stored) = layout.vector.and_then(|vector| row[vector].as_ref()) {
            nearest.push(similarity.score(vector, stored), row);
        }
    }
    nearest.into_best().collect()
}

/// Encodes the result that the client asked for. `columns` are the columns of the rows that were
/// read.
pub(super) fn encode(
    rows: &[Row],
    columns: &Metadata,
    layout: &Layout,
    skip_metadata: bool,
) -> cql::wire::Rows {
    let shown = Metadata {
        columns: columns.columns[..layout.shown].to_vec(),
    };
    let mut encoder = RowsEncoder::new(&shown, skip_metadata);
    for row in rows {
        for cell in &row[..layout.shown] {
            encoder.cell(cell.as_deref());
        }
        encoder.end_row();
    }
    encoder.finish(None)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::column;
    use super::*;

    const LAYOUT: Layout = Layout {
        shown: 1,
        key: Vec::new(),
        vector: Some(2),
        checked: Vec::new(),
    };

    fn layout() -> Layout {
        Layout {
            key: vec![1],
            ..LAYOUT
        }
    }

    fn row(name: &'static str, key: &'static str, vector: Option<&[u8]>) -> Row {
        vec![
            Some(Bytes::from_static(name.as_bytes())),
            Some(Bytes::from_static(key.as_bytes())),
            vector.map(Bytes::copy_from_slice),
        ]
    }

    fn names(rows: &[Row]) -> String {
        let cells = rows.iter().map(|row| row[0].clone().unwrap_or_default());
        cells
            .map(|cell| String::from_utf8(cell.to_vec()).unwrap())
            .collect()
    }

    fn keys(keys: &[&'static str]) -> Vec<Key> {
        let key = |key: &&'static str| vec![Bytes::from_static(key.as_bytes())];
        keys.iter().map(key).collect()
    }

    #[test]
    fn rows_come_in_the_order_of_the_neighbours_and_dead_ones_not_at_all() {
        let rows = vec![
            row("a", "1", Some(b"x")),
            row("b", "2", None),
            row("c", "3", Some(b"x")),
            row("d", "9", Some(b"x")),
        ];
        let keys = keys(&["3", "2", "4", "1"]);
        let mut read = ReadRows::default();
        assert_eq!(read.unread(&keys, 2), keys[..2]);
        read.add(&keys[..2], rows[1..3].to_vec(), &layout(), |_| true);
        // The row of key 2 has no vector, so it is gone.
        assert_eq!(read.unread(&keys, 2), keys[2..3]);
        read.add(&keys[2..3], Vec::new(), &layout(), |_| true);
        assert_eq!(read.unread(&keys, 2), keys[3..]);
        read.add(&keys[3..], rows, &layout(), |_| true);
        assert_eq!(names(&read.in_order(&keys, 4)), "ca");
        assert_eq!(names(&read.in_order(&keys, 1)), "c");
        assert!(read.unread(&keys, 4).is_empty());
    }

    #[test]
    fn a_thousand_rows_that_are_gone_take_few_rounds() {
        let keys: Vec<Key> = (0..1000)
            .map(|n: u32| vec![Bytes::copy_from_slice(&n.to_be_bytes())])
            .collect();
        let (mut read, mut rounds) = (ReadRows::default(), 0);
        loop {
            let unread = read.unread(&keys, 2);
            if unread.is_empty() {
                break;
            }
            rounds += 1;
            read.add(&unread, Vec::new(), &layout(), |_| true);
        }
        assert_eq!((read.gone, rounds), (1000, 10));
    }

    #[test]
    fn candidates_are_put_in_order_by_their_vectors() {
        let vector = |elements: [f32; 2]| elements.map(f32::to_be_bytes).concat();
        let rows = vec![
            row("a", "1", Some(&vector([0.0, 1.0]))),
            row("b", "2", Some(&vector([1.0, 0.0]))),
            row("c", "3", Some(&vector([1.0, 1.0]))),
        ];
        let best = rescored(rows, Metric::Cosine, &vector([2.0, 0.1]), &layout(), 2);
        assert_eq!(names(&best), "bc");
    }

    #[test]
    fn the_client_gets_the_columns_that_it_selected() {
        let columns = Metadata {
            columns: vec![column("name"), column("id"), column("v")],
        };
        let rows = [row("a", "1", None)];
        let encoded = encode(&rows, &columns, &layout(), false).decode().unwrap();
        assert_eq!(encoded.metadata.unwrap().columns, [column("name")]);
        assert_eq!(encoded.rows, [rows[0][..1].to_vec()]);
        let bare = encode(&rows, &columns, &layout(), true).decode().unwrap();
        assert_eq!((bare.metadata, bare.rows.len()), (None, 1));
    }
}
