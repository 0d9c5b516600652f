//! The name of an index, the check of its columns and options, and the statement that makes it.

use std::collections::BTreeMap;

use cql::ast::CreateIndex;
use cql::error::CqlError;
use cql::quote::{Identifier, MapLiteral, StringLiteral};

use crate::target::{self, StoredTarget, TargetColumn};
use crate::{FullTextOptions, SearchClass, options};

/// The class name of vector indexes, as `system_schema.indexes` holds it.
pub const CLASS: &str = SearchClass::Vector.name();

/// The most primary key columns of an indexed table. The index service keeps the number of columns
/// of a row's key in one byte.
const MAX_KEY_COLUMNS: usize = 255;

/// The longest name of an index, in bytes.
const MAX_NAME_LENGTH: usize = 192;

/// Checks the columns and the options of a new index on a table whose primary key has these
/// columns. `column` finds a column of the table by its name.
///
/// # Errors
/// If a column isn't there or can't have its place, if the table's key can't be indexed, or if an
/// option is wrong.
pub fn check(
    class: SearchClass,
    target: &StoredTarget,
    options: &BTreeMap<String, String>,
    key: &[&str],
    column: impl Fn(&str) -> Option<TargetColumn>,
) -> Result<(), CqlError> {
    let dimensions = match class {
        SearchClass::Vector => Some(target.check(&column)?),
        SearchClass::FullText => {
            target.check_text(&column)?;
            None
        }
    };
    if key.len() > MAX_KEY_COLUMNS {
        return Err(CqlError::invalid(format!(
            "{} requires at most {MAX_KEY_COLUMNS} primary key columns, but the table has {}",
            class.title(),
            key.len()
        )));
    }
    for name in key {
        if let Some(column) = column(name) {
            target::check_key(class, name, &column)?;
        }
    }
    match dimensions {
        Some(dimensions) => options::check(options, dimensions),
        None => FullTextOptions::check(options).map(drop),
    }
}

/// Checks that an index with a class gets no options but `OPTIONS`, which ScyllaDB has for views.
///
/// # Errors
/// If it gets one.
pub fn check_properties(create: &CreateIndex, class: &str) -> Result<(), CqlError> {
    match create.properties.first() {
        None => Ok(()),
        Some((first, _)) => Err(CqlError::invalid(format!(
            "An index of the class '{class}' takes OPTIONS alone, not {first}"
        ))),
    }
}

/// Checks the name of a new index.
///
/// # Errors
/// If the name is too long, empty, or has other characters than ASCII letters, digits and `_`.
pub fn check_name(name: &str) -> Result<(), CqlError> {
    if name.is_empty() || !name.chars().all(is_word) || name.len() > MAX_NAME_LENGTH {
        return Err(CqlError::invalid(format!("Illegal index name {name}")));
    }
    Ok(())
}

/// The outcome of naming a new index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewName {
    /// The index gets this name.
    Name(String),
    /// There is such an index already and the statement says IF NOT EXISTS, so none is created.
    Exists,
}

/// Decides the name of a new index on a column: the given one, or else the first of `t_v_idx`,
/// `t_v_idx_1`, ... that is free.
///
/// `is_taken` says whether an index in the keyspace has a name. `on_column` is the name of an index
/// on the column with the same local key, or also with none, if there is one.
///
/// # Errors
/// Without `if_not_exists`: if the given name is taken, or if no name is given and the column has
/// such an index.
pub fn new_name(
    given: Option<&str>,
    if_not_exists: bool,
    (table, column): (&str, &str),
    is_taken: impl Fn(&str) -> bool,
    on_column: Option<&str>,
) -> Result<NewName, CqlError> {
    let name = match given {
        Some(name) => name.to_owned(),
        None => free_name(table, column, &is_taken),
    };
    let refusal = match (given, on_column) {
        (Some(_), _) if is_taken(&name) => format!("Index '{name}' already exists"),
        (None, Some(existing)) => {
            format!("Index {name} is a duplicate of existing index {existing}")
        }
        _ => return Ok(NewName::Name(name)),
    };
    match if_not_exists {
        true => Ok(NewName::Exists),
        false => Err(CqlError::invalid(refusal)),
    }
}

/// The error of DROP INDEX for an index that doesn't exist.
pub fn missing(keyspace: &str, name: &str) -> CqlError {
    CqlError::invalid(format!("Index '{keyspace}.{name}' doesn't exist"))
}

/// The statement that creates an index. `target` is the CQL text for the parentheses; `options` are
/// the options that the user gave.
pub fn create_statement(
    (keyspace, table): (&str, &str),
    name: &str,
    target: &str,
    class: &str,
    options: &BTreeMap<String, String>,
) -> String {
    let options = match options.is_empty() {
        true => String::new(),
        false => format!(" WITH OPTIONS = {}", MapLiteral(options)),
    };
    format!(
        "CREATE CUSTOM INDEX {} ON {}.{}({target}) USING {}{options};",
        Identifier(name),
        Identifier(keyspace),
        Identifier(table),
        StringLiteral(class),
    )
}

