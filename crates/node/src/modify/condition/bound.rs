//! Conditions on columns with their values bound, and the test of a row for them.
//!
//! A null equals null here and differs from every value, unlike in WHERE. An order with a null
//! never holds. A non-frozen collection compares in its frozen form; if it is empty, it is null.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::{Bound, PreparedInList, PreparedTerm, StatementClock};
use storage::mutation::{RowPredicate, RowTest};
use storage::read::Row;
use value::predicate::{Collection, Comparison, Predicate};
use value::{CqlType, LikePattern, UserType, compare, split_elements, split_entries};

use super::{ColumnCondition, Part, Predicates, Test};
use crate::parameters::BoundValue;
use crate::select::place::{Content, Place, Shape};

/// The predicates of these conditions on a row and on the static row of its partition.
///
/// # Errors
/// Values that don't fit, unset values, and nulls that can't be compared.
pub(super) fn predicates(
    columns: &[ColumnCondition],
    values: &[BoundValue],
    clock: &StatementClock,
) -> Result<Predicates, CqlError> {
    let mut of_row = Vec::new();
    let mut of_statics = Vec::new();
    for condition in columns {
        let bound = BoundCondition::new(condition, values, clock)?;
        match condition.is_static() {
            true => of_statics.push(bound),
            false => of_row.push(bound),
        }
    }
    Ok(Predicates {
        of_row: predicate(of_row),
        of_statics: predicate(of_statics),
    })
}

fn predicate(conditions: Vec<BoundCondition>) -> Option<RowPredicate> {
    (!conditions.is_empty()).then(|| RowPredicate::Passes(Arc::new(AllOf(conditions))))
}

/// Conditions on one row, all of which must hold.
#[derive(Debug)]
struct AllOf(Vec<BoundCondition>);

impl RowTest for AllOf {
    fn passes(&self, row: Option<&Row>) -> bool {
        self.0.iter().all(|condition| condition.holds(row))
    }
}

/// A condition on one column.
#[derive(Debug)]
struct BoundCondition {
    place: Place,
    /// The type of the column.
    column_type: CqlType,
    part: BoundPart,
    test: BoundTest,
}

#[derive(Debug)]
enum BoundPart {
    Whole,
    Index(usize),
    Key(Bytes),
    Field(usize),
}

/// The test of a part; `None` stands for null.
#[derive(Debug)]
enum BoundTest {
    Equal(CqlType, Option<Bytes>),
    NotEqual(CqlType, Option<Bytes>),
    Order(CqlType, Comparison, Bytes),
    In(CqlType, Vec<Option<Bytes>>),
    Like(LikePattern),
    Contains(Predicate),
}

impl BoundCondition {
    fn new(
        condition: &ColumnCondition,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<BoundCondition, CqlError> {
        let binding = Binding { values, clock };
        Ok(BoundCondition {
            place: Place::of(&condition.column),
            column_type: condition.column.cql_type.clone(),
            part: binding.part(&condition.part)?,
            test: binding.test(condition)?,
        })
    }

    fn holds(&self, row: Option<&Row>) -> bool {
        let content = row.map_or(Content::Null, |row| self.place.content(row));
        match &self.test {
            BoundTest::Contains(predicate) => predicate.holds(content.observed()),
            BoundTest::Equal(cql_type, value) => {
                is_equal(cql_type, self.value(content).as_ref(), value.as_ref())
            }
            BoundTest::NotEqual(cql_type, value) => {
                !is_equal(cql_type, self.value(content).as_ref(), value.as_ref())
            }
            BoundTest::Order(cql_type, comparison, value) => self
                .value(content)
                .is_some_and(|got| comparison.accepts(compare(cql_type, &got, value))),
            BoundTest::Like(pattern) => {
                let text = self.value(content);
                text.is_some_and(|text| pattern.matches(&text))
            }
            BoundTest::In(cql_type, values) => {
                let got = self.value(content);
                let mut values = values.iter();
                values.any(|value| is_equal(cql_type, got.as_ref(), value.as_ref()))
            }
        }
    }

    /// The value of the part; `None` for null.
    fn value(&self, content: Content<'_>) -> Option<Bytes> {
        match (&self.part, content) {
            (_, Content::Null) => None,
            (BoundPart::Whole, content) => content.to_bytes(Shape::of(&self.column_type)),
            (BoundPart::Index(index), Content::Elements(elements)) => {
                elements.get(*index).map(|(_, cell)| cell.value.clone())
            }
            (BoundPart::Index(index), Content::Value(frozen)) => {
                split_elements(frozen).ok()?.into_iter().nth(*index)
            }
            (BoundPart::Key(key), content) => {
                let CqlType::Map { key: key_type, .. } = &self.column_type else {
                    return None;
                };
                let is_key = |got: &Bytes| compare(key_type, got, key).is_eq();
                match content {
                    Content::Elements(elements) => {
                        let mut elements = elements.iter();
                        let found = elements.find(|(path, _)| is_key(path));
                        found.map(|(_, cell)| cell.value.clone())
                    }
                    Content::Value(frozen) => {
                        let mut entries = split_entries(frozen).ok()?.into_iter();
                        entries.find(|(got, _)| is_key(got)).map(|(_, value)| value)
                    }
                    Content::Null => None,
                }
            }
            (BoundPart::Field(position), Content::Elements(elements)) => {
                let path = UserType::path(*position);
                let found = elements.iter().find(|(got, _)| *got == path);
                found.map(|(_, cell)| cell.value.clone())
            }
            (BoundPart::Field(position), Content::Value(frozen)) => {
                let fields = self.column_type.user_type()?.split(frozen).ok()?;
                let field = fields.get(*position).copied().flatten()?;
                Some(frozen.slice_ref(field))
            }
        }
    }
}

fn is_equal(cql_type: &CqlType, got: Option<&Bytes>, wanted: Option<&Bytes>) -> bool {
    match (got, wanted) {
        (None, None) => true,
        (Some(got), Some(wanted)) => compare(cql_type, got, wanted).is_eq(),
        _ => false,
    }
}

/// The values of one execution.
#[derive(Clone, Copy)]
struct Binding<'v> {
    values: &'v [BoundValue],
    clock: &'v StatementClock,
}

