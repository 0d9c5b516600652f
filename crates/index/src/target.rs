//! The columns that an index is on: the list in parentheses of `ON t ((p1, p2), v, f1, f2)`, and
//! the option `target` by which `system_schema.indexes` keeps it (contract, section 3.2).
//!
//! | list | index |
//! | --- | --- |
//! | `v` | global: one search looks at the vectors, or the texts, of all rows |
//! | `v, f1, f2` | global, and searches can be filtered by these columns |
//! | `(p1, p2), v` | local: each search names the values of the key columns `p1` and `p2` |
//! | `(p1, p2), v, f1` | local, and searches can be filtered by these columns |

use std::collections::HashSet;
use std::fmt;

use cql::ast::IndexTarget;
use cql::error::CqlError;
use cql::quote::Identifier;
use serde::{Deserialize, Serialize};
use value::CqlType;

use crate::SearchClass;

/// The columns that an index is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTarget {
    /// The indexed column, which has vectors or texts.
    pub column: String,
    /// The key columns of a local index; empty for a global one.
    pub local_key: Vec<String>,
    /// Further columns by which a search may be filtered.
    pub filter_columns: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct VectorTargetJson {
    tc: String,
    /// The key of a local index; before ScyllaDB 2026.1.1 the partition key of the table. Without
    /// it the index is global.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pk: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fc: Vec<String>,
    /// The former name of `fc`.
    #[serde(default, skip_serializing)]
    ck: Vec<String>,
}

/// The option `target` of a local secondary index, in the form that ScyllaDB keeps.
#[derive(Serialize)]
struct SecondaryTargetJson<'a> {
    pk: &'a [&'a str],
    ck: [&'a str; 1],
}

/// Encodes the target of a local secondary index for `options['target']`: the partition key of the
/// table, and what is indexed in each partition.
pub fn local_target(partition_key: &[&str], target: &str) -> String {
    let json = SecondaryTargetJson {
        pk: partition_key,
        ck: [target],
    };
    serde_json::to_string(&json).unwrap_or_else(|_| target.to_owned())
}

/// The list of CREATE INDEX for a local secondary index. `target` is CQL text.
pub fn local_list(partition_key: &[&str], target: &str) -> String {
    let key = partition_key.iter();
    let key: Vec<String> = key.map(|name| Identifier(name).to_string()).collect();
    format!("({}), {target}", key.join(", "))
}

impl StoredTarget {
    /// The target of a global index on just a column.
    pub fn on(column: String) -> StoredTarget {
        StoredTarget {
            column,
            local_key: Vec::new(),
            filter_columns: Vec::new(),
        }
    }

    /// Reads the list of a CREATE INDEX of the class.
    ///
    /// # Errors
    /// If a column is named twice, if the list names no column to index, or if it holds something
    /// else than columns after the key of a local index.
    pub fn of(targets: &[IndexTarget], class: SearchClass) -> Result<StoredTarget, CqlError> {
        check_duplicates(targets, class)?;
        let (local_key, targets) = match targets {
            [IndexTarget::LocalKey(key), rest @ ..] => (key.clone(), rest),
            all => (Vec::new(), all),
        };
        let [first, filters @ ..] = targets else {
            return Err(CqlError::invalid("An index needs a column to index"));
        };
        let column = plain(first, class, |part| {
            format!(
                "{}es are only supported on columns of {}, not on {part}",
                class.title(),
                indexed_types(class)
            )
        })?;
        let filter = |target| {
            plain(target, class, |part| {
                format!(
                    "Unsupported {} filtering column {part}: name the column alone",
                    class.noun()
                )
            })
        };
        Ok(StoredTarget {
            column,
            local_key,
            filter_columns: filters.iter().map(filter).collect::<Result<_, _>>()?,
        })
    }

    /// Checks that the columns are there and of types that the index takes. Returns the dimensions
    /// of the vector column, which has to be a regular column of vectors of floats.
    ///
    /// `column` finds a column of the table by its name.
    ///
    /// # Errors
    /// If a column isn't there, or can't have its place.
    pub fn check(&self, column: impl Fn(&str) -> Option<TargetColumn>) -> Result<u16, CqlError> {
        let dimensions = vector_dimensions(&self.column, known(&column, &self.column)?)?;
        self.check_other_columns(SearchClass::Vector, column)?;
        Ok(dimensions)
    }

