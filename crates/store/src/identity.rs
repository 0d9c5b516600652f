//! The identity of an index. A difference in any part of it means another index.

use std::fmt;

use index::{FullTextOptions, VectorOptions};
use store_api::types::IndexOptions;
use uuid::Uuid;
use value::CqlType;

use crate::keys::KeySchema;

/// The name of an index in requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexName {
    /// The name of the keyspace, case preserved.
    pub keyspace: String,
    /// The name of the index, case preserved.
    pub index: String,
}

impl fmt::Display for IndexName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.keyspace, self.index)
    }
}

/// A part of the token ring, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenRange {
    /// The first token.
    pub start: i64,
    /// The last token.
    pub end: i64,
}

impl TokenRange {
    /// Every token that a key can have. The lowest `i64` is the token of no key.
    pub const WHOLE_RING: TokenRange = TokenRange {
        start: i64::MIN + 1,
        end: i64::MAX,
    };

    /// The number of tokens in the range.
    pub fn width(&self) -> u128 {
        (i128::from(self.end) - i128::from(self.start) + 1).unsigned_abs()
    }
}

/// The identity of a table. A table that is dropped and created again has another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableIdentity {
    /// The name of the keyspace, case preserved.
    pub keyspace: String,
    /// The name of the table, case preserved.
    pub table: String,
    /// The id of the table, which is another one after the table was dropped and created again.
    pub id: Uuid,
}

impl fmt::Display for TableIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.keyspace, self.table)
    }
}

/// A column outside the primary key by which searches can be filtered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterColumn {
    /// The name of the column, case preserved.
    pub name: String,
    /// The type of its values.
    pub cql_type: CqlType,
    /// Whether the column has one value for all rows of a partition.
    pub is_static: bool,
}

/// The kind of an indexed column, which decides where its values are and what changes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexedColumnKind {
    /// A column of each row.
    #[default]
    Regular,
    /// A column with one value for all rows of a partition.
    Static,
    /// The clustering column of this position, whose value is in the key.
    Clustering(usize),
}

/// The options of an index in effect, by the class of its structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StructureOptions {
    /// An index on vectors.
    Vector(VectorOptions),
    /// An index on the words of texts.
    FullText(FullTextOptions),
}

/// The class of an index's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructureClass {
    /// Vectors.
    Vector,
    /// Words of texts.
    FullText,
}

impl StructureOptions {
    /// The class of the structure.
    pub fn class(&self) -> StructureClass {
        match self {
            StructureOptions::Vector(_) => StructureClass::Vector,
            StructureOptions::FullText(_) => StructureClass::FullText,
        }
    }

    /// The type of the indexed column's values, as an answer returns them.
    pub fn column_type(&self) -> CqlType {
        match self {
            StructureOptions::Vector(options) => CqlType::Vector {
                element: Box::new(CqlType::Float),
                dimensions: u16::try_from(options.dimensions).unwrap_or(u16::MAX),
            },
            StructureOptions::FullText(_) => CqlType::Text,
        }
    }

    /// Whether the structure keeps the values of the indexed column, so that an answer can have
    /// them. One of texts has only their words.
    pub fn keeps_values(&self) -> bool {
        match self {
            StructureOptions::Vector(_) => true,
            StructureOptions::FullText(_) => false,
        }
    }

    /// The options in the HTTP API.
    fn to_api(&self) -> IndexOptions {
        match self {
            StructureOptions::Vector(options) => IndexOptions::Vector {
                dimensions: options.dimensions,
                maximum_node_connections: options.maximum_node_connections,
                construction_beam_width: options.construction_beam_width,
                search_beam_width: options.reported_search_beam_width(),
                similarity_function: options.similarity,
                quantization: options.quantization,
            },
            StructureOptions::FullText(options) => IndexOptions::FullText {
                analyzer: options.analyzer.name().to_owned(),
                positions: options.positions,
            },
        }
    }
}

#[cfg(test)]
impl StructureOptions {
    /// The options of an index on vectors.
    pub fn vector(&mut self) -> &mut VectorOptions {
        match self {
            StructureOptions::Vector(options) => options,
            StructureOptions::FullText(_) => panic!("an index on texts"),
        }
    }
}

/// The identity of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexIdentity {
    /// The name of the index.
    pub name: IndexName,
    /// The indexed table.
    pub table: TableIdentity,
    /// The time of the last truncation of the table, in milliseconds since the epoch. Truncation
    /// writes nothing to the log, so it makes the index another one.
    pub truncated_ms: Option<i64>,
    /// The indexed column.
    pub column: String,
    /// The kind of the indexed column.
    pub column_kind: IndexedColumnKind,
    /// The key columns of a local index, any of which may be in the primary key; empty for a global
    /// one.
    pub local_key: Vec<String>,
    /// The other columns outside the primary key that the index keeps: first those of the local
    /// key, then those by which the user wants to filter, each in the user's order.
    pub filter_columns: Vec<FilterColumn>,
    /// The options in effect.
    pub options: StructureOptions,
    /// The version, which each CREATE INDEX generates.
    pub version: Option<Uuid>,
    /// The table's primary key.
    pub keys: KeySchema,
    /// The part of the ring whose rows the index holds.
    pub range: TokenRange,
}

/// The place of a column's values in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    /// A column of the primary key, by its position there.
    Key(usize),
    /// A filter column, by its position among these.
    Filter(usize),
}

impl IndexIdentity {
    /// The place and the type of a column by which searches can be filtered; `None` for any other.
    pub fn place(&self, column: &str) -> Option<(ColumnPlace, &CqlType)> {
        let mut key = self.keys.columns().enumerate();
        if let Some((at, column)) = key.find(|(_, of_key)| of_key.name == column) {
            return Some((ColumnPlace::Key(at), &column.cql_type));
        }
        let mut filters = self.filter_columns.iter().enumerate();
        let (at, column) = filters.find(|(_, filter)| filter.name == column)?;
        Some((ColumnPlace::Filter(at), &column.cql_type))
    }

    /// Whether searches can be filtered by a column.
    pub fn keeps(&self, column: &str) -> bool {
        self.place(column).is_some()
    }

    /// Whether a search can return the values of a column: it is stored, or it is the indexed one
    /// and the structure keeps its values.
    pub fn returns(&self, column: &str) -> bool {
        self.keeps(column) || (self.column == column && self.options.keeps_values())
    }

    /// The types of the filter columns, in their order.
    pub fn filter_types(&self) -> Vec<CqlType> {
        let columns = self.filter_columns.iter();
        columns.map(|column| column.cql_type.clone()).collect()
    }

    /// The number of filter columns that are of the local key, which come first. A row without a
    /// value in one of them is in no part of the index that a search can name.
    pub fn local_filters(&self) -> usize {
        let is_of_key = |name: &String| self.keys.columns().any(|column| column.name == *name);
        self.local_key
            .iter()
            .filter(|name| !is_of_key(name))
            .count()
    }

    /// Whether a change of static columns can change what a search finds.
    pub fn observes_static(&self) -> bool {
        self.column_kind == IndexedColumnKind::Static
            || self.filter_columns.iter().any(|column| column.is_static)
    }

    /// The position of the indexed column among those of the primary key; `None` if it is none of
    /// these.
    pub fn column_in_key(&self) -> Option<usize> {
        match self.column_kind {
            IndexedColumnKind::Clustering(at) => Some(self.keys.partition.len() + at),
            IndexedColumnKind::Regular | IndexedColumnKind::Static => None,
        }
    }

    /// The options of the index in the HTTP API.
    pub fn api_options(&self) -> IndexOptions {
        self.options.to_api()
    }
}
