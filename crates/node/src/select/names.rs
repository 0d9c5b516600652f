//! The names of result columns, as Cassandra shows them.

use cql::ast::{ArgumentPart, ArithmeticOperation, FunctionCall, NEGATION, Selector, Term};
use cql::error::CqlError;
use query::functions::term_text;

/// The name of a column that has no alias.
pub(super) fn selector_name(selector: &Selector) -> String {
    match selector {
        Selector::Column(name) => name.clone(),
        Selector::CountAll => "count".to_owned(),
        Selector::Time {
            function,
            column,
            part,
        } => match &**part {
            ArgumentPart::Nested { whole, .. } => {
                format!("{}({})", function.name(), selector_name(whole))
            }
            part => format!("{}({column}{})", function.name(), part_text(part)),
        },
        Selector::Function(call) => {
            let keyspace = call.keyspace.as_deref().unwrap_or("system");
            let arguments: Vec<String> = call.arguments.iter().map(selector_name).collect();
            if let Some(name) = operator_name(call, &arguments) {
                return name;
            }
            if let ([argument], Some(to)) = (&*arguments, call.name.strip_prefix("cast_as_")) {
                return format!("cast({argument} as {to})");
            }
            // Cassandra shows only the older name of this function.
            let name = match call.name.as_str() {
                "to_json" => "tojson",
                name => name,
            };
            format!("{keyspace}.{name}({})", arguments.join(", "))
        }
        Selector::Cast { selector, cql_type } => {
            format!("cast({} as {cql_type})", selector_name(selector))
        }
        Selector::Element { selector, key } => {
            format!("{}[{}]", selector_name(selector), term_text(key))
        }
        Selector::Slice { selector, from, to } => {
            let slice = slice_text(from.as_deref(), to.as_deref());
            format!("{}{slice}", selector_name(selector))
        }
        Selector::Field { selector, field } => format!("{}.{field}", selector_name(selector)),
        Selector::Tuple(selectors) => format!("({})", joined(selectors)),
        Selector::List(selectors) => format!("[{}]", joined(selectors)),
        Selector::Set(selectors) => format!("{{{}}}", joined(selectors)),
        Selector::Entries(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", selector_name(key), selector_name(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Selector::Hint {
            data_type,
            selector,
        } => format!("({data_type}){}", selector_name(selector)),
        Selector::Term(term) => term_text(term),
    }
}

/// The text of a selector for messages, cut after 60 characters.
pub(super) fn selector_excerpt(selector: &Selector) -> String {
    const MAX_CHARS: usize = 60;
    let text = selector_name(selector);
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// The error of a selector whose type can't be known.
pub(super) fn no_type(selector: &Selector) -> CqlError {
    CqlError::invalid(format!(
        "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
        selector_excerpt(selector)
    ))
}

fn joined(selectors: &[Selector]) -> String {
    let names: Vec<String> = selectors.iter().map(selector_name).collect();
    names.join(", ")
}

/// The name of an operator and its operands, in parentheses where another operator would bind
/// closer; `None` for other calls.
fn operator_name(call: &FunctionCall<Selector>, arguments: &[String]) -> Option<String> {
    let inner = |at: usize| match &call.arguments[at] {
        Selector::Function(inner) => ArithmeticOperation::of_function(&inner.name),
        _ => None,
    };
    let operand = |at: usize, is_looser: bool| match is_looser {
        true => format!("({})", arguments[at]),
        false => arguments[at].clone(),
    };
    match (ArithmeticOperation::of_function(&call.name), arguments) {
        (Some(operation), [_, _]) => {
            let is_product = operation.is_product();
            let is_sum =
                |inner: Option<ArithmeticOperation>| inner.is_some_and(|inner| !inner.is_product());
            let left = operand(0, is_product && is_sum(inner(0)));
            let right = operand(1, is_sum(inner(1)) || is_product && inner(1).is_some());
            Some(format!("{left} {} {right}", operation.symbol()))
        }
        (None, [_]) if call.name == NEGATION => {
            Some(format!("-{}", operand(0, inner(0).is_some())))
        }
        _ => None,
    }
}

fn part_text(part: &ArgumentPart) -> String {
    match part {
        ArgumentPart::Whole | ArgumentPart::Nested { .. } => String::new(),
        ArgumentPart::Field(field) => format!(".{field}"),
        ArgumentPart::Element(key) => format!("[{}]", term_text(key)),
        ArgumentPart::Slice { from, to } => slice_text(from.as_ref(), to.as_ref()),
    }
}

fn slice_text(from: Option<&Term>, to: Option<&Term>) -> String {
    let text = |bound: Option<&Term>| bound.map_or_else(String::new, term_text);
    format!("[{}..{}]", text(from), text(to))
}
