//! What is done to one column: prepared from an assignment or a deletion, evaluated to the change
//! that the storage makes.

use bytes::Bytes;
use cql::ast::{Assignment, DeleteTarget, Term};
use cql::error::CqlError;
use cql::types::CqlType;
use storage::catalog::{Column, ColumnId, Table};
use storage::mutation::{CellChange, CellOperation};

use super::collections;
use crate::bind::{Bound, PrepareContext, PreparedTerm, StatementClock, prepare_term};
use crate::query::Parameters;
use crate::resolve::no_such_column;

/// A change of one column.
#[derive(Debug)]
pub(super) struct Operation {
    pub column: ColumnId,
    pub name: String,
    action: Action,
}

#[derive(Debug)]
enum Action {
    /// The whole value of a column that is one cell.
    Set(PreparedTerm),
    /// The whole value of a collection that is a cell an element.
    Replace(Collection, PreparedTerm),
    Delete,
    /// Elements to the end of a list, or into a set or map.
    Add(Collection, PreparedTerm),
    Prepend(PreparedTerm),
    /// From a list by value, from a set or map by path.
    Remove(Collection, PreparedTerm),
    /// `l[index] = value`, `m[key] = value`.
    SetElement {
        collection: Collection,
        key: PreparedTerm,
        value: PreparedTerm,
    },
    /// `DELETE l[index]`, `DELETE m[key]`, `DELETE s[element]`.
    DeleteElement(Collection, PreparedTerm),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collection {
    List,
    Set,
    Map,
}

impl Collection {
    fn of(cql_type: &CqlType) -> Option<Self> {
        match cql_type {
            CqlType::List { .. } => Some(Collection::List),
            CqlType::Set { .. } => Some(Collection::Set),
            CqlType::Map { .. } => Some(Collection::Map),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Collection::List => "list",
            Collection::Set => "set",
            Collection::Map => "map",
        }
    }

    /// The elements of a serialised value with their paths.
    fn elements(self, bytes: &[u8]) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
        match self {
            Collection::List => collections::appended(bytes),
            Collection::Set => collections::set_elements(bytes),
            Collection::Map => collections::map_entries(bytes),
        }
    }
}

impl Operation {
    /// `column = term`, also of INSERT.
    pub fn set(column: &Column, term: &Term, ctx: &mut PrepareContext) -> Result<Self, CqlError> {
        let term = prepare_term(term, &column.cql_type, &column.name, ctx)?;
        let action = match Collection::of(&column.cql_type) {
            Some(collection) if column.cql_type.is_multi_cell() => {
                Action::Replace(collection, term)
            }
            _ => Action::Set(term),
        };
        Ok(Operation::new(column, action))
    }

    /// An assignment of UPDATE; the column is the caller's to look up and check.
    pub fn assign(
        column: &Column,
        assignment: &Assignment,
        ctx: &mut PrepareContext,
    ) -> Result<Self, CqlError> {
        let action = match assignment {
            Assignment::Set { value, .. } => return Operation::set(column, value, ctx),
            Assignment::SetElement { key, value, .. } => set_element(column, key, value, ctx)?,
            Assignment::Add { value, .. } => {
                let collection = multi_cell(column, "+")?;
                let term = prepare_term(value, &column.cql_type, &column.name, ctx)?;
                Action::Add(collection, term)
            }
            Assignment::Prepend { value, .. } => {
                let collection = multi_cell(column, "+")?;
                if collection != Collection::List {
                    return Err(CqlError::invalid(format!(
                        "Invalid operation ({0} = ... + {0}) for non list column {0}",
                        column.name
                    )));
                }
                Action::Prepend(prepare_term(value, &column.cql_type, &column.name, ctx)?)
            }
            Assignment::Subtract { value, .. } => {
                let collection = multi_cell(column, "-")?;
                let removed = match &column.cql_type {
                    CqlType::Map { key, .. } => CqlType::Set {
                        element: key.clone(),
                        frozen: false,
                    },
                    other => other.clone(),
                };
                Action::Remove(
                    collection,
                    prepare_term(value, &removed, &column.name, ctx)?,
                )
            }
        };
        Ok(Operation::new(column, action))
    }

