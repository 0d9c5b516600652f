//! Which column of the table gets which values, and the table that is made for a file.

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use value::CqlType;
use value::identifier::Identifier;

use super::infer::ColumnProfile;
use super::source::FileColumn;
use crate::ToolError;
use crate::cql_json::cql_type;
use crate::server_error;
use crate::table_name::QualifiedTable;
use crate::table_schema::TableColumn;

/// The column of the key that is made of rows' numbers where a file has none.
const MADE_KEY: &str = "id";

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnOrigin {
    /// A column of the file, by its position.
    File(usize),
    /// The row's number, from 0, over all files.
    RowNumber,
    /// The embedding of a text, which is in a column of the file.
    Embedding(usize),
}

/// A column of the table that gets values.
#[derive(Clone, Debug)]
pub struct ImportColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub cql_type: CqlType,
    /// Whether it is of the primary key.
    pub is_key: bool,
    /// Where its values come from.
    pub origin: ColumnOrigin,
}

/// The wishes of the command line.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// The columns of the file that are imported; none for all.
    pub columns: Vec<String>,
    /// The columns of the key; none to choose one.
    pub key: Vec<String>,
    /// Types of columns by name.
    pub types: Vec<(String, String)>,
    /// The column of texts, and the one for their embeddings.
    pub embed: Option<(String, String)>,
}

/// A table to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    columns: Vec<(String, String)>,
    key: Vec<String>,
}

/// The statement that writes a row.
pub struct InsertPlan {
    /// The columns, in the order of the statement's markers.
    pub columns: Vec<ImportColumn>,
    /// The prepared statement.
    pub statement: PreparedStatement,
}

/// The name of a column of the table for one of the file: in lower case, so that CQL needs no
/// quotes.
pub fn column_name(name: &str) -> String {
    name.trim().to_lowercase()
}

impl PlanOptions {
    /// The positions of the file's columns that are imported.
    fn chosen(&self, file: &[FileColumn]) -> Result<Vec<usize>, ToolError> {
        if self.columns.is_empty() {
            return Ok((0..file.len()).collect());
        }
        self.columns
            .iter()
            .map(|name| position(file, name))
            .collect()
    }

    /// The position of the column of texts whose embeddings are made.
    pub fn embedded_text(&self, file: &[FileColumn]) -> Result<Option<usize>, ToolError> {
        let text = self.embed.as_ref().map(|(text, _)| position(file, text));
        text.transpose()
    }
}

/// The position of a column of the file by its name, whatever its case.
fn position(file: &[FileColumn], name: &str) -> Result<usize, ToolError> {
    let exact = file.iter().position(|column| column.name == name);
    let folded = || {
        file.iter()
            .position(|column| column_name(&column.name) == column_name(name))
    };
    exact.or_else(folded).ok_or_else(|| {
        let names: Vec<_> = file.iter().map(|column| column.name.as_str()).collect();
        let names = names.join(", ");
        ToolError::Usage(format!("the file has no column {name:?}: it has {names}"))
    })
}

impl TableDefinition {
    /// The table for a file, by the profiles of its columns.
    ///
    /// `embedding` is the number of dimensions of the embeddings that are made.
    pub fn new(
        file: &[FileColumn],
        profiles: &[ColumnProfile],
        embedding: Option<usize>,
        options: &PlanOptions,
    ) -> Result<TableDefinition, ToolError> {
        let mut columns = Vec::new();
        for at in options.chosen(file)? {
            let name = column_name(&file[at].name);
            if columns.iter().any(|(other, _)| *other == name) {
                return Err(ToolError::Usage(format!(
                    "two columns of the file are named {name:?} in lower case: leave one out with --columns"
                )));
            }
            let given = options.types.iter().find(|(of, _)| column_name(of) == name);
            let type_text = match given {
                Some((_, type_text)) => type_text.clone(),
                None => profiles[at]
                    .cql_type(file[at].declared.as_ref())
                    .to_string(),
            };
            columns.push((name, type_text));
        }
        if let (Some((_, to)), Some(dimensions)) = (&options.embed, embedding) {
            columns.push((column_name(to), format!("vector<float, {dimensions}>")));
        }
        let key = Self::key(&mut columns, options)?;
        Ok(TableDefinition { columns, key })
    }

