//! Calls of searches: `ANN(v, ?)`, `BM25_SCORE(c, ?)` and their like, wherever they occur.
//!
//! A call names a column and what is looked for in it. Calls of the same kind on the same column
//! for an equal value mean the same search.

use std::borrow::Cow;

use cql::ast::{self, ArithmeticOperation, FunctionCall, OrderByItem, Select, Selector, Term};
use cql::error::CqlError;
use value::CqlType;

/// The kind of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchKind {
    /// For the vectors nearest to one, by a vector index.
    Vector,
    /// For the texts that match words best, by a full-text index.
    Words,
}

impl SearchKind {
    /// The function that means a search of this kind.
    pub fn function(self) -> &'static str {
        match self {
            SearchKind::Vector => "ANN",
            SearchKind::Words => "BM25",
        }
    }
}

/// The part of what a search knows of a row that a call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchCallPart {
    /// `ANN()`, `BM25()`: the score and the rank as a tuple.
    Hit,
    /// `ANN_SCORE()`, `BM25_SCORE()`.
    Score,
    /// `ANN_RANK()`, `BM25_RANK()`.
    Rank,
    /// `BM25_HIGHLIGHT()`: the place in the text where the words occur.
    Highlight,
}

impl SearchCallPart {
    /// The type of the value in a selection.
    pub fn cql_type(self) -> CqlType {
        match self {
            SearchCallPart::Hit => CqlType::Tuple(vec![CqlType::Float, CqlType::Int]),
            SearchCallPart::Score => CqlType::Float,
            SearchCallPart::Rank => CqlType::Int,
            SearchCallPart::Highlight => CqlType::Text,
        }
    }
}

/// The functions of searches.
const FUNCTIONS: [(&str, SearchKind, SearchCallPart); 7] = [
    ("ann", SearchKind::Vector, SearchCallPart::Hit),
    ("ann_score", SearchKind::Vector, SearchCallPart::Score),
    ("ann_rank", SearchKind::Vector, SearchCallPart::Rank),
    ("bm25", SearchKind::Words, SearchCallPart::Hit),
    ("bm25_score", SearchKind::Words, SearchCallPart::Score),
    ("bm25_rank", SearchKind::Words, SearchCallPart::Rank),
    (
        "bm25_highlight",
        SearchKind::Words,
        SearchCallPart::Highlight,
    ),
];

/// A call of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchCall<'a> {
    /// The kind of the search.
    pub kind: SearchKind,
    /// The part that the call gives.
    pub part: SearchCallPart,
    /// The column that is searched.
    pub column: &'a str,
    /// The vector or the words to look for.
    pub term: Cow<'a, Term>,
}

impl<'a> SearchCall<'a> {
    /// Reads a call; `None` for a call of any other function.
    ///
    /// # Errors
    /// Arguments that make no sense.
    pub fn of(call: &'a FunctionCall<Selector>) -> Result<Option<SearchCall<'a>>, CqlError> {
        let Some(name) = native_name(call) else {
            return Ok(None);
        };
        let Some((name, kind, part)) = FUNCTIONS.into_iter().find(|(known, ..)| *known == name)
        else {
            return Ok(None);
        };
        let (column, term) = match call.arguments.as_slice() {
            [Selector::Column(column), term] => (column, term_of(term)),
            [_, _] => return Err(misplaced(name, kind)),
            arguments => {
                return Err(CqlError::invalid(format!(
                    "Invalid number of arguments in call to function {name}: 2 required but {} provided",
                    arguments.len()
                )));
            }
        };
        Ok(Some(SearchCall {
            kind,
            part,
            column,
            term: term.ok_or_else(|| misplaced(name, kind))?,
        }))
    }
}

fn misplaced(name: &str, kind: SearchKind) -> CqlError {
    let what = match kind {
        SearchKind::Vector => "a vector",
        SearchKind::Words => "a text",
    };
    CqlError::invalid(format!(
        "{}() takes a column and {what}, in this order",
        name.to_ascii_uppercase()
    ))
}

/// The name of a function of the database itself. In a keyspace, a user's function may have that
/// name.
pub(crate) fn native_name(call: &FunctionCall<Selector>) -> Option<&str> {
    let is_native = call.keyspace.as_deref().is_none_or(|name| name == "system");
    is_native.then_some(call.name.as_str())
}

/// A selector as a term; `None` if there is a column in it.
pub(crate) fn term_of(selector: &Selector) -> Option<Cow<'_, Term>> {
    match selector {
        Selector::Term(term) => Some(Cow::Borrowed(term)),
        Selector::Function(call) => {
            let arguments = call.arguments.iter().map(term_of);
            Some(Cow::Owned(Term::Function(FunctionCall {
                keyspace: call.keyspace.clone(),
                name: call.name.clone(),
                arguments: arguments
                    .map(|term| term.map(Cow::into_owned))
                    .collect::<Option<_>>()?,
            })))
        }
        Selector::Hint {
            data_type,
            selector,
        } => Some(Cow::Owned(Term::TypeHint {
            data_type: data_type.clone(),
            term: Box::new(term_of(selector)?.into_owned()),
        })),
        _ => None,
    }
}

