//! The tools that show tables and indexes, by the schema tables of CQL.

use std::collections::{BTreeMap, HashMap};

use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use value::identifier::Identifier;

use super::answer::{AnswerBounds, BoundedAnswer, object};
use super::failure::CallFailure;

/// The end of the name of a change log's table, which no one means who looks for tables.
const LOG: &str = "_scylla_cdc_log";

/// Arguments of `list_tables`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablesArguments {
    keyspace: Option<String>,
}

/// Arguments of `list_indexes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexesArguments {
    keyspace: Option<String>,
    table: Option<String>,
}

/// Arguments of `describe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeArguments {
    keyspace: String,
    table: String,
}

/// A column as the schema has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogColumn {
    /// Its name, without quotes.
    pub name: String,
    /// Its type as CQL writes it.
    pub cql_type: String,
    /// `partition_key`, `clustering`, `static` or `regular`.
    pub kind: String,
    /// The place in the partition key or among the clustering columns.
    position: i32,
}

impl CatalogColumn {
    /// A column of this type; for a key its only one.
    #[cfg(test)]
    pub fn of(name: &str, cql_type: &str, kind: &str) -> CatalogColumn {
        CatalogColumn {
            name: name.to_owned(),
            cql_type: cql_type.to_owned(),
            kind: kind.to_owned(),
            position: 0,
        }
    }

    /// Whether it has vectors.
    pub fn is_vector(&self) -> bool {
        self.cql_type.starts_with("vector<")
    }

    /// Whether it is in the primary key.
    fn is_key(&self) -> bool {
        ["partition_key", "clustering"].contains(&&*self.kind)
    }

    /// The order in which CREATE TABLE has them.
    fn order(&self) -> (usize, i32, &str) {
        let kinds = ["partition_key", "clustering", "static", "regular"];
        let kind = kinds.iter().position(|kind| *kind == self.kind);
        (kind.unwrap_or(kinds.len()), self.position, &self.name)
    }
}

/// An index as the schema has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogIndex {
    keyspace: String,
    table: String,
    /// Its name, without quotes.
    pub name: String,
    /// The column that it is on.
    pub column: String,
    /// Further columns by which a search may be filtered.
    filter_columns: Vec<String>,
    /// The key columns of a local index, which each search has to name.
    local_key: Vec<String>,
    /// The class and all options.
    pub options: BTreeMap<String, String>,
}

impl CatalogIndex {
    /// Reads a row of `system_schema.indexes`. The option `target` is a column, or JSON with the
    /// columns for filters and the key of a local index.
    pub fn of(
        keyspace: &str,
        table: &str,
        name: &str,
        mut options: BTreeMap<String, String>,
    ) -> CatalogIndex {
        let target = options.remove("target").unwrap_or_default();
        let json: Value = serde_json::from_str(&target).unwrap_or_default();
        let names = |field: &str| -> Vec<String> {
            let names = json[field].as_array().into_iter().flatten();
            let names = names.filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        let column = match json["tc"].as_str() {
            Some(column) => column.to_owned(),
            // A secondary index that is local has its one column there.
            None => names("ck").pop().unwrap_or(target),
        };
        CatalogIndex {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            name: name.to_owned(),
            column: column.trim_matches('"').replace("\"\"", "\""),
            filter_columns: names("fc"),
            local_key: names("pk"),
            options,
        }
    }

    /// Whether it is on words.
    pub fn is_on_words(&self) -> bool {
        let class = self.options.get("class_name");
        class.is_some_and(|class| class.to_lowercase().contains("fulltext"))
    }

    /// The kind as a model reads it, by the type of the column.
    fn kind(&self, columns: &[CatalogColumn]) -> &'static str {
        let column = columns.iter().find(|column| column.name == self.column);
        match (self.is_on_words(), column) {
            (true, _) => "text",
            (false, Some(column)) if column.is_vector() => "vector",
            (false, _) => "secondary",
        }
    }

    fn json(&self, kind: &str) -> Value {
        let mut options = self.options.clone();
        options.remove("index_version");
        let mut fields = Map::from_iter([
            ("index".to_owned(), json!(self.name)),
            ("kind".to_owned(), json!(kind)),
            ("column".to_owned(), json!(self.column)),
            ("options".to_owned(), json!(options)),
        ]);
        if !self.filter_columns.is_empty() {
            fields.insert("filter_columns".to_owned(), json!(self.filter_columns));
        }
        if !self.local_key.is_empty() {
            fields.insert("local_key".to_owned(), json!(self.local_key));
        }
        Value::Object(fields)
    }
}

/// A table with its columns, in their order, and its indexes.
#[derive(Clone, Debug)]
pub struct CatalogTable {
    /// The keyspace, without quotes.
    pub keyspace: String,
    /// Its name, without quotes.
    pub name: String,
    /// Its columns: those of the key come first.
    pub columns: Vec<CatalogColumn>,
    /// Its indexes.
    pub indexes: Vec<CatalogIndex>,
}

