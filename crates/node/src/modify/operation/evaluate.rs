//! Evaluation of operations: turns an operation and its values into the change of a column that the
//! storage makes.

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::{Bound, PreparedTerm, StatementClock};
use storage::mutation::{CellChange, CellOperation};
use value::UserType;

use super::{Action, Collection, Operation, Sign, collections};
use crate::statement::BoundValue;

impl Operation {
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
            Action::Delete => Some(CellOperation::Delete),
            Action::Count { sign, term } => sign.change(&evaluate(term)?)?,
            Action::Set(term) => match evaluate(term)? {
                Bound::Value(bytes) => Some(CellOperation::Set(bytes)),
                Bound::Null => Some(CellOperation::Delete),
                Bound::Unset => None,
            },
            Action::Replace(collection, term) => match evaluate(term)? {
                Bound::Value(bytes) => Some(CellOperation::ReplaceElements(
                    collection.elements(&bytes, clock)?,
                )),
                // As in Cassandra, elements that the same write adds stay. A DELETE would remove
                // them.
                Bound::Null => Some(CellOperation::ReplaceElements(Vec::new())),
                Bound::Unset => None,
            },
            Action::ReplaceFields(definition, term) => match evaluate(term)? {
                Bound::Value(bytes) => {
                    Some(CellOperation::ReplaceElements(fields(definition, &bytes)?))
                }
                Bound::Null => Some(CellOperation::ReplaceElements(Vec::new())),
                Bound::Unset => None,
            },
            Action::SetField(position, term) => match evaluate(term)? {
                Bound::Value(bytes) => put(vec![(UserType::path(*position), bytes)]),
                Bound::Null => Some(delete_field(*position)),
                Bound::Unset => None,
            },
            Action::DeleteField(position) => Some(delete_field(*position)),
            Action::Add(collection, term) => match evaluate(term)? {
                Bound::Value(bytes) => put(collection.elements(&bytes, clock)?),
                Bound::Null | Bound::Unset => None,
            },
            Action::Prepend(term) => match evaluate(term)? {
                Bound::Value(bytes) => put(collections::prepended(&bytes, clock)?),
                Bound::Null | Bound::Unset => None,
            },
            Action::Remove(collection, term) => match evaluate(term)? {
                Bound::Value(bytes) => collection.removal(collections::elements(&bytes)?),
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
            Action::DeleteElement(collection, key) => match (collection, evaluate(key)?) {
                // As in Cassandra, an unset key deletes nothing. Only for a map it is an error.
                (Collection::List | Collection::Set, Bound::Unset) => None,
                (_, key) => Some(self.path(*collection, key)?.deletion()),
            },
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

impl Collection {
    /// The elements of a serialised collection as (path, value).
    fn elements(
        self,
        bytes: &[u8],
        clock: &StatementClock,
    ) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
        match self {
            Collection::List => collections::appended(bytes, clock),
            Collection::Set => collections::set_elements(bytes),
            Collection::Map => collections::map_entries(bytes),
        }
    }

    /// The removal of elements, from a list by value and else by path; `None` if there are none.
    fn removal(self, elements: Vec<Bytes>) -> Option<CellOperation> {
        (!elements.is_empty()).then_some(match self {
            Collection::List => CellOperation::RemoveListValues(elements),
            Collection::Set | Collection::Map => CellOperation::DeleteElements(elements),
        })
    }
}

impl Sign {
    /// The change of a counter; `None` if the value was left unset.
    fn change(self, bound: &Bound) -> Result<Option<CellOperation>, CqlError> {
        match bound {
            Bound::Value(bytes) => Ok(Some(CellOperation::AddToCounter(self.delta(bytes)?))),
            Bound::Null => Err(self.refused("null")),
            Bound::Unset => Ok(None),
        }
    }

    /// The number that a serialised value adds to a counter.
    fn delta(self, bytes: &[u8]) -> Result<i64, CqlError> {
        let number = bytes.try_into().map(i64::from_be_bytes);
        let number = number.map_err(|_| self.refused("empty"))?;
        match self {
            Sign::Plus => Ok(number),
            Sign::Minus => number.checked_neg().ok_or_else(|| {
                CqlError::invalid(format!(
                    "The negation of {number} overflows supported counter precision (signed 8 \
                     bytes integer)"
                ))
            }),
        }
    }

    fn refused(self, value: &str) -> CqlError {
        let what = match self {
            Sign::Plus => "increment",
            Sign::Minus => "decrement",
        };
        CqlError::invalid(format!("Invalid {value} value for counter {what}"))
    }
}

/// The place of an element in a collection.
enum Path {
    /// The position in a list, counted from 0.
    Index(u32),
    /// The key in a map, or the element of a set, serialised.
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
