//! Putting rows that were read by their keys into the order of the neighbours.

use std::collections::HashMap;

use ann_query::{Nearest, Similarity};
use bytes::Bytes;
use cql::wire::{Metadata, RowsEncoder};

use super::key_read::{Key, Layout};

/// A row as it was read: its cells, `None` for null.
pub(super) type Row = Vec<Option<Bytes>>;

/// The rows in the order of `keys`, nearest first. A key without a row, or whose row was read with its vector and has none,
/// has none here: the row was deleted since, or lost its vector.
pub(super) fn in_order(
    rows: impl IntoIterator<Item = Row>,
    keys: &[Key],
    layout: &Layout,
) -> Vec<Row> {
    let places: HashMap<&[Bytes], usize> = keys
        .iter()
        .enumerate()
        .map(|(place, key)| (key.as_slice(), place))
        .collect();
    let mut found: Vec<Option<Row>> = vec![None; keys.len()];
    for row in rows {
        if layout.vector.is_some_and(|vector| row[vector].is_none()) {
            continue;
        }
        let key = layout.key.iter().map(|column| row[*column].clone());
        let place = key
            .collect::<Option<Key>>()
            .and_then(|key| places.get(key.as_slice()).copied());
        if let Some(place) = place {
            found[place] = Some(row);
        }
    }
    found.into_iter().flatten().collect()
}

/// The `limit` rows that are nearest by their stored vectors.
pub(super) fn rescored(
    rows: Vec<Row>,
    similarity: Similarity,
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

/// The result set that the client asked for; `columns` are those of the rows.
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
        let found = in_order(rows, &keys(&["3", "2", "4", "1"]), &layout());
        assert_eq!(names(&found), "ca");
    }

    #[test]
    fn candidates_are_put_in_order_by_their_vectors() {
        let vector = |elements: [f32; 2]| elements.map(f32::to_be_bytes).concat();
        let rows = vec![
            row("a", "1", Some(&vector([0.0, 1.0]))),
            row("b", "2", Some(&vector([1.0, 0.0]))),
            row("c", "3", Some(&vector([1.0, 1.0]))),
        ];
        let best = rescored(rows, Similarity::Cosine, &vector([2.0, 0.1]), &layout(), 2);
        assert_eq!(names(&best), "bc");
    }

    #[test]
    fn the_client_gets_the_columns_that_it_asked_for() {
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
