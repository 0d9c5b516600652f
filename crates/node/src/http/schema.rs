//! `GET /api/v1/schema`: keyspaces, tables, columns and indexes, as the system tables show them.

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde_json::{Value as Json, json};
use value::json_text;

use super::Shared;
use super::call::{CallKind, TableCall};
use super::failure::HttpFailure;
use super::names::table_of;
use super::query_text::parameters;
use super::rows::TablePath;
use super::statements::{ComposedStatement, MarkerValue, StatementAnswer};

/// A row of a system table, by the names of its columns.
type SystemRow = BTreeMap<String, Json>;

/// `GET /api/v1/schema`, of the user's keyspaces; `?keyspace=` has another one.
pub(super) async fn show(
    State(tables): State<Shared>,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, query) = TableCall::without_body(tables, request, CallKind::Reads).await?;
    let work = async {
        let mut given = parameters(&query)?;
        let keyspace = given.remove("keyspace");
        if let Some(name) = given.keys().next() {
            return Err(HttpFailure::bad_request(
                format!("the parameter {name} is not known"),
                "there is keyspace, with the name of one",
            ));
        }
        let names = match keyspace {
            Some(name) => vec![name],
            None => {
                let rows = read(&call, "keyspace_name", "keyspaces", &[]).await?;
                let names = rows.iter().filter_map(|row| row["keyspace_name"].as_str());
                let users = names.filter(|name| !is_of_system(name));
                users.map(str::to_owned).collect()
            }
        };
        let mut keyspaces = serde_json::Map::new();
        for name in names {
            let tables = tables_of(&call, &name, None).await?;
            keyspaces.insert(name, json!({"tables": tables}));
        }
        Ok(json!({"keyspaces": keyspaces}).to_string())
    };
    call.answer(work).await
}

/// `GET /api/v1/tables/{keyspace}/{table}`.
pub(super) async fn show_table(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, _) = TableCall::without_body(tables, request, CallKind::Reads).await?;
    let work = async {
        table_of(&call.tables, &keyspace, &table)?;
        let tables = tables_of(&call, &keyspace, Some(&table)).await?;
        Ok(tables[&table].to_string())
    };
    call.answer(work).await
}

fn is_of_system(keyspace: &str) -> bool {
    keyspace == "system" || keyspace.starts_with("system_")
}

/// The tables of a keyspace, or one of them, by their names.
async fn tables_of(
    call: &TableCall,
    keyspace: &str,
    table: Option<&str>,
) -> Result<Json, HttpFailure> {
    let mut place = vec![("keyspace_name", keyspace)];
    place.extend(table.map(|table| ("table_name", table)));
    let selected = "table_name, column_name, type, kind, position, clustering_order";
    let columns = read(call, selected, "columns", &place).await?;
    let indexes = read(
        call,
        "table_name, index_name, kind, options",
        "indexes",
        &place,
    )
    .await?;
    let mut by_table: BTreeMap<&str, (Vec<&SystemRow>, Vec<&SystemRow>)> = BTreeMap::new();
    for row in &columns {
        let table = row["table_name"].as_str().unwrap_or_default();
        by_table.entry(table).or_default().0.push(row);
    }
    for row in &indexes {
        let table = row["table_name"].as_str().unwrap_or_default();
        by_table.entry(table).or_default().1.push(row);
    }
    let described = by_table.into_iter().map(|(name, (columns, indexes))| {
        let columns_of = |kind: &str| {
            let mut of_kind: Vec<&&SystemRow> =
                columns.iter().filter(|row| row["kind"] == kind).collect();
            of_kind.sort_by_key(|row| row["position"].as_i64());
            of_kind
                .iter()
                .map(|row| row["column_name"].clone())
                .collect::<Vec<Json>>()
        };
        let shown = columns.iter().map(
            |row| json!({"name": row["column_name"], "type": row["type"], "kind": row["kind"]}),
        );
        let indexes = indexes.iter().map(|row| {
            json!({"name": row["index_name"], "kind": row["kind"], "options": row["options"]})
        });
        let table = json!({
            "columns": shown.collect::<Vec<Json>>(),
            "key": {
                "partition": columns_of("partition_key"),
                "clustering": columns_of("clustering"),
            },
            "indexes": indexes.collect::<Vec<Json>>(),
        });
        (name.to_owned(), table)
    });
    Ok(Json::Object(described.collect()))
}

/// Reads rows of a table of `system_schema`.
async fn read(
    call: &TableCall,
    columns: &str,
    table: &str,
    place: &[(&str, &str)],
) -> Result<Vec<SystemRow>, HttpFailure> {
    let mut statement = ComposedStatement::default();
    statement.put(&format!("SELECT {columns} FROM system_schema.{table}"));
    let mut before = " WHERE ";
    for (column, value) in place {
        statement.put(&format!("{before}{column} = "));
        statement.bind(MarkerValue::Cql((*value).to_owned().into()));
        before = " AND ";
    }
    let StatementAnswer { columns, rows, .. } = call.execute(&statement).await?;
    let rows = rows.iter().map(|row| {
        let cells = columns.iter().zip(row).map(|(column, cell)| {
            let text = json_text(&column.cql_type, cell.as_deref());
            let text = text.map_err(|error| HttpFailure::of_value(&column.name, &error))?;
            let value = serde_json::from_str(&text).unwrap_or(Json::Null);
            Ok((column.name.to_string(), value))
        });
        cells.collect::<Result<SystemRow, HttpFailure>>()
    });
    rows.collect()
}
