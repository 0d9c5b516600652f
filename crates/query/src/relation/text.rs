//! Relations as CQL text.

use cql::ast::{self, Comparand, ComparisonSubject};

use crate::functions::term_excerpt;

/// The most terms of a list that a text shows; the others are left out.
const TERMS_SHOWN: usize = 8;

/// The CQL text of a relation, about as the user wrote it.
pub(super) fn relation_text(relation: &ast::Relation) -> String {
    let subject = match &relation.subject {
        ComparisonSubject::Column(name) => name.clone(),
        ComparisonSubject::Element { column, key } => format!("{column}[{}]", term_excerpt(key)),
        ComparisonSubject::Field { column, field } => format!("{column}.{field}"),
        ComparisonSubject::Tuple(names) => format!("({})", names.join(", ")),
        ComparisonSubject::Token(names) => format!("token({})", names.join(", ")),
        ComparisonSubject::Function(call) => format!("{}(...)", call.name),
    };
    let operator = relation.operator.as_str();
    match &relation.comparand {
        Comparand::Term(term) => format!("{subject} {operator} {}", term_excerpt(term)),
        Comparand::List(terms) => {
            let mut texts: Vec<String> = terms.iter().take(TERMS_SHOWN).map(term_excerpt).collect();
            if terms.len() > TERMS_SHOWN {
                texts.push("...".to_owned());
            }
            format!("{subject} {operator} ({})", texts.join(", "))
        }
        Comparand::None => format!("{subject} {operator}"),
    }
}