impl CatalogTable {
    /// Reads a table from the schema.
    ///
    /// # Errors
    /// If there is no such table.
    pub async fn read(
        session: &Session,
        keyspace: &str,
        table: &str,
    ) -> Result<CatalogTable, CallFailure> {
        let mut columns = columns(session, Some(keyspace)).await?;
        let key = (keyspace.to_owned(), table.to_owned());
        let Some(columns) = columns.remove(&key) else {
            return Err(CallFailure::new(
                format!("there is no table {table} in the keyspace {keyspace}"),
                "list_tables shows all; names are as there, case included, and without quotes",
            ));
        };
        let mut indexes = indexes(session).await?;
        indexes.retain(|index| index.keyspace == keyspace && index.table == table);
        Ok(CatalogTable {
            keyspace: keyspace.to_owned(),
            name: table.to_owned(),
            columns,
            indexes,
        })
    }

    /// Its name in a statement.
    pub fn identifier(&self) -> String {
        format!("{}.{}", Identifier(&self.keyspace), Identifier(&self.name))
    }
}

/// The tables with their keys and columns. Without a keyspace, those of the system are left out.
///
/// # Errors
/// If the server refuses to show its schema.
pub async fn tables(
    session: &Session,
    arguments: TablesArguments,
    bounds: AnswerBounds,
) -> Result<String, CallFailure> {
    let keyspace = arguments.keyspace.as_deref();
    let tables = columns(session, keyspace).await?;
    let mut answer = BoundedAnswer::new("tables", bounds);
    for ((keyspace, table), columns) in tables {
        let is_of_system = keyspace.starts_with("system") && arguments.keyspace.is_none();
        if is_of_system || table.ends_with(LOG) {
            continue;
        }
        let key = columns.iter().filter(|column| column.is_key());
        let key: Vec<&str> = key.map(|column| &*column.name).collect();
        let types = columns
            .iter()
            .map(|column| json!(column.cql_type).to_string());
        let names = columns.iter().map(|column| &*column.name);
        // Put together as text, so that the columns keep their order.
        let row = format!(
            "{{\"keyspace\":{},\"table\":{},\"primary_key\":{},\"columns\":{}}}",
            json!(keyspace),
            json!(table),
            json!(key),
            object(names.zip(types))
        );
        if !answer.add(&row)? {
            return Ok(answer.text(false));
        }
    }
    Ok(answer.text(true))
}

/// The indexes with their kinds, columns and options.
///
/// # Errors
/// If the server refuses to show its schema.
pub async fn all_indexes(
    session: &Session,
    arguments: IndexesArguments,
    bounds: AnswerBounds,
) -> Result<String, CallFailure> {
    let columns = columns(session, arguments.keyspace.as_deref()).await?;
    let mut answer = BoundedAnswer::new("indexes", bounds);
    for index in indexes(session).await? {
        let is_other =
            |wanted: Option<&str>, name: &str| wanted.is_some_and(|wanted| wanted != name);
        if is_other(arguments.keyspace.as_deref(), &index.keyspace)
            || is_other(arguments.table.as_deref(), &index.table)
        {
            continue;
        }
        let table = (index.keyspace.clone(), index.table.clone());
        let kind = index.kind(columns.get(&table).map_or(&[], Vec::as_slice));
        let mut row = index.json(kind);
        row["keyspace"] = json!(index.keyspace);
        row["table"] = json!(index.table);
        if !answer.add(&row.to_string())? {
            return Ok(answer.text(false));
        }
    }
    Ok(answer.text(true))
}

/// One table: its columns with their types, its indexes, and the statement that makes it.
///
/// # Errors
/// If there is no such table, or its description has no room in an answer.
pub async fn describe(
    session: &Session,
    arguments: DescribeArguments,
    bounds: AnswerBounds,
) -> Result<String, CallFailure> {
    let table = CatalogTable::read(session, &arguments.keyspace, &arguments.table).await?;
    let columns: Vec<Value> = table
        .columns
        .iter()
        .map(|column| json!({"name": column.name, "type": column.cql_type, "kind": column.kind}))
        .collect();
    let indexes = table.indexes.iter();
    let indexes: Vec<Value> = indexes
        .map(|index| index.json(index.kind(&table.columns)))
        .collect();
    let description = json!({
        "keyspace": table.keyspace,
        "table": table.name,
        "columns": columns,
        "indexes": indexes,
        "cql": statement_of(session, &table).await,
    });
    let description = description.to_string();
    BoundedAnswer::new("tables", bounds).add(&description)?;
    Ok(description)
}

