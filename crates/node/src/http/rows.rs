//! `/api/v1/tables/{keyspace}/{table}/rows`: rows are written, read by their keys, and deleted.

use std::collections::{BTreeMap, HashMap};

use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use schema::{Column, ColumnKind, Table};
use serde::Deserialize;
use serde_json::value::RawValue;
use value::identifier::quoted;
use value::{CqlType, ValueError, from_json, json_column, json_fields, json_string};

use super::Shared;
use super::answers::{JsonWriter, page_state};
use super::call::{CallKind, TableCall, json};
use super::failure::HttpFailure;
use super::names::{column_of, key_of, qualified, table_of};
use super::query_text::parameters;
use super::statements::{ComposedStatement, MarkerValue, StatementAnswer, WantedPage};

/// The most rows of a request that are written at the same time. The storage commits those that
/// wait together.
const WRITES_AT_ONCE: usize = 64;
/// The rows of a page that a request names no size for.
const PAGE_ROWS: u32 = 1_000;

/// The keyspace and the table of a path.
pub(super) type TablePath = Path<(String, String)>;

/// The body of a PUT.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsToPut<'b> {
    #[serde(borrow)]
    rows: Vec<&'b RawValue>,
    /// The seconds for which the rows live.
    ttl: Option<u32>,
    #[serde(default)]
    if_not_exists: bool,
}

/// `PUT .../rows`.
pub(super) async fn put(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, body) = TableCall::with_body(tables, request, CallKind::MayChange).await?;
    let work = async {
        let given: RowsToPut<'_> = json(&body.bytes)?;
        let table = table_of(&call.tables, &keyspace, &table)?;
        // Nothing is written if one of the rows can't be.
        let mut checked = Vec::with_capacity(given.rows.len());
        for (at, row) in given.rows.iter().enumerate() {
            let row = check_row(&table, row.get());
            checked.push(row.map_err(|failure| failure.at(&format!("row {}", at + 1)))?);
        }
        let insert =
            |at: usize| insert(&table, given.rows[at].get(), given.ttl, given.if_not_exists);
        let call = &call;
        let writes = in_order_of_conflicts(&checked).into_iter().map(|rows| {
            let rows: Vec<_> = rows.into_iter().map(|at| (at, insert(at))).collect();
            async move {
                let mut outcomes = Vec::with_capacity(rows.len());
                for (at, row) in rows {
                    outcomes.push((at, call.execute(&row).await));
                }
                outcomes
            }
        });
        let written = stream::iter(writes).buffer_unordered(WRITES_AT_ONCE);
        let mut written = written.concat().await;
        written.sort_unstable_by_key(|(at, _)| *at);
        let outcomes = written.into_iter().map(|(_, outcome)| outcome).collect();
        put_answer(call, outcomes, given.if_not_exists)
    };
    call.answer(work).await
}

/// The places of rows, in lists that may be written at the same time. Rows that write the same
/// values are in one list, in their order, so that the last of them wins.
fn in_order_of_conflicts(rows: &[CheckedJsonRow]) -> Vec<Vec<usize>> {
    let is_partition = rows.iter().any(|row| row.has_static);
    let mut lists: Vec<Vec<usize>> = Vec::with_capacity(rows.len());
    let mut list_of: HashMap<&[Bytes], usize> = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let key = match is_partition {
            true => &row.key[..row.partition_columns],
            false => &row.key[..],
        };
        let list = *list_of.entry(key).or_insert_with(|| {
            lists.push(Vec::new());
            lists.len() - 1
        });
        lists[list].push(at);
    }
    lists
}

