//! Relations as CQL text.

use cql::ast::{self, Comparand, Operator, Subject};

use crate::functions::term_excerpt;

/// Of a longer list the rest is left out.
const TERMS_SHOWN: usize = 8;

/// An operator as it is written.
pub(super) fn operator_text(operator: Operator) -> &'static str {
    match operator {
        Operator::Eq => "=",
        Operator::NotEq => "!=",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::In => "IN",
        Operator::NotIn => "NOT IN",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
        Operator::Like => "LIKE",
        Operator::IsNotNull => "IS NOT NULL",
    }
}

/// A relation about as it was written.
pub(super) fn relation_text(relation: &ast::Relation) -> String {
    let subject = match &relation.subject {
        Subject::Column(name) => name.clone(),
        Subject::Element { column, key } => format!("{column}[{}]", term_excerpt(key)),
        Subject::Field { column, field } => format!("{column}.{field}"),
        Subject::Tuple(names) => format!("({})", names.join(", ")),
        Subject::Token(names) => format!("token({})", names.join(", ")),
        Subject::Function(call) => format!("{}(...)", call.name),
    };
    let operator = operator_text(relation.operator);
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
