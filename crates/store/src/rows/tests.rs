use uuid::Uuid;

use super::*;
use crate::keys::tests::text_schema;

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
        columns: vec![VectorColumn {
            name: "a\"b".into(),
            dimensions: 2,
        }],
    }
}

#[test]
fn vectors_are_checked() {
    let column = &reader().columns[0];
    let bytes =
        |elements: &[f32]| -> Vec<u8> { elements.iter().flat_map(|e| e.to_be_bytes()).collect() };
    assert_eq!(
        decode_vector(column, &bytes(&[1.0, -2.0])),
        Ok(vec![1.0, -2.0])
    );
    assert_eq!(
        decode_vector(column, &bytes(&[1.0])),
        Err(Unusable::Length {
            expected_bytes: 8,
            actual_bytes: 4
        })
    );
    assert_eq!(
        decode_vector(column, &bytes(&[1.0, f32::NAN])),
        Err(Unusable::NotFinite { position: 1 })
    );
}
