//! One statement, with its values, read page by page up to the bounds of an answer.

use std::ops::ControlFlow;

use bytes::Bytes;
use scylla::client::session::Session;
use scylla::deserialize::row::ColumnIterator;
use scylla::errors::ExecutionError;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::Statement;
use scylla::statement::prepared::PreparedStatement;
use serde_json::Value;
use value::CqlType;

use super::answer::{AnswerBounds, BoundedAnswer, object};
use super::failure::CallFailure;
use crate::cql_json::{self, BoundBytes};

/// Rows of a page: few, as rows may be large, and an answer has room for only some of them.
const PAGE_ROWS: usize = 100;

/// A statement that is ready to be executed.
enum ReadyStatement {
    /// Without values: a DESCRIBE can't be prepared.
    Text(Statement),
    Prepared(PreparedStatement, Vec<Option<Bytes>>),
}

impl ReadyStatement {
    async fn of(
        session: &Session,
        query: &str,
        parameters: &[Value],
        page_rows: usize,
    ) -> Result<ReadyStatement, CallFailure> {
        let page_rows = i32::try_from(page_rows).unwrap_or(i32::MAX);
        if parameters.is_empty() {
            let statement = Statement::new(query).with_page_size(page_rows);
            return Ok(ReadyStatement::Text(statement));
        }
        let mut prepared = session.prepare(query).await?;
        prepared.set_page_size(page_rows);
        let values = values(&prepared, parameters)?;
        Ok(ReadyStatement::Prepared(prepared, values))
    }

    async fn page(
        &self,
        session: &Session,
        state: PagingState,
    ) -> Result<(QueryResult, PagingStateResponse), ExecutionError> {
        match self {
            Self::Text(statement) => {
                let statement = statement.clone();
                session.query_single_page(statement, (), state).await
            }
            Self::Prepared(prepared, values) => {
                let values = BoundBytes(values);
                session.execute_single_page(prepared, values, state).await
            }
        }
    }
}

/// The values of a prepared statement's markers, from the JSON of a call.
fn values(
    prepared: &PreparedStatement,
    parameters: &[Value],
) -> Result<Vec<Option<Bytes>>, CallFailure> {
    let markers = prepared.get_variable_col_specs();
    if markers.len() != parameters.len() {
        return Err(CallFailure::new(
            format!(
                "the statement has {} markers (?), and {} parameters came",
                markers.len(),
                parameters.len()
            ),
            "give one parameter for each ?, in their order",
        ));
    }
    let pairs = markers.iter().zip(parameters);
    let values = pairs.map(|(marker, parameter)| {
        let cql_type = cql_json::cql_type(marker.typ());
        let value = cql_type.and_then(|cql_type| {
            let json = parameter.to_string();
            cql_json::from_json(&cql_type, &json)
        });
        value.map_err(|error| {
            CallFailure::new(
                format!("the value for {}: {error}", marker.name()),
                "describe shows the types; a value has the form that SELECT JSON writes",
            )
        })
    });
    values.collect()
}

/// Executes a statement: its rows as `{"rows": [...]}`, or `{"done": true}` of one without rows.
///
/// # Errors
/// If the server refuses it, or its values don't fit, or not even one row has room in an answer.
pub async fn read(
    session: &Session,
    query: &str,
    parameters: &[Value],
    bounds: AnswerBounds,
) -> Result<String, CallFailure> {
    let page_rows = PAGE_ROWS.min(bounds.rows + 1);
    let statement = ReadyStatement::of(session, query, parameters, page_rows).await?;
    let mut answer = BoundedAnswer::new("rows", bounds);
    let mut state = PagingState::start();
    loop {
        let (page, next) = statement.page(session, state).await?;
        if !page.is_rows() {
            return Ok(r#"{"done":true}"#.to_owned());
        }
        let page = page.into_rows_result();
        let page = page.map_err(|error| CallFailure::unreadable(&error))?;
        if !add(&mut answer, &page)? {
            return Ok(answer.text(false));
        }
        match next.into_paging_control_flow() {
            ControlFlow::Break(()) => return Ok(answer.text(true)),
            ControlFlow::Continue(next) => state = next,
        }
    }
}

/// Adds the rows of a page. False: there was no room for all.
fn add(answer: &mut BoundedAnswer, page: &QueryRowsResult) -> Result<bool, CallFailure> {
    let columns = page.column_specs();
    let columns = columns.iter().map(|column| {
        let cql_type = cql_json::cql_type(column.typ());
        cql_type.map(|cql_type| (column.name(), cql_type))
    });
    let columns: Result<Vec<(&str, CqlType)>, _> = columns.collect();
    let columns = columns.map_err(|error| CallFailure::unreadable(&error))?;
    let rows = page.rows::<ColumnIterator<'_, '_>>();
    for row in rows.map_err(|error| CallFailure::unreadable(&error))? {
        let row = row.map_err(|error| CallFailure::unreadable(&error))?;
        let mut fields = Vec::with_capacity(columns.len());
        for (value, (name, cql_type)) in row.zip(&columns) {
            let value = value.map_err(|error| CallFailure::unreadable(&error))?;
            let bytes = value.slice.as_ref().map(|slice| slice.as_slice());
            let json = cql_json::to_json(cql_type, bytes);
            let json = json.map_err(|error| CallFailure::unreadable(&error))?;
            fields.push((*name, json));
        }
        if !answer.add(&object(fields))? {
            return Ok(false);
        }
    }
    Ok(true)
}
