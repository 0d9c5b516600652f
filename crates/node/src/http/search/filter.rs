//! The filter of a search: `{"column": value}`, `{"column": {"gt": 5, "lte": 9}}`,
//! `{"column": {"in": [..]}}`, `{"and": [..]}`, `{"or": [..]}` and `{"not": {..}}`.
//!
//! Conditions that WHERE has a form for become its relations, since these also choose an index and
//! lead a scan. The others become a tree of conditions ([`ColumnsPredicate`]).

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{Column, Table};
use serde::Deserialize;
use serde_json::value::RawValue;
use store_api::ColumnsPredicate;
use value::identifier::quoted;
use value::predicate::{ComparisonOperator, OneOf, Predicate, SearchedCollection};
use value::{CqlType, from_json};

use crate::http::failure::HttpFailure;
use crate::http::names::column_of;
use crate::http::statements::ComposedStatement;

/// The most levels of a filter.
const LEVELS_MAX: usize = 32;

/// A filter as it is written.
#[derive(Clone, Debug, PartialEq)]
enum WrittenFilter {
    All(Vec<WrittenFilter>),
    Any(Vec<WrittenFilter>),
    Not(Box<WrittenFilter>),
    Test(FilteredColumn),
}

/// A condition on a column.
#[derive(Clone, Debug, PartialEq)]
struct FilteredColumn {
    column: String,
    operator: FilterOperator,
    /// The JSON of the value.
    json: String,
}

/// The comparison of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FilterOperator {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    Contains,
    ContainsKey,
    /// Words that the text must match.
    Match,
}

/// The conditions of a search.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SearchConditions {
    relations: Vec<FilteredColumn>,
    /// The conditions that WHERE has no form for.
    pub tree: Option<ColumnsPredicate>,
}

impl SearchConditions {
    /// The conditions of a filter.
    ///
    /// # Errors
    /// A filter of another form, and columns that the table does not have.
    pub fn of(table: &Table, filter: &RawValue) -> Result<SearchConditions, HttpFailure> {
        let mut conjuncts = Vec::new();
        conjuncts_of(written(filter.get(), LEVELS_MAX)?, &mut conjuncts);
        let mut by_column: BTreeMap<String, Vec<FilteredColumn>> = BTreeMap::new();
        let mut others = Vec::new();
        for conjunct in conjuncts {
            match conjunct {
                WrittenFilter::Test(test) => {
                    let name = column_of(table, &test.column)?.name.clone();
                    let test = FilteredColumn {
                        column: name.clone(),
                        ..test
                    };
                    by_column.entry(name).or_default().push(test);
                }
                other => others.push(predicate(table, &other)?),
            }
        }
        let mut conditions = SearchConditions::default();
        for (_, tests) in by_column {
            if have_relations(&tests) {
                conditions.relations.extend(tests);
                continue;
            }
            for test in tests {
                others.push(predicate(table, &WrittenFilter::Test(test))?);
            }
        }
        conditions.tree = match others.len() {
            0 => None,
            1 => others.pop(),
            _ => Some(ColumnsPredicate::All(others)),
        };
        Ok(conditions)
    }

    /// Appends WHERE, if there are relations.
    pub fn put_where(&self, statement: &mut ComposedStatement) {
        let mut before = " WHERE ";
        for test in &self.relations {
            let column = quoted(&test.column);
            statement.put(before);
            before = " AND ";
            match test.operator.relation() {
                Some(operator) => {
                    statement.put(&format!("{column} {operator} "));
                    statement.bind_json(&test.column, &test.json);
                }
                None => {
                    statement.put(&format!("BM25({column}, "));
                    statement.bind_json(&test.column, &test.json);
                    statement.put(") > 0");
                }
            }
        }
    }
}

