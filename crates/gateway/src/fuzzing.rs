//! Entry point of a fuzz target: any text as a statement that the gateway recognises.

use cql::ast::{OrderByItem, Statement};
use cql::parser::parse_statement;

use crate::recognise::{StatementVerb, may_search, verb};

/// Takes the quick look at a text, and parses it.
///
/// The quick look may take a statement for more than it is, and never for less. So the kind of
/// every statement that can be parsed is recognised, and every query by searches is suspected.
///
/// # Panics
/// If that does not hold.
pub fn recognition(bytes: &[u8]) {
    let seen = verb(bytes);
    let is_suspected = may_search(bytes);
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let Ok(parsed) = parse_statement(text) else {
        return;
    };
    let expected = match &parsed.statement {
        Statement::Select(select) => {
            let is_ann = |ordering: &OrderByItem| matches!(ordering, OrderByItem::Ann { .. });
            let searches =
                select.order_by.iter().any(is_ann) || !query::word_columns(select).is_empty();
            assert!(is_suspected || !searches);
            StatementVerb::Select
        }
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_) => StatementVerb::Write,
        Statement::Use { .. } => StatementVerb::Use,
        Statement::Truncate(_) => StatementVerb::Truncate,
        Statement::CreateKeyspace(_)
        | Statement::CreateType(_)
        | Statement::CreateTable(_)
        | Statement::CreateIndex(_) => StatementVerb::Create,
        Statement::AlterKeyspace { .. } | Statement::AlterType(_) | Statement::AlterTable(_) => {
            StatementVerb::Alter
        }
        Statement::DropKeyspace { .. }
        | Statement::DropType { .. }
        | Statement::DropTable { .. }
        | Statement::DropIndex { .. }
        | Statement::DropAbsent { .. } => StatementVerb::Drop,
        Statement::Describe(_) => StatementVerb::Describe,
        // The verbs of statements about roles are not distinguished.
        Statement::Role(_) => seen,
        // Its first words are in the text that it holds.
        Statement::Unsupported(words) => verb(words.as_bytes()),
    };
    assert_eq!(seen, expected);
}
