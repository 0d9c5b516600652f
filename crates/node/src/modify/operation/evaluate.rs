//! Evaluation of operations: turns an operation and its values into the change of a column that the
//! storage makes.

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::{PreparedTerm, StatementClock, TermValue};
use storage::mutation::{CellChange, CellOperation};
use value::UserType;

use super::{CollectionKind, ColumnAction, ColumnOperation, CounterDirection, collections};
use crate::statement::BoundValue;

impl ColumnOperation {
    /// The change of the column; `None` if a value was left unset, or there is nothing to add or
    /// remove.
    ///
    /// # Errors
    /// Values that don't fit their places, and null, unset and wrong keys or indexes of elements.
    pub fn evaluate(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<CellChange>, CqlError> {
        let change = self.change(values, clock)?;
        Ok(change.map(|change| CellChange {
            column: self.column,
            change,
        }))
    }

    fn change(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<CellOperation>, CqlError> {
        let evaluate = |term: &PreparedTerm| term.evaluate(values, clock);
        Ok(match &self.action {
            ColumnAction::Delete => Some(CellOperation::Delete),
            ColumnAction::Count { sign, term } => sign.change(&evaluate(term)?)?,
            ColumnAction::Set(term) => match evaluate(term)? {
                TermValue::Value(bytes) => Some(CellOperation::Set(bytes)),
                TermValue::Null => Some(CellOperation::Delete),
                TermValue::Unset => None,
            },
            ColumnAction::Replace(collection, term) => match evaluate(term)? {
                TermValue::Value(bytes) => Some(CellOperation::ReplaceElements(
                    collection.elements(&bytes, clock)?,
                )),
                // As in Cassandra, elements that the same write adds stay. A DELETE would remove
                // them.
                TermValue::Null => Some(CellOperation::ReplaceElements(Vec::new())),
                TermValue::Unset => None,
            },
            ColumnAction::ReplaceFields(definition, term) => match evaluate(term)? {
                TermValue::Value(bytes) => {
                    Some(CellOperation::ReplaceElements(fields(definition, &bytes)?))
                }
                TermValue::Null => Some(CellOperation::ReplaceElements(Vec::new())),
                TermValue::Unset => None,
            },
            ColumnAction::SetField(position, term) => match evaluate(term)? {
                TermValue::Value(bytes) => put(vec![(UserType::path(*position), bytes)]),
                TermValue::Null => Some(delete_field(*position)),
                TermValue::Unset => None,
            },
            ColumnAction::DeleteField(position) => Some(delete_field(*position)),
            ColumnAction::Add(collection, term) => match evaluate(term)? {
                TermValue::Value(bytes) => put(collection.elements(&bytes, clock)?),
                TermValue::Null | TermValue::Unset => None,
            },
            ColumnAction::Prepend(term) => match evaluate(term)? {
                TermValue::Value(bytes) => put(collections::prepended(&bytes, clock)?),
                TermValue::Null | TermValue::Unset => None,
            },
            ColumnAction::Remove(collection, term) => match evaluate(term)? {
                TermValue::Value(bytes) => collection.removal(collections::elements(&bytes)?),
                TermValue::Null | TermValue::Unset => None,
            },
            ColumnAction::SetElement {
                collection,
                key,
                value,
            } => {
                let key = self.path(*collection, evaluate(key)?)?;
                match (evaluate(value)?, key) {
                    (TermValue::Unset, _) => None,
                    (TermValue::Value(value), ElementPath::Index(index)) => {
                        Some(CellOperation::SetListIndex { index, value })
                    }
                    (TermValue::Value(value), ElementPath::Key(key)) => {
                        Some(CellOperation::PutElements(vec![(key, value)]))
                    }
                    (TermValue::Null, path) => Some(path.deletion()),
                }
            }
            ColumnAction::DeleteElement(collection, key) => match (collection, evaluate(key)?) {
                // As in Cassandra, an unset key deletes nothing. Only for a map it is an error.
                (CollectionKind::List | CollectionKind::Set, TermValue::Unset) => None,
                (_, key) => Some(self.path(*collection, key)?.deletion()),
            },
        })
    }

    fn path(&self, collection: CollectionKind, bound: TermValue) -> Result<ElementPath, CqlError> {
        let what = match collection {
            CollectionKind::List => "list index",
            CollectionKind::Set => "set element",
            CollectionKind::Map => "map key",
        };
        let bytes = match bound {
            TermValue::Value(bytes) => bytes,
            TermValue::Null => {
                return Err(CqlError::invalid(format!(
                    "Invalid null value for {what} (column {})",
                    self.name
                )));
            }
            TermValue::Unset => {
                return Err(CqlError::invalid(format!(
                    "Invalid unset value for {what} (column {})",
                    self.name
                )));
            }
        };
        if collection != CollectionKind::List {
            return Ok(ElementPath::Key(bytes));
        }
        let index = bytes.as_ref().try_into().map(i32::from_be_bytes);
        let index = index.map_err(|_| {
            CqlError::invalid(format!(
                "Invalid empty value for {what} (column {})",
                self.name
            ))
        })?;
        u32::try_from(index).map(ElementPath::Index).map_err(|_| {
            CqlError::invalid(format!(
                "List index {index} out of bound for column {}",
                self.name
            ))
        })
    }
}

impl CollectionKind {
    /// The elements of a serialised collection as (path, value).
    fn elements(
        self,
        bytes: &[u8],
        clock: &StatementClock,
    ) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
        match self {
            CollectionKind::List => collections::appended(bytes, clock),
            CollectionKind::Set => collections::set_elements(bytes),
            CollectionKind::Map => collections::map_entries(bytes),
        }
    }

    /// The removal of elements, from a list by value and else by path; `None` if there are none.
    fn removal(self, elements: Vec<Bytes>) -> Option<CellOperation> {
        (!elements.is_empty()).then_some(match self {
            CollectionKind::List => CellOperation::RemoveListValues(elements),
            CollectionKind::Set | CollectionKind::Map => CellOperation::DeleteElements(elements),
        })
    }
}

impl CounterDirection {
    /// The change of a counter; `None` if the value was left unset.
    fn change(self, bound: &TermValue) -> Result<Option<CellOperation>, CqlError> {
        match bound {
            TermValue::Value(bytes) => Ok(Some(CellOperation::AddToCounter(self.delta(bytes)?))),
            TermValue::Null => Err(self.refused("null")),
            TermValue::Unset => Ok(None),
        }
    }