/// The columns that orderings by searches name, whether or not the orderings make sense.
pub fn similarity_columns(order_by: &[OrderByItem]) -> impl Iterator<Item = &str> {
    let mut columns = Vec::new();
    for ordering in order_by {
        match ordering {
            OrderByItem::Column { .. } => {}
            OrderByItem::Ann { column, .. } => columns.push(column.as_str()),
            OrderByItem::Function { function, .. } => add_columns(function, &mut columns),
            OrderByItem::Expression { expression, .. } => {
                if let Selector::Function(call) = expression {
                    add_columns(call, &mut columns);
                }
            }
        }
    }
    columns.into_iter()
}

/// Adds the columns of a call's search, or of those within its arguments.
fn add_columns<'a>(call: &'a FunctionCall<Selector>, columns: &mut Vec<&'a str>) {
    let holds_calls = ArithmeticOperation::is_operator(&call.name) || is_fusion(call);
    if !holds_calls {
        if let Some(Selector::Column(column)) = call.arguments.first() {
            columns.push(column);
        }
        return;
    }
    for argument in &call.arguments {
        if let Selector::Function(call) = argument {
            add_columns(call, columns);
        }
    }
}

/// Whether a call is one of `RRF`.
pub(crate) fn is_fusion(call: &FunctionCall<Selector>) -> bool {
    native_name(call) == Some("rrf")
}

/// The columns whose words a statement looks for, in WHERE and in its selection.
pub fn word_columns(select: &Select) -> Vec<&str> {
    let mut columns = Vec::new();
    for relation in &select.relations {
        if let ast::ComparisonSubject::Function(call) = &relation.subject
            && let Ok(Some(call)) = SearchCall::of(call)
        {
            columns.push(call.column);
        }
    }
    if let ast::ProjectionList::Items(items) = &select.projection {
        for item in items {
            add_selected(&item.selector, &mut columns);
        }
    }
    columns
}

fn add_selected<'a>(selector: &'a Selector, columns: &mut Vec<&'a str>) {
    match selector {
        Selector::Function(call) => match SearchCall::of(call) {
            Ok(Some(call)) => columns.push(call.column),
            _ => {
                for argument in &call.arguments {
                    add_selected(argument, columns);
                }
            }
        },
        Selector::Cast { selector, .. }
        | Selector::Field { selector, .. }
        | Selector::Element { selector, .. }
        | Selector::Slice { selector, .. }
        | Selector::Hint { selector, .. } => add_selected(selector, columns),
        Selector::Tuple(parts) | Selector::List(parts) | Selector::Set(parts) => {
            for part in parts {
                add_selected(part, columns);
            }
        }
        Selector::Entries(entries) => {
            for (key, value) in entries {
                add_selected(key, columns);
                add_selected(value, columns);
            }
        }
        Selector::Column(_) | Selector::CountAll | Selector::Time { .. } | Selector::Term(_) => {}
    }
}
