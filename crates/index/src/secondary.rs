//! The definition of a secondary index, which finds rows by the value of a column, in the form that
//! Cassandra's `StorageAttachedIndex` has: its class, its target, its options.
//!
//! | list of CREATE INDEX | finds rows by |
//! | --- | --- |
//! | `c` | the value of the column; of a collection that is not frozen, as `values(c)` |
//! | `values(c)` | an element of a list or set, or a value of a map |
//! | `keys(c)` | a key of a map |
//! | `entries(c)` | a key of a map with its value |
//! | `full(c)` | the whole value of a frozen collection |
//!
//! The texts of errors are those of Apache Cassandra 5.

use std::collections::BTreeMap;

use cql::ast::IndexTarget;
use cql::error::CqlError;
use cql::quote::{Identifier, MapLiteral};
use value::CqlType;

use crate::analysis::Analysis;
use crate::options;
use crate::target::{TargetColumn, is_scalar};

/// The class of Cassandra's SAI index. It is recognised in exactly this case.
const SAI_CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";

/// The short names of Cassandra's SAI index. They are recognised in any case.
const SAI_NAMES: [&str; 2] = ["StorageAttachedIndex", "sai"];

/// The options that Cassandra's SAI index takes only for vectors.
const VECTOR_OPTIONS: [&str; 3] = [
    "maximum_node_connections",
    "construction_beam_width",
    "similarity_function",
];

/// Whether a class is one of SAI's names.
pub fn is_sai_class(class: &str) -> bool {
    let mut names = SAI_NAMES.iter();
    class == SAI_CLASS || names.any(|name| name.eq_ignore_ascii_case(class))
}

/// The column of an SAI index by its options in `system_schema.indexes`; `None` for an index of
/// another class. An index on a part of a collection, as on `keys(m)`, serves conditions on that
/// part, and so counts too.
pub fn sai_column<'o>(option: impl Fn(&str) -> Option<&'o str>) -> Option<String> {
    if !is_sai_class(option("class_name")?) {
        return None;
    }
    let target = option("target")?;
    let inner = target
        .split_once('(')
        .map_or(target, |(_, inner)| inner.trim_end_matches(')'));
    let quoted = inner
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    Some(quoted.map_or_else(|| inner.to_owned(), |name| name.replace("\"\"", "\"")))
}

/// The part of a column's value that a secondary index finds rows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexedPart {
    /// The value of a column that is no collection.
    Value,
    /// The whole value of a frozen collection.
    Full,
    /// Each element of a list or set, each value of a map.
    Values,
    /// Each key of a map.
    Keys,
    /// Each key of a map with its value.
    Entries,
}

impl IndexedPart {
    /// The word before the parenthesis in CREATE INDEX; `None` for just a column.
    pub fn word(self) -> Option<&'static str> {
        match self {
            IndexedPart::Value => None,
            IndexedPart::Full => Some("full"),
            IndexedPart::Values => Some("values"),
            IndexedPart::Keys => Some("keys"),
            IndexedPart::Entries => Some("entries"),
        }
    }

    fn of_word(word: &str) -> Option<IndexedPart> {
        [
            IndexedPart::Full,
            IndexedPart::Values,
            IndexedPart::Keys,
            IndexedPart::Entries,
        ]
        .into_iter()
        .find(|part| part.word() == Some(word))
    }

    /// The target on a column as CREATE INDEX and `options['target']` of `system_schema.indexes`
    /// have it.
    pub fn target(self, column: &str) -> String {
        let column = Identifier(column);
        match self.word() {
            None => column.to_string(),
            Some(word) => format!("{word}({column})"),
        }
    }
}

/// The target of a secondary index as CREATE INDEX names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTarget {
    /// The column.
    pub column: String,
    /// The part of the column; `None` if only the column is named.
    part: Option<IndexedPart>,
}

impl NamedTarget {
    /// Reads the list of a CREATE INDEX.
    ///
    /// # Errors
    /// If the list names something else than one column.
    pub fn of(targets: &[IndexTarget]) -> Result<NamedTarget, CqlError> {
        match targets {
            [IndexTarget::Column(column)] => Ok(NamedTarget {
                column: column.clone(),
                part: None,
            }),
            [IndexTarget::Collection { part: word, column }] => {
                let part = IndexedPart::of_word(word).ok_or_else(|| {
                    CqlError::invalid(format!("An index has no target {word}({column})"))
                })?;
                Ok(NamedTarget {
                    column: column.clone(),
                    part: Some(part),
                })
            }
            several => {
                let names: Vec<String> = several.iter().map(text).collect();
                Err(CqlError::invalid(format!(
                    "A storage-attached index cannot be created over multiple columns: {}",
                    names.join(",")
                )))
            }
        }
    }

    /// Whether only the column is named, as that of a vector index is.
    pub fn is_plain(&self) -> bool {
        self.part.is_none()
    }