    /// Checks that the columns are there and of types that a full-text index takes. The indexed one
    /// has texts, and is a regular, static or clustering column.
    ///
    /// `column` finds a column of the table by its name.
    ///
    /// # Errors
    /// If a column isn't there, or can't have its place.
    pub fn check_text(
        &self,
        column: impl Fn(&str) -> Option<TargetColumn>,
    ) -> Result<(), CqlError> {
        check_text_column(&self.column, &known(&column, &self.column)?)?;
        self.check_other_columns(SearchClass::FullText, column)
    }

    /// Checks the key of a local index and the filter columns.
    fn check_other_columns(
        &self,
        class: SearchClass,
        column: impl Fn(&str) -> Option<TargetColumn>,
    ) -> Result<(), CqlError> {
        for name in &self.local_key {
            let column = known(&column, name)?;
            if column.irregular == Some("static") {
                return Err(CqlError::invalid(format!(
                    "Unsupported {} filtering column {name}: a static column can't be in the key \
                     of a local index",
                    class.noun()
                )));
            }
            check_filter(class, name, &column, is_scalar)?;
        }
        for name in &self.filter_columns {
            check_filter(class, name, &known(&column, name)?, is_filter_type)?;
        }
        Ok(())
    }

    /// All columns: the key of a local index, the indexed column, the further filter columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let key = self.local_key.iter();
        let all = key.chain([&self.column]).chain(&self.filter_columns);
        all.map(String::as_str)
    }

    /// Encodes the target for `options['target']`: the name of the indexed column if there is no
    /// other column, or else a JSON object.
    pub fn encode(&self) -> String {
        // A name that reads as such an object can't be stored as a plain name.
        if StoredTarget::decode(&self.column) == *self {
            return self.column.clone();
        }
        let json = VectorTargetJson {
            tc: self.column.clone(),
            pk: self.local_key.clone(),
            fc: self.filter_columns.clone(),
            ck: Vec::new(),
        };
        serde_json::to_string(&json).unwrap_or_else(|_| self.column.clone())
    }

    /// Decodes a target: the name of the indexed column, or a JSON object.
    pub fn decode(target: &str) -> StoredTarget {
        match serde_json::from_str::<VectorTargetJson>(target) {
            Ok(json) => StoredTarget {
                column: json.tc,
                local_key: json.pk,
                filter_columns: [json.fc, json.ck].concat(),
            },
            // A name may look like anything, even like JSON.
            Err(_) => StoredTarget::on(target.to_owned()),
        }
    }
}

/// Writes the list of CREATE INDEX, without the parentheses around it.
impl fmt::Display for StoredTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.local_key.iter().enumerate() {
            let before = if at == 0 { "(" } else { ", " };
            write!(f, "{before}{}", Identifier(name))?;
        }
        if !self.local_key.is_empty() {
            f.write_str("), ")?;
        }
        write!(f, "{}", Identifier(&self.column))?;
        for name in &self.filter_columns {
            write!(f, ", {}", Identifier(name))?;
        }
        Ok(())
    }
}

/// A column that an index is to be on, as the caller knows it.
#[derive(Clone, Debug)]
pub struct TargetColumn {
    /// The type as `system_schema` writes it.
    pub type_text: String,
    /// The type as [`CqlType`]; `None` for a type that [`CqlType`] doesn't have, such as a user
    /// type.
    pub cql_type: Option<CqlType>,
    /// The kind of a column that is not regular (`static`, `PRIMARY KEY`); `None` for a regular
    /// one.
    pub irregular: Option<&'static str>,
    /// Whether the column is of the partition key.
    pub is_partition_key: bool,
}

/// Whether a search can be filtered by columns of a type: one of CQL's single values, or a list,
/// set or map of such.
pub fn is_filter_type(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => is_scalar(element),
        CqlType::Map { key, value, .. } => is_scalar(key) && is_scalar(value),
        single => is_scalar(single),
    }
}

/// Returns whether values of the type are no collection, tuple or vector, and can be compared for a
/// filter: a key column of such a type can be restricted.
pub fn is_scalar(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Ascii
        | CqlType::Bigint
        | CqlType::Blob
        | CqlType::Boolean
        | CqlType::Date
        | CqlType::Decimal
        | CqlType::Double
        | CqlType::Float
        | CqlType::Inet
        | CqlType::Int
        | CqlType::Smallint
        | CqlType::Text
        | CqlType::Time
        | CqlType::Timestamp
        | CqlType::Timeuuid
        | CqlType::Tinyint
        | CqlType::Uuid
        | CqlType::Varint => true,
        CqlType::Counter
        | CqlType::Duration
        | CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Tuple(_)
        | CqlType::UserType { .. }
        | CqlType::Vector { .. } => false,
    }
}

