//! Keyspaces, tables and indexes are created and dropped as JSON.
//!
//! A definition has no markers in CQL, so that its statement is written out here: names in double
//! quotes, options as literals, and types only if they can be read as such.

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use cql::parser::parse_data_type;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use value::identifier::quoted;

use super::Shared;
use super::answers::JsonWriter;
use super::call::{CallKind, TableCall, json};
use super::failure::HttpFailure;
use super::names::{column_of, qualified, table_of};
use super::query_text::parameters;
use super::rows::TablePath;
use super::statements::ComposedStatement;

/// Options by their names.
type Options = BTreeMap<String, Json>;

/// A keyspace.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKeyspace {
    #[serde(default)]
    if_not_exists: bool,
    #[serde(default = "one_replica")]
    replication: Options,
}

/// The replication of a keyspace that names none.
fn one_replica() -> Options {
    let class = ("class".to_owned(), Json::from("SimpleStrategy"));
    let factor = ("replication_factor".to_owned(), Json::from(1));
    Options::from([class, factor])
}

/// A table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTable {
    columns: Vec<NewColumn>,
    key: NewKey,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    if_not_exists: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewColumn {
    name: String,
    #[serde(rename = "type")]
    cql_type: String,
    #[serde(rename = "static", default)]
    is_static: bool,
}

/// The primary key: the columns of the partition key, or those and the clustering columns.
#[derive(Deserialize)]
#[serde(untagged)]
enum NewKey {
    Partition(Vec<String>),
    Whole {
        partition: Vec<String>,
        #[serde(default)]
        clustering: Vec<NewClustering>,
    },
}