/// The statement that creates an index without a class. `target` is the CQL text for the
/// parentheses.
pub fn create_plain_statement((keyspace, table): (&str, &str), name: &str, target: &str) -> String {
    format!(
        "CREATE INDEX {} ON {}.{} ({target});",
        Identifier(name),
        Identifier(keyspace),
        Identifier(table),
    )
}

/// The default name of an index, before a number makes it unique: `t_v_idx` on one column, `t_idx`
/// on several (`column` is `None`).
pub fn default_name(table: &str, column: Option<&str>) -> String {
    let Some(column) = column else {
        return format!("{table}_idx");
    };
    let column: String = column.chars().filter(|c| is_word(*c)).collect();
    format!("{table}_{column}_idx")
}

fn free_name(table: &str, column: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let base = default_name(table, Some(column));
    if !is_taken(&base) {
        return base;
    }
    (1_u32..)
        .map(|number| format!("{base}_{number}"))
        .find(|name| !is_taken(name))
        .unwrap_or(base)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_name_steps_aside() {
        let taken = ["t_v_idx", "t_v_idx_1"];
        assert_eq!(
            free_name("t", "v", |name| taken.contains(&name)),
            "t_v_idx_2"
        );
        assert_eq!(free_name("t", "a b$c", |_| false), "t_abc_idx");
        assert_eq!(default_name("t", None), "t_idx");
    }

    #[test]
    fn a_taken_name_and_an_unnamed_duplicate_are_refused_or_passed_over() {
        let new = |given, if_not_exists, on_column| {
            let taken = |name: &str| name == "taken";
            new_name(given, if_not_exists, ("t", "v"), taken, on_column)
                .map_err(|error| error.message)
        };
        let named = |name: &str| Ok(NewName::Name(name.to_owned()));
        assert_eq!(new(Some("free"), false, Some("other")), named("free"));
        assert_eq!(new(None, false, None), named("t_v_idx"));
        assert_eq!(
            new(Some("taken"), false, None),
            Err("Index 'taken' already exists".to_owned())
        );
        assert_eq!(
            new(None, false, Some("other")),
            Err("Index t_v_idx is a duplicate of existing index other".to_owned())
        );
        assert_eq!(new(Some("taken"), true, None), Ok(NewName::Exists));
        assert_eq!(new(None, true, Some("other")), Ok(NewName::Exists));
    }

    #[test]
    fn a_definition_is_checked_as_its_class_demands() {
        let column = |name: &str| {
            let cql_type = cql::parser::parse_type(name).ok()?;
            Some(TargetColumn {
                type_text: name.to_owned(),
                cql_type: Some(cql_type),
                irregular: None,
                is_partition_key: false,
            })
        };
        let check = |class: SearchClass, on: &str, option: (&str, &str), key: &[&str]| {
            let options = BTreeMap::from([(option.0.to_owned(), option.1.to_owned())]);
            let target = StoredTarget::on(on.to_owned());
            let checked = super::check(class, &target, &options, key, column);
            checked.map_err(|error| error.message)
        };
        let metric = ("similarity_function", "cosine");
        let analyzer = ("analyzer", "german");
        let vector = "vector<float, 3>";
        assert_eq!(check(SearchClass::Vector, vector, metric, &["int"]), Ok(()));
        assert_eq!(
            check(SearchClass::FullText, "text", analyzer, &["int"]),
            Ok(())
        );
        for (class, on, option, key, expected) in [
            (
                SearchClass::Vector,
                vector,
                analyzer,
                vec!["int"],
                "Unsupported option analyzer",
            ),
            (
                SearchClass::FullText,
                "text",
                metric,
                vec!["int"],
                "Unsupported option similarity",
            ),
            (
                SearchClass::Vector,
                "text",
                metric,
                vec!["int"],
                "only supported on columns of vec",
            ),
            (
                SearchClass::FullText,
                vector,
                analyzer,
                vec!["int"],
                "only supported on columns of te",
            ),
            (
                SearchClass::FullText,
                "text",
                analyzer,
                vec!["duration"],
                "Full-text indexes are not supported on tables with a primary key column of type",
            ),
            (
                SearchClass::FullText,
                "text",
                analyzer,
                vec!["int"; 256],
                "Full-text index requires at most 255 primary key columns, but the table has 256",
            ),
        ] {
            let error = check(class, on, option, &key).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_statement_names_what_its_user_gave() {
        let options = BTreeMap::from([("similarity_function".to_owned(), "cosine".to_owned())]);
        assert_eq!(
            create_statement(("k", "T"), "i", "v", CLASS, &options),
            "CREATE CUSTOM INDEX i ON k.\"T\"(v) USING 'vector_index' \
             WITH OPTIONS = {'similarity_function': 'cosine'};"
        );
        assert_eq!(
            create_statement(("k", "t"), "i", "v", CLASS, &BTreeMap::new()),
            "CREATE CUSTOM INDEX i ON k.t(v) USING 'vector_index';"
        );
        assert_eq!(
            create_plain_statement(("k", "T"), "I", "keys(m)"),
            "CREATE INDEX \"I\" ON k.\"T\" (keys(m));"
        );
    }
}