/// The answer to a PUT whose writes had these outcomes.
fn put_answer(
    call: &TableCall,
    outcomes: Vec<Result<StatementAnswer, HttpFailure>>,
    is_conditional: bool,
) -> Result<String, HttpFailure> {
    let rows = outcomes.len();
    let written = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let mut warnings: Vec<String> = Vec::new();
    let mut applied = Vec::new();
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let answer = outcome.map_err(|failure| {
            let failure = failure.at(&format!("row {}", at + 1));
            HttpFailure {
                hint: format!("{written} of {rows} rows were written; {}", failure.hint),
                ..failure
            }
        })?;
        let first = answer.rows.first().and_then(|row| row.first()?.as_deref());
        applied.push(first == Some(&[1_u8][..]));
        let new = answer.warnings.into_iter();
        warnings.extend(new.filter(|one| !one.is_empty()));
    }
    warnings.sort();
    warnings.dedup();
    let mut text = JsonWriter::new(call);
    if is_conditional {
        let applied: Vec<&str> = applied
            .iter()
            .map(|is| if *is { "true" } else { "false" })
            .collect();
        text.put(&format!("{{\"applied\":[{}]", applied.join(",")));
    } else {
        text.put(&format!("{{\"written\":{written}"));
    }
    text.put_rest(None, &warnings);
    text.put("}");
    Ok(text.finish())
}

/// The INSERT of a row. Columns that it does not name stay as they are.
pub(super) fn insert(
    table: &Table,
    row: &str,
    ttl: Option<u32>,
    if_not_exists: bool,
) -> ComposedStatement {
    let mut statement = ComposedStatement::default();
    statement.put(&format!(
        "INSERT INTO {} JSON ",
        qualified(&table.keyspace, &table.name)
    ));
    // The marker is a text, whose JSON is a string with the row in it.
    statement.bind(MarkerValue::Cql(row.to_owned().into()));
    statement.put(" DEFAULT UNSET");
    if if_not_exists {
        statement.put(" IF NOT EXISTS");
    }
    if let Some(ttl) = ttl {
        statement.put(" USING TTL ");
        statement.bind_json("ttl", &ttl.to_string());
    }
    statement
}

/// A row whose columns exist and whose values are of their types.
pub(super) struct CheckedJsonRow {
    /// The values of the primary key, partition key first.
    key: Vec<Bytes>,
    partition_columns: usize,
    /// Whether it writes a static column.
    has_static: bool,
}

/// Checks that a row has the primary key, no unknown columns, and values of its columns' types.
///
/// # Errors
/// 400 that names the column.
pub(super) fn check_row(table: &Table, row: &str) -> Result<CheckedJsonRow, HttpFailure> {
    let mut failure = None;
    let names: Vec<&str> = key_of(table).iter().map(|one| one.name.as_str()).collect();
    let mut key: Vec<Option<Bytes>> = vec![None; names.len()];
    let mut has_static = false;
    let read = json_fields(row, |field, json| match check_field(table, &field, json) {
        Ok((column, value)) => {
            has_static |= column.kind == ColumnKind::Static;
            if let Some(at) = names.iter().position(|name| *name == column.name) {
                key[at] = value;
            }
            Ok(())
        }
        Err(of_field) => {
            failure = Some(of_field);
            Err(ValueError(String::new()))
        }
    });
    match (failure, read) {
        (Some(failure), _) => return Err(failure),
        (None, Err(error)) => return Err(HttpFailure::of_value("not a row", &error)),
        (None, Ok(())) => {}
    }
    let with_names = names.iter().zip(&key);
    let missing = with_names.filter_map(|(name, value)| value.is_none().then_some(*name));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        return Err(HttpFailure::bad_request(
            format!("{} of the primary key is missing", missing.join(", ")),
            "a row has a value for each column of its primary key",
        ));
    }
    Ok(CheckedJsonRow {
        key: key.into_iter().flatten().collect(),
        partition_columns: table.partition_key().len(),
        has_static,
    })
}

/// Checks a field of a row. Returns its column and its value.
fn check_field<'t>(
    table: &'t Table,
    field: &str,
    json: &str,
) -> Result<(&'t Column, Option<Bytes>), HttpFailure> {
    let column = match table.column(&json_column(field)) {
        Some(column) => column,
        // The name as it is, which INSERT JSON would take for one in lower case.
        None if table.column(field).is_some() => {
            return Err(HttpFailure::bad_request(
                format!("the name {field} has capitals"),
                format!(
                    "write it in quotes, as SELECT JSON does: {}",
                    json_string(&quoted(field))
                ),
            ));
        }
        None => column_of(table, field)?,
    };
    match from_json(&column.cql_type, json) {
        Ok(value) => Ok((column, value)),
        Err(error) => Err(HttpFailure::of_value(&column.name, &error)),
    }
}