/// A clustering column, by its name or with its order.
#[derive(Deserialize)]
#[serde(untagged)]
enum NewClustering {
    Ascending(String),
    Ordered { column: String, order: RowsOrder },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RowsOrder {
    Asc,
    Desc,
}

/// An index.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewIndex {
    column: String,
    kind: NewIndexKind,
    /// The columns of the key of a local index.
    #[serde(default)]
    key: Vec<String>,
    /// The columns that searches filter by.
    #[serde(default)]
    filter_columns: Vec<String>,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    if_not_exists: bool,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum NewIndexKind {
    Vector,
    Text,
    Secondary,
}

/// `PUT /api/v1/keyspaces/{keyspace}`.
pub(super) async fn create_keyspace(
    State(tables): State<Shared>,
    Path(keyspace): Path<String>,
    request: Request,
) -> Result<Response, HttpFailure> {
    define(tables, request, |_, given: NewKeyspace| {
        let exists = if_not_exists(given.if_not_exists);
        let replication = map(&given.replication)?;
        Ok(format!(
            "CREATE KEYSPACE {exists}{} WITH replication = {replication}",
            quoted(&keyspace)
        ))
    })
    .await
}

/// `PUT /api/v1/tables/{keyspace}/{table}`.
pub(super) async fn create_table(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    define(tables, request, |_, given: NewTable| {
        table_text(&qualified(&keyspace, &table), &given)
    })
    .await
}

/// `PUT /api/v1/tables/{keyspace}/{table}/indexes/{name}`.
pub(super) async fn create_index(
    State(tables): State<Shared>,
    Path((keyspace, table, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, HttpFailure> {
    define(tables, request, |tables, given: NewIndex| {
        let table = table_of(tables, &keyspace, &table)?;
        let named = |name: &String| -> Result<String, HttpFailure> {
            Ok(quoted(&column_of(&table, name)?.name))
        };
        let columns = |names: &[String]| names.iter().map(named).collect::<Result<Vec<_>, _>>();
        let on = qualified(&keyspace, &table.name);
        index_text((&name, &on), &given, named(&given.column)?, columns)
    })
    .await
}

/// `DELETE /api/v1/keyspaces/{keyspace}`.
pub(super) async fn drop_keyspace(
    State(tables): State<Shared>,
    Path(keyspace): Path<String>,
    request: Request,
) -> Result<Response, HttpFailure> {
    remove(tables, request, "KEYSPACE", quoted(&keyspace)).await
}

/// `DELETE /api/v1/tables/{keyspace}/{table}`.
pub(super) async fn drop_table(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    remove(tables, request, "TABLE", qualified(&keyspace, &table)).await
}

/// `DELETE /api/v1/tables/{keyspace}/{table}/indexes/{name}`.
pub(super) async fn drop_index(
    State(tables): State<Shared>,
    Path((keyspace, _, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, HttpFailure> {
    remove(tables, request, "INDEX", qualified(&keyspace, &name)).await
}

/// Executes the statement that `text` makes of a body.
async fn define<T: DeserializeOwned + Send>(
    tables: Shared,
    request: Request,
    text: impl FnOnce(&super::HttpTables, T) -> Result<String, HttpFailure> + Send,
) -> Result<Response, HttpFailure> {
    let (call, body) = TableCall::with_body(tables, request, CallKind::MayChange).await?;
    let work = async {
        let given: T = json(&body.bytes)?;
        change(&call, text(&call.tables, given)?).await
    };
    call.answer(work).await
}

/// Drops a thing of this kind; with `?if_exists=true` also one that is not there.
async fn remove(
    tables: Shared,
    request: Request,
    kind: &str,
    name: String,
) -> Result<Response, HttpFailure> {
    let (call, query) = TableCall::without_body(tables, request, CallKind::MayChange).await?;
    let work = async {
        let given = parameters(&query)?;
        let exists = match given.get("if_exists").map(String::as_str) {
            Some("true") => "IF EXISTS ",
            None | Some("false") => "",
            Some(other) => {
                return Err(HttpFailure::bad_request(
                    format!("if_exists={other}"),
                    "if_exists is true or false",
                ));
            }
        };
        change(&call, format!("DROP {kind} {exists}{name}")).await
    };
    call.answer(work).await
}

/// Changes the schema.
async fn change(call: &TableCall, text: String) -> Result<String, HttpFailure> {
    let statement = ComposedStatement {
        text,
        values: Vec::new(),
    };
    let answer = call.execute(&statement).await?;
    let mut text = JsonWriter::new(call);
    text.put("{\"done\":true");
    text.put_rest(None, &answer.warnings);
    text.put("}");
    Ok(text.finish())
}

fn if_not_exists(is: bool) -> &'static str {
    if is { "IF NOT EXISTS " } else { "" }
}

fn table_text(name: &str, given: &NewTable) -> Result<String, HttpFailure> {
    let mut parts = Vec::new();
    for column in &given.columns {
        let is_static = if column.is_static { " static" } else { "" };
        let name = quoted(&column.name);
        parts.push(format!(
            "{name} {}{is_static}",
            data_type(&column.cql_type)?
        ));
    }
    let (partition, clustering): (&[String], &[NewClustering]) = match &given.key {
        NewKey::Partition(partition) => (&partition[..], &[]),
        NewKey::Whole {
            partition,
            clustering,
        } => (&partition[..], &clustering[..]),
    };
    let partition: Vec<String> = partition.iter().map(|name| quoted(name)).collect();
    let ordered: Vec<(String, &str)> = clustering.iter().map(NewClustering::written).collect();
    let mut key = format!("({})", partition.join(", "));
    for (column, _) in &ordered {
        key = format!("{key}, {column}");
    }
    parts.push(format!("PRIMARY KEY ({key})"));
    let mut properties = Vec::new();
    if !ordered.is_empty() {
        let orders = ordered
            .iter()
            .map(|(column, order)| format!("{column} {order}"));
        let orders: Vec<String> = orders.collect();
        properties.push(format!("CLUSTERING ORDER BY ({})", orders.join(", ")));
    }
    for (option, value) in &given.options {
        properties.push(format!(
            "{} = {}",
            option_name(option)?,
            literal(option, value)?
        ));
    }
    let with = match properties.is_empty() {
        true => String::new(),
        false => format!(" WITH {}", properties.join(" AND ")),
    };
    let exists = if_not_exists(given.if_not_exists);
    Ok(format!(
        "CREATE TABLE {exists}{name} ({}){with}",
        parts.join(", ")
    ))
}

impl NewClustering {
    /// The column and its order, as a statement has them.
    fn written(&self) -> (String, &'static str) {
        match self {
            NewClustering::Ascending(column) => (quoted(column), "ASC"),
            NewClustering::Ordered { column, order } => (
                quoted(column),
                match order {
                    RowsOrder::Asc => "ASC",
                    RowsOrder::Desc => "DESC",
                },
            ),
        }
    }
}

fn index_text(
    (name, on): (&str, &str),
    given: &NewIndex,
    column: String,
    columns: impl Fn(&[String]) -> Result<Vec<String>, HttpFailure>,
) -> Result<String, HttpFailure> {
    let is_secondary = given.kind == NewIndexKind::Secondary;
    if is_secondary && !given.filter_columns.is_empty() {
        return Err(HttpFailure::bad_request(
            "filter_columns are for indexes of kind vector and text",
            "leave them out",
        ));
    }
    let mut targets = Vec::new();
    if !given.key.is_empty() {
        targets.push(format!("({})", columns(&given.key)?.join(", ")));
    }
    targets.push(column);
    targets.extend(columns(&given.filter_columns)?);
    let (custom, class) = match given.kind {
        NewIndexKind::Vector => ("CUSTOM ", " USING 'vector_index'"),
        NewIndexKind::Text => ("CUSTOM ", " USING 'fulltext_index'"),
        NewIndexKind::Secondary => ("", ""),
    };
    let options = match given.options.is_empty() {
        true => String::new(),
        false => format!(" WITH OPTIONS = {}", map(&given.options)?),
    };
    let exists = if_not_exists(given.if_not_exists);
    let targets = targets.join(", ");
    Ok(format!(
        "CREATE {custom}INDEX {exists}{} ON {on} ({targets}){class}{options}",
        quoted(name)
    ))
}

/// A type, if the text is one.
fn data_type(text: &str) -> Result<&str, HttpFailure> {
    match parse_data_type(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(HttpFailure::bad_request(
            format!("{text} is no type: {error}"),
            "types are CQL's, such as int, text, timestamp, vector<float, 384> and list<text>",
        )),
    }
}

fn option_name(name: &str) -> Result<&str, HttpFailure> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => Ok(name),
        false => Err(HttpFailure::bad_request(
            format!("{name} is no name of an option"),
            "options are those of CREATE TABLE, such as default_time_to_live",
        )),
    }
}

/// The literal of an option's value.
fn literal(name: &str, value: &Json) -> Result<String, HttpFailure> {
    match value {
        Json::String(text) => Ok(string(text)),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(truth) => Ok(truth.to_string()),
        Json::Object(entries) => {
            let entries = entries.iter();
            map(&entries
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect())
        }
        Json::Null | Json::Array(_) => Err(HttpFailure::bad_request(
            format!("the option {name} is neither text, number, truth value nor object of these"),
            "GET /api/v1/schema shows options as they are",
        )),
    }
}

/// A map of texts. A value that is no text is written as one.
fn map(entries: &Options) -> Result<String, HttpFailure> {
    let entries = entries.iter().map(|(name, value)| {
        let value = match value {
            Json::String(text) => string(text),
            Json::Number(number) => string(&number.to_string()),
            Json::Bool(truth) => string(&truth.to_string()),
            Json::Null | Json::Array(_) | Json::Object(_) => {
                return Err(HttpFailure::bad_request(
                    format!("the option {name} is neither text, number nor truth value"),
                    "write it as a text",
                ));
            }
        };
        Ok(format!("{}: {value}", string(name)))
    });
    Ok(format!(
        "{{{}}}",
        entries.collect::<Result<Vec<_>, _>>()?.join(", ")
    ))
}

/// A text as a literal of CQL.
fn string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_with_its_names_in_quotes() {
        let given: NewTable = serde_json::from_str(
            r#"{"columns": [{"name": "id", "type": "int"}, {"name": "a\"b", "type": "vector<float, 3>"},
                            {"name": "s", "type": "text", "static": true}],
                "key": {"partition": ["id"], "clustering": [{"column": "a\"b", "order": "desc"}]},
                "options": {"comment": "it's", "default_time_to_live": 60}}"#,
        )
        .unwrap();
        let text = table_text("\"k\".\"t\"", &given).unwrap();
        assert_eq!(
            text,
            "CREATE TABLE \"k\".\"t\" (\"id\" int, \"a\"\"b\" vector<float, 3>, \"s\" text static, \
             PRIMARY KEY ((\"id\"), \"a\"\"b\")) WITH CLUSTERING ORDER BY (\"a\"\"b\" DESC) AND \
             comment = 'it''s' AND default_time_to_live = 60"
        );
        assert!(cql::parser::parse_statement(&text).is_ok());
    }

    #[test]
    fn texts_that_are_no_type_or_option_are_refused() {
        for wrong in ["int, x int", "int) --", "", "int static"] {
            assert!(data_type(wrong).is_err(), "{wrong}");
        }
        assert!(option_name("comment = '' AND x").is_err());
        assert!(literal("x", &Json::Null).is_err());
    }

    #[test]
    fn an_index_is_written_with_its_key_and_filter_columns() {
        let given: NewIndex = serde_json::from_str(
            r#"{"column": "v", "kind": "vector", "key": ["tenant"], "filter_columns": ["price"],
                "options": {"similarity_function": "cosine", "rescoring": true}}"#,
        )
        .unwrap();
        let columns = |names: &[String]| Ok(names.iter().map(|name| quoted(name)).collect());
        let text = index_text(("i", "k.t"), &given, quoted("v"), columns).unwrap();
        assert_eq!(
            text,
            "CREATE CUSTOM INDEX \"i\" ON k.t ((\"tenant\"), \"v\", \"price\") USING 'vector_index' WITH \
             OPTIONS = {'rescoring': 'true', 'similarity_function': 'cosine'}"
        );
        assert!(cql::parser::parse_statement(&text).is_ok());
    }
}
