//! The tool `search`: one SELECT made of a search's parts. Names come from the schema, and all
//! values are bound.

use serde::Deserialize;
use serde_json::{Map, Value};
use value::identifier::Identifier;

use super::catalog::{CatalogIndex, CatalogTable};
use super::failure::CallFailure;

/// The rows of an answer by default.
const LIMIT: u32 = 10;

/// The most rows of a search for words or several searches, by CQL.
const MAX_LIMIT: u32 = 1_000;

/// Comparisons of a filter, by their names over HTTP.
const COMPARISONS: [(&str, &str); 8] = [
    ("eq", "="),
    ("gt", ">"),
    ("gte", ">="),
    ("lt", "<"),
    ("lte", "<="),
    ("in", "IN"),
    ("contains", "CONTAINS"),
    ("contains_key", "CONTAINS KEY"),
];

/// Arguments of `search`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchToolArguments {
    /// The keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    #[serde(default)]
    vector: Option<Vec<Value>>,
    #[serde(default)]
    vector_column: Option<String>,
    /// Words as a user typed them.
    #[serde(default)]
    text: Option<String>,
    /// A query in the language of full-text indexes.
    #[serde(default)]
    text_query: Option<String>,
    #[serde(default)]
    text_column: Option<String>,
    #[serde(default)]
    filter: Map<String, Value>,
    #[serde(default)]
    columns: Option<Vec<String>>,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    allow_filtering: bool,
}

/// A SELECT and the values of its markers, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundSelect {
    /// The text.
    pub query: String,
    /// The values.
    pub parameters: Vec<Value>,
}

impl BoundSelect {
    fn push(&mut self, text: &str, values: impl IntoIterator<Item = Value>) {
        self.query.push_str(text);
        self.parameters.extend(values);
    }
}

/// A search for neighbours: its column as CQL text, the vector, and the similarity's function.
struct VectorPart {
    column: String,
    vector: Value,
    similarity: String,
}

/// A search for words: its column as CQL text, the marker, and the words.
struct WordsPart {
    column: String,
    marker: &'static str,
    words: Value,
}

/// Makes the statement of a search.
///
/// # Errors
/// If it names what the table does not have, or its parts don't go together.
pub fn statement(
    table: &CatalogTable,
    arguments: &SearchToolArguments,
) -> Result<BoundSelect, CallFailure> {
    let limit = arguments.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(CallFailure::new(
            format!("a limit of {limit} is not possible"),
            format!("take 1 to {MAX_LIMIT}"),
        ));
    }
    let near = vector_part(table, arguments)?;
    let words = words_part(table, arguments)?;
    let mut statement = BoundSelect::default();
    let columns = selected(table, arguments)?;
    statement.push(&format!("SELECT {}", columns.join(", ")), []);
    scores(&mut statement, near.as_ref(), words.as_ref());
    statement.push(&format!(" FROM {}", table.identifier()), []);
    restrict(&mut statement, table, &arguments.filter)?;
    order(&mut statement, near, words)?;
    statement.push(&format!(" LIMIT {limit}"), []);
    if arguments.allow_filtering {
        statement.push(" ALLOW FILTERING", []);
    }
    Ok(statement)
}

/// The columns of an answer. By default all but vectors, which are long and say nothing to a model.
fn selected(
    table: &CatalogTable,
    arguments: &SearchToolArguments,
) -> Result<Vec<String>, CallFailure> {
    let Some(names) = &arguments.columns else {
        let columns = table.columns.iter().filter(|column| !column.is_vector());
        return Ok(columns
            .map(|column| Identifier(&column.name).to_string())
            .collect());
    };
    if names.is_empty() {
        return Err(CallFailure::new(
            "`columns` is empty",
            "name some, or leave it out: then all but vectors come",
        ));
    }
    names.iter().map(|name| column(table, name)).collect()
}

/// A column of the table as CQL text.
fn column(table: &CatalogTable, name: &str) -> Result<String, CallFailure> {
    let columns = &table.columns;
    if columns.iter().any(|column| column.name == name) {
        return Ok(Identifier(name).to_string());
    }
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    Err(CallFailure::new(
        format!("the table {} has no column {name}", table.identifier()),
        format!("it has {}", names.join(", ")),
    ))
}

