//! The queries of a search, with the columns and the values that they look for.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{Column, Table};
use serde_json::value::RawValue;
use value::from_json;
use value::identifier::quoted;

use super::body::{QueryBody, RowSearchBody};
use crate::http::call::TableCall;
use crate::http::failure::HttpFailure;
use crate::http::names::{column_of, qualified};
use crate::http::rows::GivenKey;
use crate::http::statements::{ComposedStatement, MarkerValue};

/// The most queries that make one order.
const QUERIES_MAX: usize = 16;

/// A query of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResolvedQuery {
    pub column: String,
    pub form: QueryForm,
    pub value: MarkerValue,
    /// The factor of its part of the order.
    pub weight: f64,
    /// The least score of a row.
    pub threshold: Option<f64>,
}

/// The form in which a query looks for its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryForm {
    /// The nearest vectors.
    Vector,
    /// Words, as they are.
    Words,
    /// A query for words, with operators.
    WordQuery,
}

/// The queries of a search, and the keys of the rows that they look for, which are not found.
pub(super) struct ResolvedQueries {
    pub queries: Vec<ResolvedQuery>,
    /// The serialised values of primary keys.
    pub excluded: Vec<Vec<Bytes>>,
}

/// Resolves the queries of a search. A row that is the query is read.
///
/// # Errors
/// A search without queries, a column that is not there or not searched, and a row that is not
/// there.
pub(super) async fn resolve(
    call: &TableCall,
    table: &Table,
    given: &RowSearchBody<'_>,
) -> Result<ResolvedQueries, HttpFailure> {
    let own = own_queries(given);
    if own.is_empty() == given.queries.is_empty() {
        let error = match own.is_empty() {
            true => "there is nothing to search for",
            false => "queries goes with no vector, text, query or row next to it",
        };
        let hint = "send one of vector, text, query and row, several of them, or queries";
        return Err(HttpFailure::bad_request(error, hint));
    }
    let queries = if own.is_empty() { &given.queries } else { &own };
    if queries.len() > QUERIES_MAX {
        return Err(HttpFailure::bad_request(
            format!("a search has {QUERIES_MAX} queries at most"),
            "send several searches",
        ));
    }
    let mut resolved = ResolvedQueries {
        queries: Vec::new(),
        excluded: Vec::new(),
    };
    for query in queries {
        resolved.add(call, table, query).await?;
    }
    Ok(resolved)
}

/// The queries that a search has without the list.
fn own_queries<'b>(given: &RowSearchBody<'b>) -> Vec<QueryBody<'b>> {
    let none = || QueryBody {
        vector: None,
        text: None,
        query: None,
        row: None,
        column: None,
        weight: None,
        score_threshold: None,
    };
    let mut own = Vec::new();
    if given.vector.is_some() {
        own.push(QueryBody {
            vector: given.vector,
            column: given.column.clone(),
            ..none()
        });
    }
    if given.row.is_some() {
        own.push(QueryBody {
            row: given.row.clone(),
            column: given.column.clone(),
            ..none()
        });
    }
    let of_text = |text: Option<String>, query: Option<String>| QueryBody {
        text,
        query,
        column: given.text_column.clone(),
        ..none()
    };
    if given.text.is_some() {
        own.push(of_text(given.text.clone(), None));
    }
    if given.query.is_some() {
        own.push(of_text(None, given.query.clone()));
    }
    own
}