impl Binding<'_> {
    fn part(self, part: &Part) -> Result<BoundPart, CqlError> {
        let needed = |term: &PreparedTerm, what: &str| {
            self.term(term)?.ok_or_else(|| {
                CqlError::invalid(format!("Invalid null value for {what} element access"))
            })
        };
        Ok(match part {
            Part::Whole => BoundPart::Whole,
            Part::Field(position) => BoundPart::Field(*position),
            Part::Key(key) => BoundPart::Key(needed(key, "map")?),
            Part::Index(index) => {
                let bytes = needed(index, "list")?;
                let index = <[u8; 4]>::try_from(&bytes[..]).map(i32::from_be_bytes);
                let index = index.map_err(|_| CqlError::invalid("Invalid empty list index"))?;
                let index = usize::try_from(index).map_err(|_| {
                    CqlError::invalid(format!("Invalid negative list index {index}"))
                })?;
                BoundPart::Index(index)
            }
        })
    }

    fn test(self, condition: &ColumnCondition) -> Result<BoundTest, CqlError> {
        let column_type = &condition.column.cql_type;
        Ok(match &condition.test {
            Test::Equal(term) => BoundTest::Equal(term.cql_type.clone(), self.compared(term)?),
            Test::NotEqual(term) => {
                BoundTest::NotEqual(term.cql_type.clone(), self.compared(term)?)
            }
            Test::Order(comparison, term) => {
                let sign = match comparison {
                    Comparison::Eq => "=",
                    Comparison::Lt => "<",
                    Comparison::LtEq => "<=",
                    Comparison::Gt => ">",
                    Comparison::GtEq => ">=",
                };
                let value = not_null(self.compared(term)?, sign)?;
                BoundTest::Order(term.cql_type.clone(), *comparison, value)
            }
            Test::In(list) => {
                // The values of `IN ?` have the frozen type of a collection that isn't frozen.
                let cql_type = match condition.part {
                    Part::Whole => column_type.clone(),
                    _ => list.value_type(),
                };
                self.one_of(list, cql_type)?
            }
            Test::Like(term) => {
                let pattern = not_null(self.compared(term)?, "LIKE")?;
                let pattern = LikePattern::new(&pattern);
                BoundTest::Like(pattern.map_err(|error| CqlError::invalid(error.0))?)
            }
            Test::Contains(term) => BoundTest::Contains(Predicate::Contains {
                collection: match column_type {
                    CqlType::Set { element, .. } => Collection::Set((**element).clone()),
                    CqlType::Map { value, .. } => Collection::MapValues((**value).clone()),
                    _ => Collection::List(term.cql_type.clone()),
                },
                value: not_null(self.compared(term)?, "CONTAINS")?,
            }),
            Test::ContainsKey(term) => BoundTest::Contains(Predicate::ContainsKey {
                key_type: term.cql_type.clone(),
                key: not_null(self.compared(term)?, "CONTAINS KEY")?,
            }),
        })
    }

    fn one_of(self, list: &PreparedInList, cql_type: CqlType) -> Result<BoundTest, CqlError> {
        let mut values = Vec::new();
        for bound in list.evaluate_with_nulls(self.values, self.clock)? {
            match bound {
                Bound::Value(bytes) => values.push(comparable(&cql_type, bytes)),
                Bound::Null => values.push(None),
                // As in Cassandra, the list is one shorter.
                Bound::Unset => {}
            }
        }
        Ok(BoundTest::In(cql_type, values))
    }

    /// The value to compare with.
    fn compared(self, term: &PreparedTerm) -> Result<Option<Bytes>, CqlError> {
        match self.term(term)? {
            Some(bytes) => Ok(comparable(&term.cql_type, bytes)),
            None => Ok(None),
        }
    }

    /// The value of a term; `None` for null.
    fn term(self, term: &PreparedTerm) -> Result<Option<Bytes>, CqlError> {
        match term.evaluate(self.values, self.clock)? {
            Bound::Value(bytes) => Ok(Some(bytes)),
            Bound::Null => Ok(None),
            Bound::Unset => Err(CqlError::invalid("Invalid 'unset' value in condition")),
        }
    }
}

/// The value to compare with; `None` if it is null as the value of a column.
fn comparable(cql_type: &CqlType, value: Bytes) -> Option<Bytes> {
    let is_empty = match cql_type {
        CqlType::List { frozen, .. }
        | CqlType::Set { frozen, .. }
        | CqlType::Map { frozen, .. } => !frozen && value[..] == [0; 4],
        _ => false,
    };
    (!is_empty).then_some(value)
}

fn not_null(value: Option<Bytes>, operator: &str) -> Result<Bytes, CqlError> {
    value.ok_or_else(|| {
        CqlError::invalid(format!(
            "Invalid comparison with null for operator \"{operator}\""
        ))
    })
}
