//! `system_schema.indexes` with the rows of the gateway's vector and full-text indexes.
//!
//! The rows are added to the last page of the node's answer, by the names of its columns. A SELECT
//! for which that does not work (functions, aggregates, a restriction on anything but the key or
//! the kind) passes, and its answer lacks these indexes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{
    BindMarker, Comparand, ComparisonSubject, Operator, ProjectionList, Relation, Select, Selector,
    Statement, Term,
};
use cql::parser::parse_statement;
use cql::wire::{BoundValue, ColumnsMetadata, DecodeError, EncodedRows, MarkerValues, RowsEncoder};
use value::{Literal, Value, split_elements};

use crate::catalog::{DefinedIndex, IndexCatalogSnapshot};

/// The `kind` of such an index in `system_schema.indexes`.
const KIND: &str = "CUSTOM";

/// A SELECT from `system_schema.indexes`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexesRead {
    /// The selected columns; `None` for all, whose names are those of the answer.
    columns: Option<Vec<String>>,
    /// The restrictions of WHERE, which all must hold.
    restrictions: Vec<ColumnRestriction>,
    /// The LIMIT, if there is one.
    limit: Option<Term>,
}

/// A restriction of a column to some values.
#[derive(Clone, Debug, PartialEq)]
struct ColumnRestriction {
    /// The restricted column.
    column: String,
    /// Whether the restriction is `IN ?`, whose one marker is the whole list.
    is_list: bool,
    /// The terms of the values: string literals and markers.
    terms: Vec<Term>,
}

/// The rows of indexes that are added to an answer.
#[derive(Clone, Debug)]
pub(crate) struct IndexRows {
    /// The indexes whose rows are added.
    indexes: Vec<Arc<DefinedIndex>>,
    /// The selected columns; `None` for all.
    selected: Option<Vec<String>>,
    /// The columns from the answer to PREPARE, for an answer that comes without them.
    prepared: Option<Arc<ColumnsMetadata>>,
    /// The most rows that the answer may have.
    limit: Option<usize>,
}

impl IndexesRead {
    /// Reads a statement; `None` if it does not read `system_schema.indexes`, or if rows cannot be
    /// added to its answer.
    pub(crate) fn read(text: &str, keyspace_in_use: Option<&str>) -> Option<IndexesRead> {
        let Statement::Select(select) = parse_statement(text).ok()?.statement else {
            return None;
        };
        let keyspace = select.table.keyspace.as_deref().or(keyspace_in_use)?;
        if keyspace != "system_schema" || select.table.name != "indexes" {
            return None;
        }
        let read = Self::of(&select);
        if read.is_none() {
            tracing::debug!(text, "the answer lacks the vector and full-text indexes");
        }
        read
    }

    fn of(select: &Select) -> Option<IndexesRead> {
        let is_plain = !select.json
            && !select.distinct
            && select.group_by.is_empty()
            && select.order_by.is_empty()
            && select.per_partition_limit.is_none();
        if !is_plain {
            return None;
        }
        let columns = match &select.projection {
            ProjectionList::All => None,
            ProjectionList::Items(items) => {
                let column = |selector: &Selector| match selector {
                    Selector::Column(column) => Some(column.clone()),
                    _ => None,
                };
                let columns = items.iter().map(|item| column(&item.selector));
                Some(columns.collect::<Option<_>>()?)
            }
        };
        let restrictions = select.relations.iter().map(ColumnRestriction::of);
        Some(IndexesRead {
            columns,
            restrictions: restrictions.collect::<Option<_>>()?,
            limit: select.limit.clone(),
        })
    }

    /// The rows of indexes that match the statement with these bound values.
    pub(crate) fn rows(
        &self,
        values: &MarkerValues,
        prepared: Option<Arc<ColumnsMetadata>>,
        snapshot: &IndexCatalogSnapshot,
    ) -> IndexRows {
        let restrictions = self
            .restrictions
            .iter()
            .map(|restriction| (restriction.column.as_str(), restriction.values(values)));
        let restrictions: Vec<_> = restrictions.collect();
        let is_selected = |index: &&Arc<DefinedIndex>| {
            restrictions.iter().all(|(column, values)| {
                text_of(index, column).is_some_and(|text| values.iter().any(|value| value == text))
            })
        };
        let limit = self.limit.as_ref().and_then(|term| match term {
            Term::Literal(Literal::Integer(digits)) => digits.parse().ok(),
            Term::Marker(marker) => {
                let bytes: [u8; 4] = value_of(marker, values)?.as_ref().try_into().ok()?;
                usize::try_from(i32::from_be_bytes(bytes)).ok()
            }
            _ => None,
        });
        IndexRows {
            indexes: snapshot
                .all_indexes()
                .iter()
                .filter(is_selected)
                .cloned()
                .collect(),
            selected: self.columns.clone(),
            prepared,
            limit,
        }
    }
}