    /// The key: the given one, else a column `id`, else one that is made.
    fn key(
        columns: &mut Vec<(String, String)>,
        options: &PlanOptions,
    ) -> Result<Vec<String>, ToolError> {
        let mut key: Vec<_> = options.key.iter().map(|name| column_name(name)).collect();
        if key.is_empty() {
            key.push(MADE_KEY.to_owned());
            if !columns.iter().any(|(name, _)| name == MADE_KEY) {
                columns.insert(0, (MADE_KEY.to_owned(), "bigint".to_owned()));
            }
        }
        for name in &key {
            let Some((_, type_text)) = columns.iter().find(|(column, _)| column == name) else {
                let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
                return Err(ToolError::Usage(format!(
                    "--key {name}: the file has no such column, but {}",
                    names.join(", ")
                )));
            };
            let has_parts = ["list<", "set<", "map<", "vector<"];
            if has_parts.iter().any(|begin| type_text.starts_with(begin)) {
                return Err(ToolError::Usage(format!(
                    "the column {name} is a {type_text}, which can't be a key: name another with --key"
                )));
            }
        }
        Ok(key)
    }

    /// The statement that makes the table.
    pub fn create_statement(&self, table: &QualifiedTable) -> String {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|(name, type_text)| format!("{} {type_text}", Identifier(name)))
            .collect();
        let key: Vec<_> = self
            .key
            .iter()
            .map(|name| Identifier(name).to_string())
            .collect();
        let (columns, key) = (columns.join(", "), key.join(", "));
        format!("CREATE TABLE IF NOT EXISTS {table} ({columns}, PRIMARY KEY ({key}))")
    }
}

/// The columns of a table that get values, with where these come from.
pub fn origins(
    file: &[FileColumn],
    table: &[TableColumn],
    options: &PlanOptions,
) -> Result<Vec<(TableColumn, ColumnOrigin)>, ToolError> {
    let mut found: Vec<(TableColumn, ColumnOrigin)> = Vec::new();
    let mut unknown = Vec::new();
    for at in options.chosen(file)? {
        match of_table(&file[at], table) {
            Some(column) => found.push((column.clone(), ColumnOrigin::File(at))),
            None => unknown.push(file[at].name.as_str()),
        }
    }
    let names = |columns: &[TableColumn]| {
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        names.join(", ")
    };
    if !unknown.is_empty() {
        return Err(ToolError::Usage(format!(
            "the table has no column {}: it has {}; choose columns of the file with --columns",
            unknown.join(", "),
            names(table)
        )));
    }
    if let (Some(text), Some((_, to))) = (options.embedded_text(file)?, &options.embed) {
        let column = table.iter().find(|column| column.name == column_name(to));
        let column = column.ok_or_else(|| {
            ToolError::Usage(format!(
                "--embed: the table has no column {to}: it has {}",
                names(table)
            ))
        })?;
        found.push((column.clone(), ColumnOrigin::Embedding(text)));
    }
    let is_given = |column: &&TableColumn| found.iter().any(|(given, _)| given == *column);
    let missing: Vec<_> = table
        .iter()
        .filter(|column| column.is_key && !is_given(column))
        .cloned()
        .collect();
    let keys = table.iter().filter(|column| column.is_key).count();
    match &missing[..] {
        [] => {}
        [only] if keys == 1 && ["int", "bigint", "varint"].contains(&&*only.type_text) => {
            found.push((only.clone(), ColumnOrigin::RowNumber));
        }
        missing => {
            return Err(ToolError::Usage(format!(
                "the file has no column {}, of the table's key",
                names(missing)
            )));
        }
    }
    let mut seen = Vec::new();
    for (column, _) in &found {
        if seen.contains(&&column.name) {
            return Err(ToolError::Usage(format!(
                "two columns go to {}: choose one with --columns",
                column.name
            )));
        }
        seen.push(&column.name);
    }
    Ok(found)
}