/// Whether WHERE may have all these conditions on one column together.
fn have_relations(tests: &[FilteredColumn]) -> bool {
    use FilterOperator::{Contains, ContainsKey, Eq, Gt, Gte, In, Lt, Lte, Match, Ne};
    let count = |wanted: &[FilterOperator]| {
        let tests = tests.iter();
        tests.filter(|test| wanted.contains(&test.operator)).count()
    };
    let (equal, lower, upper) = (count(&[Eq, In]), count(&[Gt, Gte]), count(&[Lt, Lte]));
    let others = count(&[Contains, ContainsKey, Match]);
    let kinds = [equal, lower.max(upper), others];
    count(&[Ne]) == 0
        && equal <= 1
        && lower <= 1
        && upper <= 1
        && kinds.iter().filter(|kind| **kind > 0).count() == 1
}

impl FilterOperator {
    /// The operator of a relation; `None` for words.
    fn relation(self) -> Option<&'static str> {
        Some(match self {
            FilterOperator::Eq => "=",
            FilterOperator::Ne => "!=",
            FilterOperator::Gt => ">",
            FilterOperator::Gte => ">=",
            FilterOperator::Lt => "<",
            FilterOperator::Lte => "<=",
            FilterOperator::In => "IN",
            FilterOperator::Contains => "CONTAINS",
            FilterOperator::ContainsKey => "CONTAINS KEY",
            FilterOperator::Match => return None,
        })
    }
}

/// Appends the conditions that must all hold.
fn conjuncts_of(filter: WrittenFilter, to: &mut Vec<WrittenFilter>) {
    match filter {
        WrittenFilter::All(parts) => parts.into_iter().for_each(|part| conjuncts_of(part, to)),
        other => to.push(other),
    }
}

/// Reads a filter of so many levels at most. The fields of an object must all hold.
fn written(json: &str, levels: usize) -> Result<WrittenFilter, HttpFailure> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(HttpFailure::bad_request(
            format!("a filter has {LEVELS_MAX} levels at most"),
            "write it with fewer levels",
        ));
    };
    let fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(json).map_err(|error| formless(json, &error))?;
    let list = |json: &str| -> Result<Vec<WrittenFilter>, HttpFailure> {
        let parts: Vec<&RawValue> =
            serde_json::from_str(json).map_err(|error| formless(json, &error))?;
        parts
            .iter()
            .map(|part| written(part.get(), levels))
            .collect()
    };
    let mut parts = Vec::new();
    for (name, value) in fields {
        let json = value.get();
        match name.as_str() {
            "and" => parts.push(WrittenFilter::All(list(json)?)),
            "or" => parts.push(WrittenFilter::Any(list(json)?)),
            "not" => parts.push(WrittenFilter::Not(Box::new(written(json, levels)?))),
            _ => parts.extend(tests(&name, json)),
        }
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => WrittenFilter::All(parts),
    })
}

/// The conditions on one column. An object of operators has one for each; any other value is the
/// column's.
fn tests(column: &str, json: &str) -> Vec<WrittenFilter> {
    let test = |operator, json: &str| {
        WrittenFilter::Test(FilteredColumn {
            column: column.to_owned(),
            operator,
            json: json.to_owned(),
        })
    };
    let operators = serde_json::from_str::<BTreeMap<FilterOperator, &RawValue>>(json);
    match operators {
        Ok(operators) if !operators.is_empty() => {
            let operators = operators.into_iter();
            operators
                .map(|(operator, value)| test(operator, value.get()))
                .collect()
        }
        _ => vec![test(FilterOperator::Eq, json)],
    }
}

fn formless(json: &str, error: &serde_json::Error) -> HttpFailure {
    let shown: String = json.chars().take(60).collect();
    HttpFailure::bad_request(
        format!("filter: {shown}: {error}"),
        "a filter is {\"column\": value}, {\"column\": {\"gt\": 5}}, {\"and\": [..]}, {\"or\": [..]} or \
         {\"not\": {..}}",
    )
}