impl ColumnRestriction {
    fn of(relation: &Relation) -> Option<ColumnRestriction> {
        let ComparisonSubject::Column(column) = &relation.subject else {
            return None;
        };
        if !["keyspace_name", "table_name", "index_name", "kind"].contains(&column.as_str()) {
            return None;
        }
        let (is_list, terms) = match (relation.operator, &relation.comparand) {
            (Operator::Eq, Comparand::Term(term)) => (false, vec![term.clone()]),
            (Operator::In, Comparand::Term(term)) => (true, vec![term.clone()]),
            (Operator::In, Comparand::List(terms)) => (false, terms.clone()),
            _ => return None,
        };
        let is_known =
            |term: &Term| matches!(term, Term::Marker(_) | Term::Literal(Literal::String(_)));
        let terms: Vec<Term> = terms
            .iter()
            .map(|term| term.without_parentheses().clone())
            .collect();
        terms.iter().all(is_known).then(|| ColumnRestriction {
            column: column.clone(),
            is_list,
            terms,
        })
    }

    /// The values that the column may have. A value that cannot be read matches nothing; the node
    /// says what is wrong with it.
    fn values(&self, values: &MarkerValues) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let mut texts = Vec::new();
        for term in &self.terms {
            match term {
                Term::Literal(Literal::String(value)) => texts.push(value.clone()),
                Term::Marker(marker) => {
                    let Some(value) = value_of(marker, values) else {
                        continue;
                    };
                    if self.is_list {
                        let elements = split_elements(value).unwrap_or_default();
                        let elements = elements.iter().filter_map(|element| text(element));
                        texts.extend(elements);
                    } else {
                        texts.extend(text(value));
                    }
                }
                _ => {}
            }
        }
        texts
    }
}

impl IndexRows {
    /// Adds the rows to an answer of the node; `None` if the answer stays as it is.
    ///
    /// # Errors
    /// If the answer is malformed.
    pub(crate) fn add_to(&self, rows: &EncodedRows) -> Result<Option<EncodedRows>, DecodeError> {
        if rows.paging_state.is_some() || self.indexes.is_empty() {
            return Ok(None);
        }
        let decoded = rows.decode()?;
        let Some(columns) = decoded.metadata.as_ref().or(self.prepared.as_deref()) else {
            return Ok(None);
        };
        let names: Vec<&str> = match &self.selected {
            Some(selected) => selected.iter().map(String::as_str).collect(),
            None => columns.columns.iter().map(|column| &*column.name).collect(),
        };
        if names.len() != columns.columns.len() {
            return Ok(None);
        }
        let room = self
            .limit
            .map_or(usize::MAX, |limit| limit.saturating_sub(decoded.rows.len()));
        let mut told = RowsEncoder::new(columns, decoded.metadata.is_none());
        for row in &decoded.rows {
            row.iter().for_each(|cell| told.cell(cell.as_deref()));
            told.end_row();
        }
        for index in self.indexes.iter().take(room) {
            for name in &names {
                let cell = match *name {
                    "options" => Some(options(index)),
                    name => text_of(index, name).map(|text| text.as_bytes().to_vec()),
                };
                told.cell(cell.as_deref());
            }
            told.end_row();
        }
        Ok(Some(told.finish(None)))
    }
}

/// The value that is bound to a marker; `None` if it is null, unset or missing.
fn value_of<'v>(marker: &BindMarker, values: &'v MarkerValues) -> Option<&'v bytes::Bytes> {
    let value = match values {
        MarkerValues::Positional(values) => values.get(usize::from(marker.index))?,
        MarkerValues::Named(values) => {
            let name = marker.name.as_deref()?;
            let (_, value) = values.iter().find(|(named, _)| named == name)?;
            value
        }
    };
    match value {
        BoundValue::Value(value) => Some(value),
        BoundValue::Null | BoundValue::Unset => None,
    }
}

/// The value of a text column in the row of an index; `None` for other columns.
fn text_of<'i>(index: &'i DefinedIndex, column: &str) -> Option<&'i str> {
    match column {
        "keyspace_name" => Some(&index.keyspace),
        "table_name" => Some(&index.table),
        "index_name" => Some(&index.name),
        "kind" => Some(KIND),
        _ => None,
    }
}

/// The serialised `options` of an index: those of the user, and those that the database adds, as
/// ScyllaDB does.
fn options(index: &DefinedIndex) -> Vec<u8> {
    let mut options: BTreeMap<&str, String> = index
        .options
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    options.insert("class_name", index.class_name.clone());
    options.insert("index_version", index.version.to_string());
    options.insert("target", index.target.encode());
    let text = |text: &str| Value::Text(text.to_owned());
    let entries = options
        .iter()
        .map(|(name, value)| (text(name), text(value)));
    Value::Map(entries.collect()).serialize().to_vec()
}

#[cfg(test)]
mod tests;