/// `GET .../rows`.
pub(super) async fn get(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, query) = TableCall::without_body(tables, request, CallKind::Reads).await?;
    let work = async {
        let table = table_of(&call.tables, &keyspace, &table)?;
        let mut given = parameters(&query)?;
        let key = take_key(&table, &mut given)?;
        let columns = given.remove("columns");
        let page = wanted_page(&mut given)?;
        refuse_rest(&table, &given)?;
        let missing = key.missing_of(table.partition_key().len());
        if let Some(name) = missing {
            return Err(no_key(&table, &name, "its partition key"));
        }
        let statement = select(&table, columns.as_deref(), &key)?;
        let answer = call.execute_in(&call.session, &statement, page).await?;
        rows_answer(&call, &answer)
    };
    call.answer(work).await
}

/// The answer with all columns of rows.
pub(super) fn rows_answer(
    call: &TableCall,
    answer: &StatementAnswer,
) -> Result<String, HttpFailure> {
    let mut text = JsonWriter::new(call);
    text.put("{\"rows\":");
    text.put_rows(&answer.columns, &answer.rows)?;
    text.put_rest(answer.paging_state.as_ref(), &answer.warnings);
    text.put("}");
    Ok(text.finish())
}

/// `DELETE .../rows`.
pub(super) async fn delete(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, query) = TableCall::without_body(tables, request, CallKind::MayChange).await?;
    let work = async {
        let table = table_of(&call.tables, &keyspace, &table)?;
        let mut given = parameters(&query)?;
        let key = take_key(&table, &mut given)?;
        refuse_rest(&table, &given)?;
        let answer = call.execute(&delete_by(&table, &key)?).await?;
        let mut text = JsonWriter::new(&call);
        text.put("{\"deleted\":true");
        text.put_rest(None, &answer.warnings);
        text.put("}");
        Ok(text.finish())
    };
    call.answer(work).await
}

/// The values of columns of a primary key, in its order; `None` for those that are not given.
#[derive(Debug, PartialEq)]
pub(super) struct GivenKey(Vec<(String, Option<String>)>);

impl GivenKey {
    /// The key that fields of a request are.
    ///
    /// # Errors
    /// A field that is no column of the primary key.
    pub fn of_fields(
        table: &Table,
        fields: &BTreeMap<String, &RawValue>,
    ) -> Result<GivenKey, HttpFailure> {
        let mut given: BTreeMap<&str, &str> = BTreeMap::new();
        for (field, json) in fields {
            given.insert(&column_of(table, field)?.name, json.get());
        }
        let key = key_of(table).into_iter();
        let key = key.map(|column| {
            let json = given.remove(column.name.as_str());
            (column.name.clone(), json.map(str::to_owned))
        });
        let key = GivenKey(key.collect());
        match given.keys().next() {
            None => Ok(key),
            Some(other) => Err(HttpFailure::bad_request(
                format!("{other} is no column of the primary key"),
                "a row is named by its primary key",
            )),
        }
    }

    /// The name of a column without a value, of the first so many.
    pub fn missing_of(&self, count: usize) -> Option<String> {
        let mut first = self.0.iter().take(count);
        let missing = first.find(|(_, json)| json.is_none());
        missing.map(|(name, _)| name.clone())
    }

    /// The columns with values, and the JSON of these.
    pub fn given(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.filter_map(|(name, json)| Some((name.as_str(), json.as_deref()?)))
    }

    /// Appends a relation for each column with a value.
    pub fn put_where(&self, statement: &mut ComposedStatement) {
        let mut before = " WHERE ";
        for (name, json) in self.given() {
            statement.put(&format!("{before}{} = ", quoted(name)));
            statement.bind_json(name, json);
            before = " AND ";
        }
    }
}

