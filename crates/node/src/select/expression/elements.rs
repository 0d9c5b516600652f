//! Elements of a map or set that brackets after a selector select: one, or all within bounds.

use bytes::Bytes;
use cql::error::CqlError;
use storage::read::{LiveCell, Row};
use value::{CqlType, compare, join_elements, join_entries, split_elements, split_entries};

use super::{EvaluationContext, Expression};
use crate::select::column_location::{ColumnContent, ColumnLocation};

/// The elements of a map or set that brackets select.
#[derive(Clone, Debug)]
pub(in crate::select) struct ElementSelection {
    /// The text before the brackets, for messages.
    pub text: String,
    /// The map or set.
    pub of: CollectionOperand,
    /// The type of a map's keys or of a set's elements.
    pub key_type: CqlType,
    /// Whether it is a map.
    pub is_map: bool,
    /// The terms in the brackets.
    pub brackets: BracketTerms,
}

/// The map or set before brackets.
#[derive(Clone, Debug)]
pub(in crate::select) enum CollectionOperand {
    /// A column.
    Column(ColumnLocation),
    /// A value, which is frozen.
    Value(Box<Expression>),
}

/// The terms in brackets.
#[derive(Clone, Debug)]
pub(in crate::select) enum BracketTerms {
    /// `[key]`.
    One(Box<Expression>),
    /// `[from..to]`, both inclusive. A bound that is not written is `None`.
    Slice(Option<Box<Expression>>, Option<Box<Expression>>),
}

/// The values of the terms in brackets.
enum BracketValues {
    One(Bytes),
    Slice(Option<Bytes>, Option<Bytes>),
}

impl ElementSelection {
    /// The value under the key of a map, or the element if a set has it, or a map or set of the
    /// elements within the bounds; `None` for null.
    ///
    /// # Errors
    /// A null in the brackets, and terms that fail.
    pub(in crate::select) fn evaluate(
        &self,
        scope: EvaluationContext<'_>,
    ) -> Result<Option<Bytes>, CqlError> {
        let (wanted, entries, is_frozen) = match &self.of {
            CollectionOperand::Value(value) => {
                let Some(frozen) = value.evaluate(scope)? else {
                    return Ok(None);
                };
                let wanted = self.bracket_values(scope)?;
                let entries = self.pick(&wanted, self.entries(&frozen));
                (wanted, entries, true)
            }
            CollectionOperand::Column(place) => {
                let Some(row) = scope.row else {
                    return Ok(None);
                };
                let wanted = self.bracket_values(scope)?;
                match place.content(row) {
                    ColumnContent::Null => return Ok(None),
                    ColumnContent::Elements(elements) => {
                        let entries = elements
                            .iter()
                            .map(|(path, cell)| (path.clone(), cell.value.clone()));
                        let entries = self.pick(&wanted, entries);
                        (wanted, entries, false)
                    }
                    ColumnContent::Value(frozen) => {
                        let entries = self.pick(&wanted, self.entries(frozen));
                        (wanted, entries, true)
                    }
                }
            }
        };
        Ok(match matches!(wanted, BracketValues::Slice(..)) {
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

    /// The cells of the elements of a column that is not frozen, in their order.
    ///
    /// # Errors
    /// As [`ElementSelection::evaluate`].
    pub(in crate::select) fn cells<'r>(
        &self,
        row: &'r Row,
        scope: EvaluationContext<'_>,
    ) -> Result<Vec<&'r LiveCell>, CqlError> {
        let CollectionOperand::Column(place) = &self.of else {
            return Ok(Vec::new());
        };
        let wanted = self.bracket_values(scope)?;
        Ok(match place.content(row) {
            ColumnContent::Elements(elements) => elements
                .iter()
                .filter(|(path, _)| wanted.includes(&self.key_type, path))
                .map(|(_, cell)| cell)
                .collect(),
            ColumnContent::Value(frozen) => {
                let found = self.pick(&wanted, self.entries(frozen));
                let cell = place.live_cell(row);
                cell.filter(|_| !found.is_empty()).into_iter().collect()
            }
            ColumnContent::Null => Vec::new(),
        })
    }

    fn bracket_values(&self, scope: EvaluationContext<'_>) -> Result<BracketValues, CqlError> {
        let (what, wanted) = match &self.brackets {
            BracketTerms::One(key) => ("element", key.evaluate(scope)?.map(BracketValues::One)),
            BracketTerms::Slice(from, to) => {
                let bound = |bound: &Option<Box<Expression>>| match bound {
                    None => Ok(Some(None)),
                    Some(term) => Ok::<_, CqlError>(term.evaluate(scope)?.map(Some)),
                };
                let bounds = bound(from)?.zip(bound(to)?);
                (
                    "slice",
                    bounds.map(|(from, to)| BracketValues::Slice(from, to)),
                )
            }
        };
        wanted.ok_or_else(|| {
            CqlError::invalid(format!(
                "Invalid null value for {what} selection on {}",
                self.text
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
        wanted: &BracketValues,
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

impl BracketValues {
    fn includes(&self, key_type: &CqlType, key: &[u8]) -> bool {
        match self {
            BracketValues::One(wanted) => compare(key_type, key, wanted).is_eq(),
            BracketValues::Slice(from, to) => {
                let starts = |from: &Bytes| compare(key_type, key, from).is_ge();
                let ends = |to: &Bytes| compare(key_type, key, to).is_le();
                from.as_ref().is_none_or(starts) && to.as_ref().is_none_or(ends)
            }
        }
    }
}