/// The column of the table for one of the file.
fn of_table<'t>(column: &FileColumn, table: &'t [TableColumn]) -> Option<&'t TableColumn> {
    let exact = table.iter().find(|other| other.name == column.name);
    let folded = || {
        table
            .iter()
            .find(|other| column_name(&other.name) == column_name(&column.name))
    };
    let named = exact.or_else(folded);
    if named.is_some() || column.is_named {
        return named;
    }
    // A name that was made up here means the only column of its kind.
    let is_vector = matches!(column.declared, Some(CqlType::Vector { .. }));
    let mut alike = table.iter().filter(|other| match is_vector {
        true => other.type_text.starts_with("vector<float"),
        false => other.is_key,
    });
    let first = alike.next();
    first.filter(|_| alike.next().is_none())
}

impl InsertPlan {
    /// The text of the statement that writes values of these columns.
    pub fn insert_statement(
        table: &QualifiedTable,
        columns: &[(TableColumn, ColumnOrigin)],
    ) -> String {
        let names: Vec<_> = columns
            .iter()
            .map(|(column, _)| Identifier(&column.name).to_string())
            .collect();
        let markers = vec!["?"; names.len()].join(", ");
        format!(
            "INSERT INTO {table} ({}) VALUES ({markers})",
            names.join(", ")
        )
    }

