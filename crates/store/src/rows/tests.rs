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
        }],
    }
}