fn vector_part(
    table: &CatalogTable,
    arguments: &SearchToolArguments,
) -> Result<Option<VectorPart>, CallFailure> {
    let Some(vector) = &arguments.vector else {
        return match &arguments.vector_column {
            None => Ok(None),
            Some(_) => Err(CallFailure::new(
                "`vector_column` is of no use without `vector`",
                "give the vector as a list of numbers, or leave the column out",
            )),
        };
    };
    let is_vector = |index: &CatalogIndex| {
        let mut columns = table.columns.iter();
        columns.any(|column| column.name == index.column && column.is_vector())
    };
    let index = index(
        table,
        is_vector,
        arguments.vector_column.as_deref(),
        "vector",
    )?;
    let cql_type = table
        .columns
        .iter()
        .find(|column| column.name == index.column)
        .map_or("", |column| &*column.cql_type);
    // `vector<float, 3>`
    let dimensions = cql_type.rsplit(',').next().unwrap_or_default();
    let dimensions = dimensions.trim_end_matches('>').trim();
    if dimensions.parse::<usize>().ok() != Some(vector.len()) {
        return Err(CallFailure::new(
            format!(
                "the vector has {} numbers, and {} is a {cql_type}",
                vector.len(),
                index.column
            ),
            "make it by the model that made the column's vectors, or search by `text` if there is an index on words",
        ));
    }
    let similarity = index.options.get("similarity_function");
    let similarity = similarity.map_or("cosine".to_owned(), |name| name.to_lowercase());
    let functions = ["cosine", "euclidean", "dot_product"];
    let known = functions.into_iter().find(|name| *name == similarity);
    Ok(Some(VectorPart {
        column: Identifier(&index.column).to_string(),
        vector: Value::from(vector.clone()),
        similarity: format!("similarity_{}", known.unwrap_or("cosine")),
    }))
}

fn words_part(
    table: &CatalogTable,
    arguments: &SearchToolArguments,
) -> Result<Option<WordsPart>, CallFailure> {
    let (marker, words) = match (&arguments.text, &arguments.text_query) {
        (None, None) if arguments.text_column.is_none() => return Ok(None),
        (Some(text), None) => ("bm25_words(?)", text),
        (None, Some(query)) => ("?", query),
        _ => {
            return Err(CallFailure::new(
                "a search for words needs one of `text` and `text_query`",
                "`text` takes words as they are, `text_query` the language of docs/text.md",
            ));
        }
    };
    let wanted = arguments.text_column.as_deref();
    let index = index(table, CatalogIndex::is_on_words, wanted, "text")?;
    Ok(Some(WordsPart {
        column: Identifier(&index.column).to_string(),
        marker,
        words: Value::from(words.clone()),
    }))
}

/// The index that a search of this kind goes by: that of the named column, or the only one.
fn index<'a>(
    table: &'a CatalogTable,
    is_suitable: impl Fn(&CatalogIndex) -> bool,
    wanted: Option<&str>,
    kind: &str,
) -> Result<&'a CatalogIndex, CallFailure> {
    let suitable = table.indexes.iter().filter(|index| is_suitable(index));
    let mut suitable: Vec<&CatalogIndex> = suitable.collect();
    suitable.sort_by(|a, b| a.column.cmp(&b.column));
    // Several on one column are one to a statement: the server chooses.
    suitable.dedup_by(|a, b| a.column == b.column);
    let columns: Vec<&str> = suitable.iter().map(|index| &*index.column).collect();
    let columns = columns.join(", ");
    if let Some(wanted) = wanted {
        return suitable
            .into_iter()
            .find(|index| index.column == wanted)
            .ok_or_else(|| {
                CallFailure::new(
                    format!("the column {wanted} has no {kind} index"),
                    match columns.is_empty() {
                        true => format!("the table {} has none", table.identifier()),
                        false => format!("these columns have one: {columns}"),
                    },
                )
            });
    }
    match *suitable {
        [only] => Ok(only),
        [] => Err(CallFailure::new(
            format!("the table {} has no {kind} index", table.identifier()),
            "list_indexes shows where there are some; CREATE CUSTOM INDEX makes one, if the user wishes so",
        )),
        _ => Err(CallFailure::new(
            format!("several columns have a {kind} index: {columns}"),
            format!("name one as `{kind}_column`"),
        )),
    }
}