    /// Prepares the statement.
    pub async fn prepare(
        session: &Session,
        table: &QualifiedTable,
        columns: Vec<(TableColumn, ColumnOrigin)>,
    ) -> Result<InsertPlan, ToolError> {
        let text = InsertPlan::insert_statement(table, &columns);
        let mut statement = session.prepare(text.as_str()).await.map_err(|error| {
            ToolError::Statement(format!("{text}: {}", server_error::of_preparation(&error)))
        })?;
        // Each row is whole, so that to write it again changes nothing.
        statement.set_is_idempotent(true);
        let mut targets = Vec::with_capacity(columns.len());
        for ((column, origin), spec) in columns
            .into_iter()
            .zip(statement.get_variable_col_specs().iter())
        {
            targets.push(ImportColumn {
                name: column.name,
                cql_type: cql_type(spec.typ()).map_err(|error| ToolError::Statement(error.0))?,
                is_key: column.is_key,
                origin,
            });
        }
        Ok(InsertPlan {
            columns: targets,
            statement,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::file_value::FileValue;

    fn named(name: &str) -> FileColumn {
        FileColumn {
            name: name.to_owned(),
            declared: None,
            is_named: true,
        }
    }

    fn column(name: &str, type_text: &str, is_key: bool) -> TableColumn {
        TableColumn {
            name: name.to_owned(),
            is_key,
            type_text: type_text.to_owned(),
        }
    }

    fn profiles(count: usize) -> Vec<ColumnProfile> {
        let profile = || {
            let mut profile = ColumnProfile::default();
            profile.add(&FileValue::Integer(1));
            profile
        };
        std::iter::repeat_with(profile).take(count).collect()
    }

    fn table() -> QualifiedTable {
        "ks.t".parse().unwrap()
    }

    fn created(file: &[FileColumn], options: &PlanOptions) -> Result<String, String> {
        let profiles = profiles(file.len());
        let definition = TableDefinition::new(file, &profiles, Some(3), options);
        let definition = definition.map_err(|error| error.to_string())?;
        Ok(definition.create_statement(&table()))
    }

    #[test]
    fn a_table_is_made_with_the_key_that_is_named_found_or_made() {
        let begin = "CREATE TABLE IF NOT EXISTS ks.t";
        let made = created(&[named("Part No"), named("Title")], &PlanOptions::default());
        let columns = "(id bigint, \"part no\" bigint, title bigint, PRIMARY KEY (id))";
        assert_eq!(made.unwrap(), format!("{begin} {columns}"));
        let options = PlanOptions {
            key: vec!["b".to_owned(), "a".to_owned()],
            types: vec![("a".to_owned(), "text".to_owned())],
            embed: Some(("a".to_owned(), "v".to_owned())),
            ..PlanOptions::default()
        };
        let made = created(&[named("a"), named("b")], &options);
        let columns = "(a text, b bigint, v vector<float, 3>, PRIMARY KEY (b, a))";
        assert_eq!(made.unwrap(), format!("{begin} {columns}"));
        let found = created(&[named("x"), named("ID")], &PlanOptions::default());
        assert_eq!(
            found.unwrap(),
            format!("{begin} (x bigint, id bigint, PRIMARY KEY (id))")
        );
    }

    #[test]
    fn keys_that_are_not_there_or_have_parts_are_refused() {
        let options = |key: &str, type_text: &str| PlanOptions {
            key: vec![key.to_owned()],
            types: vec![("a".to_owned(), type_text.to_owned())],
            ..PlanOptions::default()
        };
        let error = created(&[named("a")], &options("b", "int")).unwrap_err();
        assert!(error.contains("--key b"), "{error}");
        let error = created(&[named("a")], &options("a", "list<int>")).unwrap_err();
        assert!(error.contains("can't be a key"), "{error}");
        let error = created(&[named("a"), named("A")], &options("a", "int")).unwrap_err();
        assert!(error.contains("lower case"), "{error}");
    }

    #[test]
    fn columns_are_found_by_name_or_by_kind() {
        let of = |file: &[FileColumn], table: &[TableColumn], options: &PlanOptions| {
            let found = origins(file, table, options).map_err(|error| error.to_string())?;
            let names = found
                .into_iter()
                .map(|(column, origin)| (column.name, origin));
            Ok::<_, String>(names.collect::<Vec<_>>())
        };
        let id = column("id", "bigint", true);
        let title = column("title", "text", false);
        let vector = column("v", "vector<float, 2>", false);
        let all = [id.clone(), title.clone(), vector.clone()];
        let usual = PlanOptions::default();
        let found = of(&[named("Title")], &all, &usual).unwrap();
        let expected = [
            ("title".to_owned(), ColumnOrigin::File(0)),
            ("id".to_owned(), ColumnOrigin::RowNumber),
        ];
        assert_eq!(found, expected);
        let unnamed = FileColumn {
            declared: Some(CqlType::Vector {
                element: Box::new(CqlType::Float),
                dimensions: 2,
            }),
            is_named: false,
            ..named("vector")
        };
        let found = of(&[unnamed], &all, &usual).unwrap();
        assert_eq!(found[0], ("v".to_owned(), ColumnOrigin::File(0)));
        let error = of(&[named("id"), named("x")], &all, &usual).unwrap_err();
        assert!(error.contains("no column x"), "{error}");
        let chosen = PlanOptions {
            columns: vec!["id".to_owned()],
            ..PlanOptions::default()
        };
        assert_eq!(
            of(&[named("id"), named("x")], &all, &chosen).unwrap().len(),
            1
        );
        let pair = [id, column("day", "date", true), title];
        let error = of(&[named("id")], &pair, &usual).unwrap_err();
        assert!(error.contains("no column day"), "{error}");
        let embed = PlanOptions {
            embed: Some(("title".to_owned(), "v".to_owned())),
            ..PlanOptions::default()
        };
        let found = of(&[named("title"), named("id")], &all, &embed).unwrap();
        assert!(found.contains(&("v".to_owned(), ColumnOrigin::Embedding(0))));
    }
}