    /// A target of DELETE.
    pub fn delete(
        table: &Table,
        target: &DeleteTarget,
        ctx: &mut PrepareContext,
    ) -> Result<Self, CqlError> {
        let name = match target {
            DeleteTarget::Column(name) | DeleteTarget::Element { column: name, .. } => name,
        };
        let column = table
            .column(name)
            .ok_or_else(|| no_such_column(name, table))?;
        if is_key(column) {
            return Err(CqlError::invalid(format!(
                "Invalid identifier {name} for deletion (should not be a PRIMARY KEY part)"
            )));
        }
        let action = match target {
            DeleteTarget::Column(_) => Action::Delete,
            DeleteTarget::Element { key, .. } => {
                let Some(collection) = Collection::of(&column.cql_type) else {
                    return Err(CqlError::invalid(format!(
                        "Invalid deletion operation for non collection column {name}"
                    )));
                };
                if !column.cql_type.is_multi_cell() {
                    return Err(CqlError::invalid(format!(
                        "Invalid deletion operation for frozen collection column {name}"
                    )));
                }
                let (key_type, place) = path(column);
                Action::DeleteElement(collection, prepare_term(key, &key_type, &place, ctx)?)
            }
        };
        Ok(Operation::new(column, action))
    }

    fn new(column: &Column, action: Action) -> Self {
        Operation {
            column: column.id,
            name: column.name.clone(),
            action,
        }
    }

    /// Whether it gives the column as a whole another value, so that no other operation on the column can stand
    /// beside it.
    pub fn is_whole(&self) -> bool {
        matches!(
            self.action,
            Action::Set(_) | Action::Replace(..) | Action::Delete
        )
    }

    /// The change; `None` if a value was left unset, or there is nothing to add or remove.
    pub fn evaluate(
        &self,
        parameters: &Parameters,
        clock: &StatementClock,
    ) -> Result<Option<CellChange>, CqlError> {
        let change = self.change(parameters, clock)?;
        Ok(change.map(|change| CellChange {
            column: self.column,
            change,
        }))
    }

    fn change(
        &self,
        parameters: &Parameters,
        clock: &StatementClock,
    ) -> Result<Option<CellOperation>, CqlError> {
        let evaluate = |term: &PreparedTerm| term.evaluate(parameters, clock);
        Ok(match &self.action {
            Action::Delete => Some(CellOperation::Delete),
            Action::Set(term) => match evaluate(term)? {
                Bound::Value(bytes) => Some(CellOperation::Set(bytes)),
                Bound::Null => Some(CellOperation::Delete),
                Bound::Unset => None,
            },
            Action::Replace(collection, term) => match evaluate(term)? {
                Bound::Value(bytes) => {
                    Some(CellOperation::ReplaceElements(collection.elements(&bytes)?))
                }
                Bound::Null => Some(CellOperation::Delete),
                Bound::Unset => None,
            },
            Action::Add(collection, term) => match evaluate(term)? {
                Bound::Value(bytes) => put(collection.elements(&bytes)?),
                Bound::Null | Bound::Unset => None,
            },
            Action::Prepend(term) => match evaluate(term)? {
                Bound::Value(bytes) => put(collections::prepended(&bytes)?),
                Bound::Null | Bound::Unset => None,
            },
            Action::Remove(collection, term) => match evaluate(term)? {
                Bound::Value(bytes) => {
                    let elements = collections::elements(&bytes)?;
                    (!elements.is_empty()).then_some(match collection {
                        Collection::List => CellOperation::RemoveListValues(elements),
                        Collection::Set | Collection::Map => {
                            CellOperation::DeleteElements(elements)
                        }
                    })
                }
                Bound::Null | Bound::Unset => None,
            },
            Action::SetElement {
                collection,
                key,
                value,
            } => {
                let key = self.path(*collection, evaluate(key)?)?;
                match (evaluate(value)?, key) {
                    (Bound::Unset, _) => None,
                    (Bound::Value(value), Path::Index(index)) => {
                        Some(CellOperation::SetListIndex { index, value })
                    }
                    (Bound::Value(value), Path::Key(key)) => {
                        Some(CellOperation::PutElements(vec![(key, value)]))
                    }
                    (Bound::Null, path) => Some(path.deletion()),
                }
            }
            Action::DeleteElement(collection, key) => {
                Some(self.path(*collection, evaluate(key)?)?.deletion())
            }
        })
    }