/// Takes the columns of the primary key out of the parameters.
fn take_key(table: &Table, given: &mut BTreeMap<String, String>) -> Result<GivenKey, HttpFailure> {
    let mut key = Vec::new();
    let mut is_open = false;
    for column in key_of(table) {
        let json = given
            .remove(&column.name)
            .map(|text| json_of(&column.cql_type, &text));
        if json.is_some() && is_open {
            return Err(HttpFailure::bad_request(
                format!(
                    "{} is given without the columns before it in the primary key",
                    column.name
                ),
                "give the columns of the primary key from the first on",
            ));
        }
        is_open = json.is_none();
        key.push((column.name.clone(), json));
    }
    Ok(GivenKey(key))
}

/// The JSON of a value that a query string has as text.
fn json_of(cql_type: &CqlType, text: &str) -> String {
    let is_text = matches!(cql_type, CqlType::Text | CqlType::Ascii);
    let is_json = || serde_json::from_str::<&RawValue>(text).is_ok();
    match !is_text && is_json() {
        true => text.to_owned(),
        false => json_string(text),
    }
}

fn wanted_page(given: &mut BTreeMap<String, String>) -> Result<WantedPage, HttpFailure> {
    let size = match given.remove("page_size") {
        None => PAGE_ROWS,
        Some(text) => text
            .parse::<u32>()
            .ok()
            .filter(|size| *size > 0)
            .ok_or_else(|| {
                HttpFailure::bad_request(
                    format!("page_size={text} is no positive number"),
                    "send the number of rows of a page",
                )
            })?,
    };
    let state = given
        .remove("page_state")
        .map(|text| page_state(&text))
        .transpose()?;
    Ok(WantedPage {
        size: Some(size),
        state,
    })
}

/// Refuses parameters that are not known.
fn refuse_rest(table: &Table, given: &BTreeMap<String, String>) -> Result<(), HttpFailure> {
    let Some(name) = given.keys().next() else {
        return Ok(());
    };
    let key = key_of(table).into_iter();
    let key: Vec<&str> = key.map(|column| column.name.as_str()).collect();
    Err(HttpFailure::bad_request(
        format!("the parameter {name} is not known"),
        format!("rows are named by their primary key: {}", key.join(", ")),
    ))
}

/// The error for a key without a column.
fn no_key(table: &Table, missing: &str, what: &str) -> HttpFailure {
    HttpFailure::bad_request(
        format!(
            "{missing} is missing: a row of {}.{} is named by {what}",
            table.keyspace, table.name
        ),
        "POST /api/v1/cql takes any statement",
    )
}

fn select(
    table: &Table,
    columns: Option<&str>,
    key: &GivenKey,
) -> Result<ComposedStatement, HttpFailure> {
    let selected = match columns {
        None => "*".to_owned(),
        Some(names) => {
            let names = names
                .split(',')
                .map(|name| Ok(quoted(&column_of(table, name.trim())?.name)));
            names.collect::<Result<Vec<_>, HttpFailure>>()?.join(", ")
        }
    };
    let mut statement = ComposedStatement::default();
    let from = qualified(&table.keyspace, &table.name);
    statement.put(&format!("SELECT {selected} FROM {from}"));
    key.put_where(&mut statement);
    Ok(statement)
}

/// The DELETE of the row with a key.
///
/// # Errors
/// 400 if a column of the key is missing.
pub(super) fn delete_by(table: &Table, key: &GivenKey) -> Result<ComposedStatement, HttpFailure> {
    if let Some(name) = key.missing_of(usize::MAX) {
        return Err(no_key(table, &name, "its whole primary key"));
    }
    let mut statement = ComposedStatement::default();
    statement.put(&format!(
        "DELETE FROM {}",
        qualified(&table.keyspace, &table.name)
    ));
    key.put_where(&mut statement);
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_query_string_becomes_json_of_its_column() {
        assert_eq!(json_of(&CqlType::Int, "2"), "2");
        assert_eq!(json_of(&CqlType::Text, "2"), "\"2\"");
        assert_eq!(json_of(&CqlType::Uuid, "0-1"), "\"0-1\"");
        assert_eq!(json_of(&CqlType::Boolean, "true"), "true");
        assert_eq!(json_of(&CqlType::Text, "a\"b"), r#""a\"b""#);
    }
}