/// Adds the scores to the selection: of one search `_score`, of two each its own.
fn scores(statement: &mut BoundSelect, near: Option<&VectorPart>, words: Option<&WordsPart>) {
    let names = match (near, words) {
        (Some(_), Some(_)) => ("_vector_score", "_text_score"),
        _ => ("_score", "_score"),
    };
    if let Some(near) = near {
        // Of one search the function that Cassandra has, too.
        let function = match words {
            None => &near.similarity,
            Some(_) => "ANN_SCORE",
        };
        let score = format!(", {function}({}, ?) AS \"{}\"", near.column, names.0);
        statement.push(&score, [near.vector.clone()]);
    }
    if let Some(words) = words {
        let (column, marker) = (&words.column, words.marker);
        let score = format!(", BM25_SCORE({column}, {marker}) AS \"{}\"", names.1);
        statement.push(&score, [words.words.clone()]);
    }
}

fn restrict(
    statement: &mut BoundSelect,
    table: &CatalogTable,
    filter: &Map<String, Value>,
) -> Result<(), CallFailure> {
    let mut word = " WHERE ";
    for (name, condition) in filter {
        if ["and", "or", "not"].contains(&&**name) && column(table, name).is_err() {
            return Err(CallFailure::new(
                format!("a filter has no `{name}` here"),
                "all its conditions hold together; search once for each part of an OR",
            ));
        }
        let column = column(table, name)?;
        for (comparison, value) in conditions(name, condition)? {
            statement.push(&format!("{word}{column} {comparison} ?"), [value]);
            word = " AND ";
        }
    }
    Ok(())
}

/// The comparisons of a column: a value, or an object of several.
fn conditions(name: &str, condition: &Value) -> Result<Vec<(&'static str, Value)>, CallFailure> {
    let known = COMPARISONS.map(|(name, _)| name).join(", ");
    let of_null = || {
        CallFailure::new(
            format!("{name} is compared with null, which no row satisfies"),
            "leave it out",
        )
    };
    let comparisons = match condition {
        Value::Null => return Err(of_null()),
        Value::Object(comparisons) if !comparisons.is_empty() => comparisons,
        Value::Object(_) => {
            return Err(CallFailure::new(
                format!("the filter on {name} has no comparison"),
                format!("give a value, or an object with some of {known}"),
            ));
        }
        value => return Ok(vec![("=", value.clone())]),
    };
    let comparisons = comparisons.iter().map(|(word, value)| {
        if value.is_null() {
            return Err(of_null());
        }
        let known_word = COMPARISONS.iter().find(|(name, _)| name == word);
        match known_word {
            Some((_, operator)) => Ok((*operator, value.clone())),
            None => Err(CallFailure::new(
                format!("{word} is no comparison of the filter on {name}"),
                format!("take some of {known}"),
            )),
        }
    });
    comparisons.collect()
}

fn order(
    statement: &mut BoundSelect,
    near: Option<VectorPart>,
    words: Option<WordsPart>,
) -> Result<(), CallFailure> {
    match (near, words) {
        (Some(near), None) => {
            let order = format!(" ORDER BY {} ANN OF ?", near.column);
            statement.push(&order, [near.vector]);
        }
        (None, Some(words)) => {
            let order = format!(" ORDER BY BM25({}, {})", words.column, words.marker);
            statement.push(&order, [words.words]);
        }
        (Some(near), Some(words)) => {
            let (column, marker) = (&words.column, words.marker);
            let order = format!(
                " ORDER BY RRF(ANN({}, ?), BM25({column}, {marker}))",
                near.column
            );
            statement.push(&order, [near.vector, words.words]);
        }
        (None, None) => {
            return Err(CallFailure::new(
                "a search needs `vector`, `text`, or both",
                "rows by conditions alone are read by the tool cql: SELECT ... WHERE ...",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