    fn path(&self, collection: Collection, bound: Bound) -> Result<Path, CqlError> {
        let what = match collection {
            Collection::List => "list index",
            Collection::Set => "set element",
            Collection::Map => "map key",
        };
        let bytes = match bound {
            Bound::Value(bytes) => bytes,
            Bound::Null => {
                return Err(CqlError::invalid(format!(
                    "Invalid null value for {what} (column {})",
                    self.name
                )));
            }
            Bound::Unset => {
                return Err(CqlError::invalid(format!(
                    "Invalid unset value for {what} (column {})",
                    self.name
                )));
            }
        };
        if collection != Collection::List {
            return Ok(Path::Key(bytes));
        }
        let index = bytes.as_ref().try_into().map(i32::from_be_bytes);
        let index = index.map_err(|_| {
            CqlError::invalid(format!(
                "Invalid empty value for {what} (column {})",
                self.name
            ))
        })?;
        u32::try_from(index).map(Path::Index).map_err(|_| {
            CqlError::invalid(format!(
                "List index {index} out of bound for column {}",
                self.name
            ))
        })
    }
}

/// Where in a collection.
enum Path {
    Index(u32),
    Key(Bytes),
}

impl Path {
    fn deletion(self) -> CellOperation {
        match self {
            Path::Index(index) => CellOperation::DeleteListIndex { index },
            Path::Key(key) => CellOperation::DeleteElements(vec![key]),
        }
    }
}

fn put(elements: Vec<(Bytes, Bytes)>) -> Option<CellOperation> {
    (!elements.is_empty()).then_some(CellOperation::PutElements(elements))
}

pub(super) fn is_key(column: &Column) -> bool {
    use storage::catalog::ColumnKind::{Clustering, PartitionKey, Regular, Static};
    match column.kind {
        PartitionKey { .. } | Clustering { .. } => true,
        Static | Regular => false,
    }
}

/// The collection of a column whose elements can be changed one by one.
fn multi_cell(column: &Column, sign: &str) -> Result<Collection, CqlError> {
    let name = &column.name;
    match Collection::of(&column.cql_type) {
        None => Err(CqlError::invalid(format!(
            "Invalid operation ({name} = {name} {sign} ...) for non counter column {name}"
        ))),
        Some(collection) if !column.cql_type.is_multi_cell() => Err(CqlError::invalid(format!(
            "Invalid operation ({name} = {name} {sign} ...) for frozen {} column {name}",
            collection.name()
        ))),
        Some(collection) => Ok(collection),
    }
}

fn set_element(
    column: &Column,
    key: &Term,
    value: &Term,
    ctx: &mut PrepareContext,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let refused = |what: String| {
        CqlError::invalid(format!(
            "Invalid operation ({name}[...] = ...) for {what} column {name}"
        ))
    };
    let Some(collection) = Collection::of(&column.cql_type) else {
        return Err(refused("non collection".to_owned()));
    };
    if !column.cql_type.is_multi_cell() {
        return Err(refused(format!("frozen {}", collection.name())));
    }
    let value_type = match &column.cql_type {
        CqlType::List { element, .. } => element,
        CqlType::Map { value, .. } => value,
        _ => return Err(refused(collection.name().to_owned())),
    };
    let (key_type, place) = path(column);
    Ok(Action::SetElement {
        collection,
        key: prepare_term(key, &key_type, &place, ctx)?,
        value: prepare_term(value, value_type, &format!("value({name})"), ctx)?,
    })
}

/// The type of what stands in the brackets behind a collection, and the name of the place.
fn path(column: &Column) -> (CqlType, String) {
    match &column.cql_type {
        CqlType::Map { key, .. } => ((**key).clone(), format!("key({})", column.name)),
        CqlType::Set { element, .. } => ((**element).clone(), format!("value({})", column.name)),
        _ => (CqlType::Int, format!("idx({})", column.name)),
    }
}
