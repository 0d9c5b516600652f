//! The names of result columns, as Cassandra shows them.

use cql::ast::Selector;
use query::functions::term_text;

/// The name of a column that has no alias.
pub(super) fn selector_name(selector: &Selector) -> String {
    match selector {
        Selector::Column(name) => name.clone(),
        Selector::CountAll => "count".to_owned(),
        Selector::WriteTime {
            column,
            field,
            is_max,
        } => {
            let max = if *is_max { "max" } else { "" };
            format!("{max}writetime({})", part_name(column, field.as_deref()))
        }
        Selector::Ttl { column, field } => format!("ttl({})", part_name(column, field.as_deref())),
        Selector::Function(call) => {
            let keyspace = call.keyspace.as_deref().unwrap_or("system");
            let arguments: Vec<String> = call.arguments.iter().map(selector_name).collect();
            // Cassandra shows this function by its older name alone.
            let name = match call.name.as_str() {
                "to_json" => "tojson",
                name => name,
            };
            format!("{keyspace}.{name}({})", arguments.join(", "))
        }
        Selector::Cast { selector, cql_type } => {
            format!("cast({} as {cql_type})", selector_name(selector))
        }
        Selector::Element { column, key } => format!("{column}[{}]", term_text(key)),
        Selector::Field { selector, field } => format!("{}.{field}", selector_name(selector)),
        Selector::Term(term) => term_text(term),
    }
}

fn part_name(column: &str, field: Option<&str>) -> String {
    match field {
        Some(field) => format!("{column}.{field}"),
        None => column.to_owned(),
    }
}
