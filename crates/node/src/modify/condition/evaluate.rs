//! Conditions on columns with their values bound, and the test of a row for them.
//!
//! A null equals null here and differs from every value, unlike in WHERE. An order with a null
//! never holds. A non-frozen collection compares in its frozen form; if it is empty, it is null.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::{PreparedInList, PreparedTerm, StatementClock, TermValue};
use storage::mutation::{RowPredicate, RowTest};
use storage::read::{LiveCell, Row};
use value::predicate::{ComparisonOperator, ContainsAll, OneOf, SearchedCollection};
use value::{CqlType, LikePattern, UserType, compare, split_elements, split_entries};

use super::{BoundPredicates, ColumnCondition, PartTest, RowTests, TestedPart};
use crate::select::column_location::{ColumnContent, ColumnLocation, ValueShape};
use crate::statement::BoundValue;

/// The predicates of these conditions on a row and on the static row of its partition.
///
/// # Errors
/// Values that don't fit, unset values, and nulls that can't be compared.
pub(super) fn predicates(
    columns: &[ColumnCondition],
    values: &[BoundValue],
    clock: &StatementClock,
) -> Result<BoundPredicates, CqlError> {
    let mut of_row = Vec::new();
    let mut of_statics = Vec::new();
    for condition in columns {
        let bound = BoundCondition::new(condition, values, clock)?;
        match condition.is_static() {
            true => of_statics.push(bound),
            false => of_row.push(bound),
        }
    }
    let tests = |conditions: Vec<_>| {
        let are_there = !conditions.is_empty();
        are_there.then_some(RowTests::OfColumns(conditions))
    };
    Ok(BoundPredicates {
        of_row: tests(of_row),
        of_statics: tests(of_statics),
    })
}

/// The predicate of a row that all these conditions hold for.
pub(super) fn all_of(conditions: Vec<BoundCondition>) -> RowPredicate {
    RowPredicate::Passes(Arc::new(AllColumnTests::new(conditions)))
}

/// Conditions on one row, all of which must hold. A statement or batch may have thousands of them
/// on a large collection. Those on one column look at it together, so that it is read once.
#[derive(Debug)]
struct AllColumnTests(Vec<ColumnTests>);

/// The conditions on one column.
#[derive(Debug)]
struct ColumnTests {
    place: ColumnLocation,
    cql_type: CqlType,
    tests: Vec<(BoundPart, BoundTest)>,
    /// The values that the column must contain.
    contains: Vec<ContainsAll>,
}

impl AllColumnTests {
    fn new(conditions: Vec<BoundCondition>) -> AllColumnTests {
        let mut columns: Vec<ColumnTests> = Vec::new();
        let mut places = HashMap::new();
        let mut values: HashMap<ColumnLocation, (SearchedCollection, Vec<Bytes>)> = HashMap::new();
        let mut keys: HashMap<ColumnLocation, (CqlType, Vec<Bytes>)> = HashMap::new();
        for BoundCondition {
            place,
            column_type,
            part,
            test,
        } in conditions
        {
            let at = *places.entry(place).or_insert_with(|| {
                columns.push(ColumnTests {
                    place,
                    cql_type: column_type,
                    tests: Vec::new(),
                    contains: Vec::new(),
                });
                columns.len() - 1
            });
            match test {
                BoundTest::Contains(collection, value) => {
                    let known = values.entry(place);
                    known.or_insert((collection, Vec::new())).1.push(value);
                }
                BoundTest::ContainsKey(key_type, key) => {
                    keys.entry(place)
                        .or_insert((key_type, Vec::new()))
                        .1
                        .push(key);
                }
                test => columns[at].tests.push((part, test)),
            }
        }
        for column in &mut columns {
            let values = values.remove(&column.place);
            let keys = keys.remove(&column.place);
            let values = values.map(|(of, wanted)| ContainsAll::values(of, wanted));
            let keys = keys.map(|(of, wanted)| ContainsAll::keys(of, wanted));
            column.contains.extend(values.into_iter().chain(keys));
        }
        AllColumnTests(columns)
    }
}

impl RowTest for AllColumnTests {
    fn passes(&self, row: Option<&Row>) -> bool {
        self.0.iter().all(|column| column.holds(row))
    }
}