impl ResolvedQueries {
    async fn add(
        &mut self,
        call: &TableCall,
        table: &Table,
        query: &QueryBody<'_>,
    ) -> Result<(), HttpFailure> {
        let given = query.column.as_deref();
        let QueryBody {
            vector,
            text,
            query: words,
            row,
            ..
        } = query;
        let (column, form, value) = match (vector, text, words, row) {
            (Some(vector), None, None, None) => {
                let value = MarkerValue::json("vector", vector.get());
                (searched(table, given, true)?, QueryForm::Vector, value)
            }
            (None, Some(text), None, None) => {
                let value = MarkerValue::Cql(text.clone().into());
                (searched(table, given, false)?, QueryForm::Words, value)
            }
            (None, None, Some(words), None) => {
                let value = MarkerValue::Cql(words.clone().into());
                (searched(table, given, false)?, QueryForm::WordQuery, value)
            }
            (None, None, None, Some(key)) => {
                let column = searched_by_row(table, given)?;
                let value = self.value_of_row(call, table, column, key).await?;
                let form = match column.cql_type.float_vector_dimensions() {
                    Some(_) => QueryForm::Vector,
                    None => QueryForm::Words,
                };
                (column, form, MarkerValue::Cql(value))
            }
            _ => {
                return Err(HttpFailure::bad_request(
                    "a query has one of vector, text, query and row",
                    "make several queries of them",
                ));
            }
        };
        self.queries.push(ResolvedQuery {
            column: column.name.clone(),
            form,
            value,
            weight: query.weight.unwrap_or(1.0),
            threshold: query.score_threshold,
        });
        Ok(())
    }

    /// The value of a row that is the query. The row is not found by it.
    async fn value_of_row(
        &mut self,
        call: &TableCall,
        table: &Table,
        column: &Column,
        fields: &BTreeMap<String, &RawValue>,
    ) -> Result<Bytes, HttpFailure> {
        let key = GivenKey::of_fields(table, fields)?;
        if let Some(missing) = key.missing_of(usize::MAX) {
            return Err(HttpFailure::bad_request(
                format!("row: {missing} of the primary key is missing"),
                "name the row by its whole primary key",
            ));
        }
        let mut excluded = Vec::new();
        for (name, json) in key.given() {
            let cql_type = &column_of(table, name)?.cql_type;
            let value = from_json(cql_type, json);
            let value = value.map_err(|error| HttpFailure::of_value(name, &error))?;
            excluded.extend(value);
        }
        let mut statement = ComposedStatement::default();
        let from = qualified(&table.keyspace, &table.name);
        statement.put(&format!("SELECT {} FROM {from}", quoted(&column.name)));
        key.put_where(&mut statement);
        let answer = call.execute(&statement).await?;
        let Some(row) = answer.rows.into_iter().next() else {
            return Err(HttpFailure::missing("row: there is no row with this key"));
        };
        self.excluded.push(excluded);
        row.into_iter().next().flatten().ok_or_else(|| {
            HttpFailure::bad_request(
                format!("row: the row has no value in {}", column.name),
                "name another row, or another column",
            )
        })
    }
}

/// The column that a query searches: the one that it names, else the only one with such an index.
fn searched<'t>(
    table: &'t Table,
    given: Option<&str>,
    is_vector: bool,
) -> Result<&'t Column, HttpFailure> {
    if let Some(name) = given {
        return column_of(table, name);
    }
    let of_kind = table.indexes.values();
    let of_kind = of_kind.filter(|index| index.is_full_text() != is_vector);
    let mut columns: Vec<&str> = of_kind.map(|index| index.column.as_str()).collect();
    columns.sort_unstable();
    columns.dedup();
    let (field, what, class) = match is_vector {
        true => ("column", "vectors", "vector"),
        false => ("text_column", "texts", "text"),
    };
    match columns[..] {
        [column] => column_of(table, column),
        [] => Err(HttpFailure::bad_request(
            format!("{}.{} has no index on {what}", table.keyspace, table.name),
            format!(
                "PUT /api/v1/tables/{}/{}/indexes/NAME with {{\"column\": ..., \"kind\": \"{class}\"}}",
                table.keyspace, table.name
            ),
        )),
        _ => Err(HttpFailure::bad_request(
            format!(
                "several columns of {what} have an index: {}",
                columns.join(", ")
            ),
            format!("name one of them as {field}; in queries as column"),
        )),
    }
}

/// The column that a row as the query is compared by: of vectors if there is one.
fn searched_by_row<'t>(table: &'t Table, given: Option<&str>) -> Result<&'t Column, HttpFailure> {
    let has_vectors = table.indexes.values().any(|index| !index.is_full_text());
    searched(table, given, has_vectors)
}
