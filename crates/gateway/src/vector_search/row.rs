//! A row of the cluster, and the encoding of the rows of an answer.

use bytes::Bytes;
use cql::wire::{ColumnsMetadata, RowsEncoder};

use crate::key_read::ReadRowLayout;

/// The cells of a row as it was read; `None` for null.
pub(super) type Row = Vec<Option<Bytes>>;

/// Encodes the result that the client requested. `columns` are the columns of the rows that were
/// read.
pub(super) fn encode(
    rows: &[Row],
    columns: &ColumnsMetadata,
    layout: &ReadRowLayout,
    skip_metadata: bool,
) -> cql::wire::EncodedRows {
    let shown = ColumnsMetadata {
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

    #[test]
    fn the_client_gets_the_columns_that_it_selected() {
        let columns = ColumnsMetadata {
            columns: vec![column("name"), column("id"), column("v")],
        };
        let layout = ReadRowLayout {
            shown: 1,
            key: vec![1],
            vector: Some(2),
            checked: Vec::new(),
        };
        let text = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
        let rows = [vec![text("a"), text("1"), None]];
        let encoded = encode(&rows, &columns, &layout, false).decode().unwrap();
        assert_eq!(encoded.metadata.unwrap().columns, [column("name")]);
        assert_eq!(encoded.rows, [rows[0][..1].to_vec()]);
        let bare = encode(&rows, &columns, &layout, true).decode().unwrap();
        assert_eq!((bare.metadata, bare.rows.len()), (None, 1));
    }
}
