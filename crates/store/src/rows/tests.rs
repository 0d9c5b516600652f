use index::SimilarityFunction;
use uuid::Uuid;

use super::*;
use crate::keys::tests::text_schema;
use crate::observed::IndexableType;

/// A reader of a table with two partition key columns, a clustering column, and a vector of two
/// elements.
pub(crate) fn reader() -> RowReader {
    RowReader {
        table: TableIdentity {
            keyspace: "Ks".into(),
            table: "t".into(),
            id: Uuid::nil(),
        },
        keys: text_schema(2, 1),
        columns: vec![ObservedColumn {
            name: "a\"b".into(),
            form: IndexableType::Vector {
                dimensions: 2,
                metric: SimilarityFunction::Cosine,
            },
            in_key: None,
        }],
    }
}

#[test]
fn an_indexed_key_column_is_in_the_key_of_each_row() {
    let in_key = ObservedColumn {
        name: "c0".into(),
        form: IndexableType::Text,
        in_key: Some(2),
    };
    let mut reader = reader();
    reader.columns.insert(0, in_key);
    assert_eq!(reader.stored_columns().count(), 1);
    let vector: Vec<u8> = [1.0_f32, 2.0]
        .iter()
        .flat_map(|e| e.to_be_bytes())
        .collect();
    let cell = RawCell {
        value: &vector,
        written_us: 7,
        expires_s: None,
    };
    let row = reader.row_that_may_end(&[b"a", b"b", b"green tea"], [Some(cell)], Some(9));
    let [ColumnCell::Value(text), ColumnCell::Value(vector)] = &row.cells[..] else {
        panic!("{row:?}");
    };
    assert_eq!(text.value, IndexableValue::Text("green tea".to_owned()));
    assert_eq!((text.written_us, text.filters_change_s), (0, Some(9)));
    assert_eq!((vector.written_us, vector.filters_change_s), (7, None));
    assert_eq!(row.value_bytes(), 9 + 8);
}