/// The tree of conditions that a filter is.
fn predicate(table: &Table, filter: &WrittenFilter) -> Result<ColumnsPredicate, HttpFailure> {
    let all = |parts: &[WrittenFilter]| {
        let parts = parts.iter().map(|part| predicate(table, part));
        parts.collect::<Result<Vec<_>, HttpFailure>>()
    };
    Ok(match filter {
        WrittenFilter::All(parts) => ColumnsPredicate::All(all(parts)?),
        WrittenFilter::Any(parts) => ColumnsPredicate::Any(all(parts)?),
        WrittenFilter::Not(inner) => ColumnsPredicate::Not(Box::new(predicate(table, inner)?)),
        WrittenFilter::Test(test) => {
            let column = column_of(table, &test.column)?;
            let of_column = |predicate| ColumnsPredicate::Column {
                column: column.name.clone(),
                predicate,
            };
            match test.operator {
                FilterOperator::Ne => {
                    let equal = comparison(column, ComparisonOperator::Eq, &test.json)?;
                    ColumnsPredicate::Not(Box::new(of_column(equal)))
                }
                operator => of_column(column_predicate(column, operator, &test.json)?),
            }
        }
    })
}

fn column_predicate(
    column: &Column,
    operator: FilterOperator,
    json: &str,
) -> Result<Predicate, HttpFailure> {
    let compared = |operator| comparison(column, operator, json);
    match operator {
        FilterOperator::Eq | FilterOperator::Ne => compared(ComparisonOperator::Eq),
        FilterOperator::Gt => compared(ComparisonOperator::Gt),
        FilterOperator::Gte => compared(ComparisonOperator::GtEq),
        FilterOperator::Lt => compared(ComparisonOperator::Lt),
        FilterOperator::Lte => compared(ComparisonOperator::LtEq),
        FilterOperator::In => {
            let listed: Vec<&RawValue> =
                serde_json::from_str(json).map_err(|error| formless(json, &error))?;
            let values = listed.iter();
            let values = values.map(|one| value_of(column, &column.cql_type, one.get()));
            let values = values.collect::<Result<_, _>>()?;
            check_comparable(column)?;
            Ok(Predicate::In(OneOf::new(column.cql_type.clone(), values)))
        }
        FilterOperator::Contains => {
            let (collection, element) = match &column.cql_type {
                CqlType::List { element, .. } => {
                    (SearchedCollection::List((**element).clone()), element)
                }
                CqlType::Set { element, .. } => {
                    (SearchedCollection::Set((**element).clone()), element)
                }
                CqlType::Map { value, .. } => {
                    (SearchedCollection::MapValues((**value).clone()), value)
                }
                _ => return Err(unsuitable(column, "contains is for lists, sets and maps")),
            };
            let value = value_of(column, element, json)?;
            Ok(Predicate::Contains { collection, value })
        }
        FilterOperator::ContainsKey => match &column.cql_type {
            CqlType::Map { key, .. } => Ok(Predicate::ContainsKey {
                key_type: (**key).clone(),
                key: value_of(column, key, json)?,
            }),
            _ => Err(unsuitable(column, "contains_key is for maps")),
        },
        FilterOperator::Match => Err(unsuitable(
            column,
            "match must not be within or and not; it may be within and",
        )),
    }
}

fn comparison(
    column: &Column,
    comparison: ComparisonOperator,
    json: &str,
) -> Result<Predicate, HttpFailure> {
    check_comparable(column)?;
    if comparison != ComparisonOperator::Eq && column.cql_type.holds_durations() {
        return Err(unsuitable(column, "durations have no order"));
    }
    Ok(Predicate::Compare {
        cql_type: column.cql_type.clone(),
        comparison,
        value: value_of(column, &column.cql_type, json)?,
    })
}

fn check_comparable(column: &Column) -> Result<(), HttpFailure> {
    if column.cql_type.is_multi_cell() {
        return Err(unsuitable(
            column,
            "only contains and contains_key go with it",
        ));
    }
    if matches!(column.cql_type, CqlType::Vector { .. }) {
        return Err(unsuitable(column, "vectors are searched, not compared"));
    }
    Ok(())
}