/// The statements that make a table and its indexes; null of a server that has no DESCRIBE.
async fn statement_of(session: &Session, table: &CatalogTable) -> Option<String> {
    type Described = (
        Option<String>,
        Option<String>,
        Option<String>,
        Option<String>,
    );
    let query = format!("DESCRIBE TABLE {}", table.identifier());
    let rows: Vec<Described> = rows(session, &query).await.ok()?;
    let statements = rows.into_iter().filter_map(|(.., statement)| statement);
    Some(statements.collect::<Vec<_>>().join("\n"))
}

/// All columns by table, in the order of CREATE TABLE.
async fn columns(
    session: &Session,
    keyspace: Option<&str>,
) -> Result<BTreeMap<(String, String), Vec<CatalogColumn>>, CallFailure> {
    let query = "SELECT keyspace_name, table_name, column_name, type, kind, position FROM system_schema.columns";
    let rows: Vec<(String, String, String, String, String, i32)> = rows(session, query).await?;
    let mut tables: BTreeMap<(String, String), Vec<CatalogColumn>> = BTreeMap::new();
    for (of_keyspace, table, name, cql_type, kind, position) in rows {
        if keyspace.is_some_and(|wanted| wanted != of_keyspace) {
            continue;
        }
        let column = CatalogColumn {
            name,
            cql_type,
            kind,
            position,
        };
        tables.entry((of_keyspace, table)).or_default().push(column);
    }
    for columns in tables.values_mut() {
        columns.sort_by(|a, b| a.order().cmp(&b.order()));
    }
    Ok(tables)
}

/// All indexes. The statement has no WHERE: a gateway adds its indexes only to a plain one.
async fn indexes(session: &Session) -> Result<Vec<CatalogIndex>, CallFailure> {
    type StoredIndex = (String, String, String, Option<HashMap<String, String>>);
    let query = "SELECT keyspace_name, table_name, index_name, options FROM system_schema.indexes";
    let rows: Vec<StoredIndex> = rows(session, query).await?;
    let indexes = rows.into_iter().map(|(keyspace, table, name, options)| {
        let options = options.unwrap_or_default().into_iter().collect();
        CatalogIndex::of(&keyspace, &table, &name, options)
    });
    Ok(indexes.collect())
}

/// All rows of a statement without values.
async fn rows<R>(session: &Session, query: &str) -> Result<Vec<R>, CallFailure>
where
    R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
{
    let result = session.query_unpaged(query, ()).await?;
    let result = result.into_rows_result();
    let result = result.map_err(|error| CallFailure::unreadable(&error))?;
    let rows = result.rows::<R>();
    let rows = rows.map_err(|error| CallFailure::unreadable(&error))?;
    let rows: Result<Vec<R>, _> = rows.collect();
    rows.map_err(|error| CallFailure::unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(class: &str, target: &str) -> CatalogIndex {
        let options = [("class_name", class), ("target", target)];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        CatalogIndex::of("ks", "t", "i", BTreeMap::from(options))
    }

    #[test]
    fn the_target_of_an_index_is_a_column_or_json() {
        let plain = index("StorageAttachedIndex", "\"Colour\"");
        assert_eq!(plain.column, "Colour");
        let filtered = index("vector_index", r#"{"tc":"v","fc":["colour"],"pk":["p"]}"#);
        assert_eq!(filtered.column, "v");
        let json = filtered.json("vector");
        assert_eq!(json["filter_columns"], json!(["colour"]));
        assert_eq!(json["local_key"], json!(["p"]));
        let local = index("sai", r#"{"pk":["p"],"ck":["c"]}"#);
        assert_eq!(local.column, "c");
        assert_eq!(index("sai", "values(m)").column, "values(m)");
    }

    #[test]
    fn the_kind_of_an_index_goes_by_its_class_and_the_type_of_its_column() {
        let columns = [
            CatalogColumn::of("v", "vector<float, 3>", "regular"),
            CatalogColumn::of("c", "text", "regular"),
        ];
        for (class, column, kind) in [
            ("vector_index", "v", "vector"),
            (
                "org.apache.cassandra.index.sai.StorageAttachedIndex",
                "v",
                "vector",
            ),
            ("fulltext_index", "c", "text"),
            ("sai", "c", "secondary"),
        ] {
            assert_eq!(index(class, column).kind(&columns), kind, "{class}");
        }
    }

    #[test]
    fn columns_have_the_order_of_create_table() {
        let mut columns = [
            CatalogColumn::of("a", "int", "regular"),
            CatalogColumn::of("z", "int", "partition_key"),
            CatalogColumn::of("s", "int", "static"),
            CatalogColumn::of("c", "int", "clustering"),
        ];
        columns.sort_by(|a, b| a.order().cmp(&b.order()));
        let names = columns.each_ref().map(|column| &*column.name);
        assert_eq!(names, ["z", "c", "s", "a"]);
    }
}
