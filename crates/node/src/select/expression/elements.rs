//! Elements of a map or set that brackets behind a column select: one, or all within bounds.

use bytes::Bytes;
use cql::error::CqlError;
use storage::read::{LiveCell, Row};
use value::{CqlType, compare, join_elements, join_entries, split_elements, split_entries};

use super::{Expression, Scope};
use crate::select::place::{Content, Place};

/// The elements of a column that brackets select.
#[derive(Clone, Debug)]
pub(in crate::select) struct Elements {
    /// The name of the column, for messages.
    pub column: String,
    /// The place of the column.
    pub place: Place,
    /// The type of a map's keys or of a set's elements.
    pub key_type: CqlType,
    /// Whether the column is a map.
    pub is_map: bool,
    /// The terms in the brackets.
    pub brackets: Brackets,
}

/// The terms in brackets behind a column.
#[derive(Clone, Debug)]
pub(in crate::select) enum Brackets {
    /// `[key]`.
    One(Box<Expression>),
    /// `[from..to]`, both inclusive. A bound that is not written is `None`.
    Slice(Option<Box<Expression>>, Option<Box<Expression>>),
}

/// The values of the terms in brackets.
enum Wanted {
    One(Bytes),
    Slice(Option<Bytes>, Option<Bytes>),
}

impl Elements {
    /// The value under the key of a map, or the element if a set has it, or a map or set of the
    /// elements within the bounds; `None` for null.
    ///
    /// # Errors
    /// A null in the brackets, and terms that fail.
    pub(in crate::select) fn evaluate(&self, scope: Scope<'_>) -> Result<Option<Bytes>, CqlError> {
        let Some(row) = scope.row else {
            return Ok(None);
        };
        let wanted = self.wanted(scope)?;
        let is_slice = matches!(wanted, Wanted::Slice(..));
        let (entries, is_frozen) = match self.place.content(row) {
            Content::Null => return Ok(None),
            Content::Elements(elements) => {
                let entries = elements
                    .iter()
                    .map(|(path, cell)| (path.clone(), cell.value.clone()));
                (self.pick(&wanted, entries), false)
            }
            Content::Value(frozen) => (self.pick(&wanted, self.entries(frozen)), true),
        };
        Ok(match is_slice {
            false => entries
                .into_iter()
                .next()
                .map(|(key, value)| match self.is_map {
                    true => value,
                    false => key,
                }),
            true if entries.is_empty() && !is_frozen => None,
            true => Some(self.join(&entries)),
        })
    }

    /// The cells of the elements in a collection that is not frozen, in their order.
    ///
    /// # Errors
    /// As [`Elements::evaluate`].
    pub(in crate::select) fn cells<'r>(
        &self,
        row: &'r Row,
        scope: Scope<'_>,
    ) -> Result<Vec<&'r LiveCell>, CqlError> {
        let wanted = self.wanted(scope)?;
        Ok(match self.place.content(row) {
            Content::Elements(elements) => elements
                .iter()
                .filter(|(path, _)| wanted.includes(&self.key_type, path))
                .map(|(_, cell)| cell)
                .collect(),
            Content::Value(frozen) => {
                let found = self.pick(&wanted, self.entries(frozen));
                let cell = self.place.live_cell(row);
                cell.filter(|_| !found.is_empty()).into_iter().collect()
            }
            Content::Null => Vec::new(),
        })
    }

    fn wanted(&self, scope: Scope<'_>) -> Result<Wanted, CqlError> {
        let (what, wanted) = match &self.brackets {
            Brackets::One(key) => ("element", key.evaluate(scope)?.map(Wanted::One)),
            Brackets::Slice(from, to) => {
                let bound = |bound: &Option<Box<Expression>>| match bound {
                    None => Ok(Some(None)),
                    Some(term) => Ok::<_, CqlError>(term.evaluate(scope)?.map(Some)),
                };
                let bounds = bound(from)?.zip(bound(to)?);
                ("slice", bounds.map(|(from, to)| Wanted::Slice(from, to)))
            }
        };
        wanted.ok_or_else(|| {
            CqlError::invalid(format!(
                "Invalid null value for {what} selection on {}",
                self.column
            ))
        })
    }

    /// The entries of a frozen collection. An element of a set is a key without a value.
    fn entries(&self, frozen: &Bytes) -> std::vec::IntoIter<(Bytes, Bytes)> {
        let entries = match self.is_map {
            true => split_entries(frozen).unwrap_or_default(),
            false => {
                let elements = split_elements(frozen).unwrap_or_default();
                let with_nothing = elements.into_iter().map(|element| (element, Bytes::new()));
                with_nothing.collect()
            }
        };
        entries.into_iter()
    }

    fn pick(
        &self,
        wanted: &Wanted,
        entries: impl Iterator<Item = (Bytes, Bytes)>,
    ) -> Vec<(Bytes, Bytes)> {
        entries
            .filter(|(key, _)| wanted.includes(&self.key_type, key))
            .collect()
    }

    fn join(&self, entries: &[(Bytes, Bytes)]) -> Bytes {
        match self.is_map {
            true => join_entries(entries.iter().map(|(key, value)| (&key[..], &value[..]))),
            false => join_elements(entries.iter().map(|(element, _)| &element[..])),
        }
    }
}

impl Wanted {
    fn includes(&self, key_type: &CqlType, key: &[u8]) -> bool {
        match self {
            Wanted::One(wanted) => compare(key_type, key, wanted).is_eq(),
            Wanted::Slice(from, to) => {
                let starts = |from: &Bytes| compare(key_type, key, from).is_ge();
                let ends = |to: &Bytes| compare(key_type, key, to).is_le();
                from.as_ref().is_none_or(starts) && to.as_ref().is_none_or(ends)
            }
        }
    }
}