/// Checks that a table with this column in its primary key can be indexed.
///
/// # Errors
/// If the column's type is no single value, as the index service names rows by their keys in JSON.
pub fn check_key(class: SearchClass, name: &str, column: &TargetColumn) -> Result<(), CqlError> {
    if column.cql_type.as_ref().is_some_and(is_scalar) {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "{}es are not supported on tables with a primary key column of type {} (column {name}): \
         keep such values in another column, and make the key of single values",
        class.title(),
        column.type_text
    )))
}

/// The types of columns that an index of the class can be on.
fn indexed_types(class: SearchClass) -> &'static str {
    match class {
        SearchClass::Vector => "vectors of floats",
        SearchClass::FullText => "text, varchar or ascii",
    }
}

fn known(
    column: impl Fn(&str) -> Option<TargetColumn>,
    name: &str,
) -> Result<TargetColumn, CqlError> {
    column(name)
        .ok_or_else(|| CqlError::invalid(format!("No column definition found for column {name}")))
}

fn check_text_column(name: &str, column: &TargetColumn) -> Result<(), CqlError> {
    if !matches!(column.cql_type, Some(CqlType::Text | CqlType::Ascii)) {
        return Err(CqlError::invalid(format!(
            "Full-text indexes are only supported on columns of {} (column {name} is of type {})",
            indexed_types(SearchClass::FullText),
            column.type_text
        )));
    }
    match column.is_partition_key {
        true => Err(CqlError::invalid(format!(
            "Full-text indexes are not supported on partition key columns (column {name}): keep \
             the text in another column, too"
        ))),
        false => Ok(()),
    }
}

fn check_filter(
    class: SearchClass,
    name: &str,
    column: &TargetColumn,
    is_fit: fn(&CqlType) -> bool,
) -> Result<(), CqlError> {
    if column.cql_type.as_ref().is_some_and(is_fit) {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "Unsupported {} filtering column {name} of type {}",
        class.noun(),
        column.type_text
    )))
}

fn vector_dimensions(name: &str, column: TargetColumn) -> Result<u16, CqlError> {
    let TargetColumn {
        type_text,
        cql_type,
        irregular,
        ..
    } = column;
    let dimensions = cql_type.and_then(|cql_type| cql_type.float_vector_dimensions());
    let Some(dimensions) = dimensions else {
        return Err(CqlError::invalid(format!(
            "Vector indexes are only supported on columns of vectors of floats (column {name} \
             is of type {type_text})"
        )));
    };
    if let Some(kind) = irregular {
        return Err(CqlError::invalid(format!(
            "Vector indexes are not supported on {kind} columns (column {name})"
        )));
    }
    Ok(dimensions)
}

/// The name of a target that is just a column. `unfit` is the error for a part of a collection.
fn plain(
    target: &IndexTarget,
    class: SearchClass,
    unfit: impl FnOnce(String) -> String,
) -> Result<String, CqlError> {
    match target {
        IndexTarget::Column(name) => Ok(name.clone()),
        IndexTarget::Collection { part, column } => {
            Err(CqlError::invalid(unfit(format!("{part}({column})"))))
        }
        IndexTarget::LocalKey(_) => Err(CqlError::invalid(format!(
            "The key of a local {} comes first in the list, before the {} column",
            class.noun(),
            match class {
                SearchClass::Vector => "vector",
                SearchClass::FullText => "text",
            }
        ))),
    }
}

fn check_duplicates(targets: &[IndexTarget], class: SearchClass) -> Result<(), CqlError> {
    let mut seen = HashSet::new();
    for target in targets {
        let columns = match target {
            IndexTarget::Column(column) | IndexTarget::Collection { column, .. } => {
                std::slice::from_ref(column)
            }
            IndexTarget::LocalKey(columns) => {
                let mut seen = HashSet::new();
                if let Some(column) = columns.iter().find(|column| !seen.insert(*column)) {
                    return Err(CqlError::invalid(format!(
                        "Duplicate column definition in local {}: {column}",
                        class.noun()
                    )));
                }
                columns.as_slice()
            }
        };
        for column in columns {
            if !seen.insert(column) {
                return Err(CqlError::invalid(format!(
                    "Duplicate column {column} in index target list"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
