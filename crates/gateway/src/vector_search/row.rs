//! A row of the cluster, and the encoding of the rows of an answer.

use bytes::Bytes;
use cql::wire::{ColumnsMetadata, EncodedRows, RowsEncoder};

/// The cells of a row as it was read; `None` for null.
pub(super) type Row = Vec<Option<Bytes>>;

/// A row of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AnswerRow {
    /// The cells as they were read.
    pub(super) read: Row,
    /// The cells that the gateway computed.
    pub(super) computed: Row,
}

/// The source of a cell of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellSource {
    /// The position in the row that was read.
    Read(usize),
    /// The position among the cells that the gateway computes.
    Computed(usize),
}

impl AnswerRow {
    /// The cell of this source; `None` for null.
    fn cell(&self, source: CellSource) -> Option<&[u8]> {
        let cell = match source {
            CellSource::Read(position) => self.read.get(position),
            CellSource::Computed(position) => self.computed.get(position),
        };
        cell?.as_deref()
    }
}

/// Encodes the result that the client requested, whose `columns` have these `sources`.
pub(super) fn encode(
    rows: &[AnswerRow],
    columns: &ColumnsMetadata,
    sources: &[CellSource],
    skip_metadata: bool,
    paging_state: Option<Bytes>,
) -> EncodedRows {
    let mut encoder = RowsEncoder::new(columns, skip_metadata);
    for row in rows {
        for source in sources {
            encoder.cell(row.cell(*source));
        }
        encoder.end_row();
    }
    encoder.finish(paging_state)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::column;
    use super::*;

    #[test]
    fn the_client_gets_the_columns_that_it_selected() {
        let columns = ColumnsMetadata {
            columns: vec![column("score"), column("name")],
        };
        let sources = [CellSource::Computed(0), CellSource::Read(0)];
        let text = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
        let rows = [AnswerRow {
            read: vec![text("a"), text("1"), None],
            computed: vec![text("0.5")],
        }];
        let encoded = encode(&rows, &columns, &sources, false, None);
        let encoded = encoded.decode().unwrap();
        let told = encoded.metadata.unwrap().columns;
        assert_eq!(told, [column("score"), column("name")]);
        assert_eq!(encoded.rows, [vec![text("0.5"), text("a")]]);
        let state = Some(Bytes::from_static(b"next"));
        let bare = encode(&rows, &columns, &sources, true, state.clone());
        let bare = bare.decode().unwrap();
        assert_eq!((bare.metadata, bare.rows.len()), (None, 1));
        assert_eq!(bare.paging_state, state);
    }
}