    /// Checks that the column, of this type and place, can be indexed so. Returns the part that is
    /// indexed. `is_whole_key` says whether the column is the whole partition key.
    ///
    /// # Errors
    /// If it can't.
    pub fn check(
        &self,
        column: &TargetColumn,
        is_whole_key: bool,
    ) -> Result<IndexedPart, CqlError> {
        let name = &self.column;
        let refuse = |text: String| Err(CqlError::invalid(text));
        let Some(cql_type) = &column.cql_type else {
            return refuse(format!("Unsupported type: {}", column.type_text));
        };
        if let Some(what) = durations(cql_type) {
            return refuse(format!("Secondary indexes are not supported on {what}"));
        }
        if *cql_type == CqlType::Counter {
            return refuse("Secondary indexes on counter tables aren't supported".to_owned());
        }
        if is_whole_key {
            return refuse(format!(
                "Cannot create secondary index on the only partition key column {name}"
            ));
        }
        if cql_type.user_type().is_some() && cql_type.is_multi_cell() {
            return refuse(format!(
                "Cannot create index on non-frozen UDT column {name}"
            ));
        }
        let is_frozen = cql_type.is_collection() && !cql_type.is_multi_cell();
        let part = match self.part {
            Some(part) => part,
            None if cql_type.is_collection() => IndexedPart::Values,
            None => IndexedPart::Value,
        };
        let word = part.word().unwrap_or_default();
        if is_frozen && part != IndexedPart::Full {
            return refuse(format!(
                "Cannot create {word}() index on frozen column {name}. Frozen collections are \
                 immutable and must be fully indexed by using the 'full({name})' modifier"
            ));
        }
        if !is_frozen && part == IndexedPart::Full {
            return refuse("full() indexes can only be created on frozen collections".to_owned());
        }
        if !cql_type.is_collection() && part != IndexedPart::Value {
            return refuse(format!(
                "Cannot create {word}() index on {name}. Non-collection columns only support \
                 simple indexes"
            ));
        }
        let is_of_map = matches!(part, IndexedPart::Keys | IndexedPart::Entries);
        if is_of_map && !matches!(cql_type, CqlType::Map { .. }) {
            return refuse(format!(
                "Cannot create index on {word} of column {name} with non-map type"
            ));
        }
        Ok(part)
    }
}

/// The types of the values that a term of an index is made of: two for an entry of a map, else one.
pub fn term_types(cql_type: &CqlType, part: IndexedPart) -> Vec<&CqlType> {
    match (part, cql_type) {
        (IndexedPart::Keys, CqlType::Map { key, .. }) => vec![key],
        (IndexedPart::Values, CqlType::Map { value, .. }) => vec![value],
        (IndexedPart::Entries, CqlType::Map { key, value, .. }) => vec![key, value],
        (IndexedPart::Values, CqlType::List { element, .. } | CqlType::Set { element, .. }) => {
            vec![element]
        }
        (_, whole) => vec![whole],
    }
}

/// Checks the options of an index on values of these types ([`term_types`]), and the types.
/// `is_key` says whether the column is of the primary key.
///
/// # Errors
/// If an option is unknown or does not fit, or if no index takes values of such a type.
pub fn check_options(
    given: &BTreeMap<String, String>,
    types: &[&CqlType],
    is_key: bool,
) -> Result<(), CqlError> {
    let is_known = |name: &str| Analysis::has_option(name) || VECTOR_OPTIONS.contains(&name);
    for name in given.keys() {
        options::check_reserved(name)?;
    }
    let unknown: Vec<&str> = given
        .keys()
        .map(String::as_str)
        .filter(|name| !is_known(name))
        .collect();
    if !unknown.is_empty() {
        return Err(CqlError::config(format!(
            "Properties specified [{}] are not understood by StorageAttachedIndex",
            unknown.join(", ")
        )));
    }
    let of_analysis: BTreeMap<String, String> = given
        .iter()
        .filter(|(name, _)| Analysis::has_option(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if is_key && !of_analysis.is_empty() {
        return Err(CqlError::invalid(format!(
            "Analysis options are not supported on primary key columns, but found {}",
            MapLiteral(&of_analysis)
        )));
    }
    let analysis = Analysis::check(given)?;
    let is_text = matches!(types, [CqlType::Ascii | CqlType::Text]);
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    if !analysis.is_plain() && !is_text {
        return Err(CqlError::invalid(format!(
            "CQL type {names} cannot be analyzed."
        )));
    }
    if VECTOR_OPTIONS.iter().any(|name| given.contains_key(*name)) {
        return Err(CqlError::invalid(format!(
            "CQL type {names} cannot have vector options"
        )));
    }
    match types.iter().find(|cql_type| !is_indexed_type(cql_type)) {
        Some(unfit) => Err(CqlError::invalid(format!("Unsupported type: {unfit}"))),
        None => Ok(()),
    }
}

/// Whether an index takes values of a type: single values, and frozen ones. In Cassandra it takes
/// no blobs.
fn is_indexed_type(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Tuple(_)
        | CqlType::UserType { .. } => true,
        single => is_scalar(single),
    }
}

/// The kind of column that holds durations, which have no order; `None` if it holds none.
fn durations(cql_type: &CqlType) -> Option<&'static str> {
    if !cql_type.holds_durations_even_in_vectors() {
        return None;
    }
    Some(match cql_type {
        CqlType::Tuple(_) => "tuples containing durations",
        CqlType::UserType { .. } => "UDTs containing durations",
        other if other.is_collection() => "collections containing durations",
        _ => "duration columns",
    })
}

fn text(target: &IndexTarget) -> String {
    match target {
        IndexTarget::Column(name) => name.clone(),
        IndexTarget::LocalKey(names) => format!("({})", names.join(", ")),
        IndexTarget::Collection { part, column } => format!("{part}({column})"),
    }
}

#[cfg(test)]
mod tests;