impl ColumnTests {
    fn holds(&self, row: Option<&Row>) -> bool {
        let content = row.map_or(ColumnContent::Null, |row| self.place.content(row));
        let looked = DecodedColumn {
            content,
            cql_type: &self.cql_type,
            whole: OnceCell::new(),
            elements: OnceCell::new(),
            entries: OnceCell::new(),
        };
        let mut contains = self.contains.iter();
        let mut tests = self.tests.iter();
        contains.all(|contains| contains.holds(content.observed()))
            && tests.all(|(part, test)| test.holds(looked.value(part)))
    }
}

/// A condition on one column.
#[derive(Debug)]
pub(in crate::modify) struct BoundCondition {
    place: ColumnLocation,
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

/// The test of a part; `None` is null.
#[derive(Debug)]
enum BoundTest {
    Equal(CqlType, Option<Bytes>),
    NotEqual(CqlType, Option<Bytes>),
    Order(CqlType, ComparisonOperator, Bytes),
    In {
        values: OneOf,
        /// Whether null is one of the values, too.
        has_null: bool,
    },
    Like(LikePattern),
    Contains(SearchedCollection, Bytes),
    ContainsKey(CqlType, Bytes),
}

impl BoundCondition {
    fn new(
        condition: &ColumnCondition,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<BoundCondition, CqlError> {
        let binding = BindingContext { values, clock };
        Ok(BoundCondition {
            place: ColumnLocation::of(&condition.column),
            column_type: condition.column.cql_type.clone(),
            part: binding.part(&condition.part)?,
            test: binding.test(condition)?,
        })
    }
}

impl BoundTest {
    /// Whether the test holds for the value of its part; `None` for null. Those of what a
    /// collection contains are apart ([`ColumnTests::contains`]).
    fn holds(&self, got: Option<Bytes>) -> bool {
        match self {
            BoundTest::Equal(cql_type, value) => is_equal(cql_type, got.as_ref(), value.as_ref()),
            BoundTest::NotEqual(cql_type, value) => {
                !is_equal(cql_type, got.as_ref(), value.as_ref())
            }
            BoundTest::Order(cql_type, comparison, value) => {
                got.is_some_and(|got| comparison.accepts(compare(cql_type, &got, value)))
            }
            BoundTest::Like(pattern) => got.is_some_and(|text| pattern.matches(&text)),
            BoundTest::In { values, has_null } => match got {
                Some(got) => values.contains(&got),
                None => *has_null,
            },
            BoundTest::Contains(..) | BoundTest::ContainsKey(..) => false,
        }
    }
}

/// The content of a column that conditions look at. What they make of it is made once.
struct DecodedColumn<'r> {
    content: ColumnContent<'r>,
    cql_type: &'r CqlType,
    whole: OnceCell<Option<Bytes>>,
    /// The elements of a frozen list; none of bytes that are no list.
    elements: OnceCell<Vec<Bytes>>,
    /// The entries of a frozen map in the order of their keys; none of bytes that are no map.
    entries: OnceCell<Vec<(Bytes, Bytes)>>,
}

impl DecodedColumn<'_> {
    /// The value of a part; `None` for null.
    fn value(&self, part: &BoundPart) -> Option<Bytes> {
        match (part, self.content) {
            (_, ColumnContent::Null) => None,
            (BoundPart::Whole, content) => {
                let whole = || content.to_bytes(ValueShape::of(self.cql_type));
                self.whole.get_or_init(whole).clone()
            }
            (BoundPart::Index(index), ColumnContent::Elements(elements)) => {
                elements.get(*index).map(|(_, cell)| cell.value.clone())
            }
            (BoundPart::Index(index), ColumnContent::Value(frozen)) => {
                let split = || split_elements(frozen).unwrap_or_default();
                self.elements.get_or_init(split).get(*index).cloned()
            }
            (BoundPart::Key(key), content) => {
                let CqlType::Map { key: key_type, .. } = self.cql_type else {
                    return None;
                };
                match content {
                    ColumnContent::Elements(elements) => find(elements, key_type, key),
                    ColumnContent::Value(frozen) => {
                        let entries = self.entries.get_or_init(|| {
                            let mut entries = split_entries(frozen).unwrap_or_default();
                            entries.sort_by(|(a, _), (b, _)| compare(key_type, a, b));
                            entries
                        });
                        let at =
                            entries.partition_point(|(got, _)| compare(key_type, got, key).is_lt());
                        let found = entries.get(at);
                        let found = found.filter(|(got, _)| compare(key_type, got, key).is_eq());
                        found.map(|(_, value)| value.clone())
                    }
                    ColumnContent::Null => None,
                }
            }
            (BoundPart::Field(position), ColumnContent::Elements(elements)) => {
                find(elements, &CqlType::Smallint, &UserType::path(*position))
            }
            (BoundPart::Field(position), ColumnContent::Value(frozen)) => {
                let fields = self.cql_type.user_type()?.split(frozen).ok()?;
                let field = fields.get(*position).copied().flatten()?;
                Some(frozen.slice_ref(field))
            }
        }
    }
}