fn unsuitable(column: &Column, why: &str) -> HttpFailure {
    HttpFailure::bad_request(
        format!(
            "filter: {} is of type {}: {why}",
            column.name, column.cql_type
        ),
        "GET /api/v1/schema shows the types of columns",
    )
}

/// The value of a condition.
fn value_of(column: &Column, cql_type: &CqlType, json: &str) -> Result<Bytes, HttpFailure> {
    let value = from_json(cql_type, json);
    let value = value.map_err(|error| HttpFailure::of_value(&column.name, &error))?;
    value.ok_or_else(|| unsuitable(column, "a condition has no null, which no row satisfies"))
}

#[cfg(test)]
mod tests {
    use schema::ColumnKind;

    use super::*;
    use crate::fixtures;

    fn conditions(filter: &str) -> Result<(String, Option<ColumnsPredicate>), HttpFailure> {
        let regular = ColumnKind::Regular;
        let table = fixtures::table(
            "t",
            1,
            &[
                ("id", ColumnKind::PartitionKey { position: 0 }, CqlType::Int),
                ("price", regular, CqlType::Int),
                ("colour", regular, CqlType::Text),
                (
                    "v",
                    regular,
                    CqlType::Vector {
                        element: Box::new(CqlType::Float),
                        dimensions: 2,
                    },
                ),
            ],
        );
        let filter: &RawValue = serde_json::from_str(filter).unwrap();
        let conditions = SearchConditions::of(&table, filter)?;
        let mut statement = ComposedStatement::default();
        conditions.put_where(&mut statement);
        Ok((statement.text, conditions.tree))
    }

    #[test]
    fn conditions_that_where_has_a_form_for_become_relations() {
        for (filter, text) in [
            ("{}", ""),
            (r#"{"colour": "red"}"#, r#" WHERE "colour" = ?"#),
            (
                r#"{"price": {"gt": 5, "lte": 9}}"#,
                r#" WHERE "price" > ? AND "price" <= ?"#,
            ),
            (r#"{"colour": {"in": ["red"]}}"#, r#" WHERE "colour" IN ?"#),
            (
                r#"{"and": [{"colour": "red"}, {"and": [{"id": 2}]}]}"#,
                r#" WHERE "colour" = ? AND "id" = ?"#,
            ),
            (
                r#"{"colour": {"match": "tea"}}"#,
                r#" WHERE BM25("colour", ?) > 0"#,
            ),
        ] {
            assert_eq!(conditions(filter), Ok((text.to_owned(), None)), "{filter}");
        }
    }

    #[test]
    fn the_other_conditions_become_a_tree() {
        for filter in [
            r#"{"or": [{"colour": "red"}, {"price": {"lt": 3}}]}"#,
            r#"{"not": {"colour": "red"}}"#,
            r#"{"price": {"ne": 3}}"#,
            r#"{"and": [{"price": 3}, {"price": 4}]}"#,
            r#"{"and": [{"price": {"gt": 3}}, {"price": {"gt": 4}}]}"#,
        ] {
            let (text, tree) = conditions(filter).unwrap();
            assert!(text.is_empty() && tree.is_some(), "{filter}: {text}");
        }
        let (text, tree) = conditions(r#"{"id": 1, "not": {"price": 3}}"#).unwrap();
        assert_eq!(text, r#" WHERE "id" = ?"#);
        assert!(matches!(tree, Some(ColumnsPredicate::Not(_))));
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        let deep = format!("{}{{}}{}", r#"{"not": "#.repeat(40), "}".repeat(40));
        for filter in [
            r#"{"size": 3}"#,
            r#"{"or": {"price": 3}}"#,
            r#"{"not": {"price": null}}"#,
            r#"{"not": {"price": "many"}}"#,
            r#"{"not": {"v": [1, 2]}}"#,
            r#"{"or": [{"colour": {"match": "tea"}}]}"#,
            "[]",
            &deep,
        ] {
            assert!(conditions(filter).is_err(), "{filter}");
        }
    }
}