    /// The number that a serialised value adds to a counter.
    fn delta(self, bytes: &[u8]) -> Result<i64, CqlError> {
        let number = bytes.try_into().map(i64::from_be_bytes);
        let number = number.map_err(|_| self.refused("empty"))?;
        match self {
            CounterDirection::Plus => Ok(number),
            CounterDirection::Minus => number.checked_neg().ok_or_else(|| {
                CqlError::invalid(format!(
                    "The negation of {number} overflows supported counter precision (signed 8 \
                     bytes integer)"
                ))
            }),
        }
    }

    fn refused(self, value: &str) -> CqlError {
        let what = match self {
            CounterDirection::Plus => "increment",
            CounterDirection::Minus => "decrement",
        };
        CqlError::invalid(format!("Invalid {value} value for counter {what}"))
    }
}

/// The place of an element in a collection.
enum ElementPath {
    /// The position in a list, counted from 0.
    Index(u32),
    /// The key in a map, or the element of a set, serialised.
    Key(Bytes),
}

impl ElementPath {
    fn deletion(self) -> CellOperation {
        match self {
            ElementPath::Index(index) => CellOperation::DeleteListIndex { index },
            ElementPath::Key(key) => CellOperation::DeleteElements(vec![key]),
        }
    }
}

/// The fields of a serialised value of a user type as (path, value), without those that are null.
fn fields(definition: &UserType, value: &Bytes) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    let fields = definition.split(value);
    let fields = fields.map_err(|error| CqlError::invalid(error.0))?;
    let fields = fields.into_iter().enumerate();
    Ok(fields
        .filter_map(|(position, field)| Some((UserType::path(position), value.slice_ref(field?))))
        .collect())
}

fn delete_field(position: usize) -> CellOperation {
    CellOperation::DeleteElements(vec![UserType::path(position)])
}

fn put(elements: Vec<(Bytes, Bytes)>) -> Option<CellOperation> {
    (!elements.is_empty()).then_some(CellOperation::PutElements(elements))
}