/// The value of the element with a path, among elements in the order of their paths.
fn find(elements: &[(Bytes, LiveCell)], path_type: &CqlType, path: &[u8]) -> Option<Bytes> {
    let at = elements.binary_search_by(|(got, _)| compare(path_type, got, path));
    Some(elements[at.ok()?].1.value.clone())
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
struct BindingContext<'v> {
    values: &'v [BoundValue],
    clock: &'v StatementClock,
}

impl BindingContext<'_> {
    fn part(self, part: &TestedPart) -> Result<BoundPart, CqlError> {
        let needed = |term: &PreparedTerm, what: &str| {
            self.term(term)?.ok_or_else(|| {
                CqlError::invalid(format!("Invalid null value for {what} element access"))
            })
        };
        Ok(match part {
            TestedPart::Whole => BoundPart::Whole,
            TestedPart::Field(position) => BoundPart::Field(*position),
            TestedPart::Key(key) => BoundPart::Key(needed(key, "map")?),
            TestedPart::Index(index) => {
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
            PartTest::Equal(term) => BoundTest::Equal(term.cql_type.clone(), self.compared(term)?),
            PartTest::NotEqual(term) => {
                BoundTest::NotEqual(term.cql_type.clone(), self.compared(term)?)
            }
            PartTest::Order(comparison, term) => {
                let sign = match comparison {
                    ComparisonOperator::Eq => "=",
                    ComparisonOperator::Lt => "<",
                    ComparisonOperator::LtEq => "<=",
                    ComparisonOperator::Gt => ">",
                    ComparisonOperator::GtEq => ">=",
                };
                let value = not_null(self.compared(term)?, sign)?;
                BoundTest::Order(term.cql_type.clone(), *comparison, value)
            }
            PartTest::In(list) => {
                // The values of `IN ?` have the frozen type of a collection that isn't frozen.
                let cql_type = match condition.part {
                    TestedPart::Whole => column_type.clone(),
                    _ => list.value_type(),
                };
                self.one_of(list, cql_type)?
            }
            PartTest::Like(term) => {
                let pattern = not_null(self.compared(term)?, "LIKE")?;
                let pattern = LikePattern::new(&pattern);
                BoundTest::Like(pattern.map_err(|error| CqlError::invalid(error.0))?)
            }
            PartTest::Contains(term) => {
                let collection = match column_type {
                    CqlType::Set { element, .. } => SearchedCollection::Set((**element).clone()),
                    CqlType::Map { value, .. } => SearchedCollection::MapValues((**value).clone()),
                    _ => SearchedCollection::List(term.cql_type.clone()),
                };
                BoundTest::Contains(collection, not_null(self.compared(term)?, "CONTAINS")?)
            }
            PartTest::ContainsKey(term) => BoundTest::ContainsKey(
                term.cql_type.clone(),
                not_null(self.compared(term)?, "CONTAINS KEY")?,
            ),
        })
    }

    fn one_of(self, list: &PreparedInList, cql_type: CqlType) -> Result<BoundTest, CqlError> {
        let mut values = Vec::new();
        let mut has_null = false;
        for bound in list.evaluate_with_nulls(self.values, self.clock)? {
            let value = match bound {
                TermValue::Value(bytes) => comparable(&cql_type, bytes),
                TermValue::Null => None,
                // As in Cassandra, the list is one shorter.
                TermValue::Unset => continue,
            };
            has_null |= value.is_none();
            values.extend(value);
        }
        Ok(BoundTest::In {
            values: OneOf::new(cql_type, values),
            has_null,
        })
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
            TermValue::Value(bytes) => Ok(Some(bytes)),
            TermValue::Null => Ok(None),
            TermValue::Unset => Err(CqlError::invalid("Invalid 'unset' value in condition")),
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
