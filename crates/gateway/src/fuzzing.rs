//! Entry point of a fuzz target: any text as a statement that the gateway recognises.

use cql::ast::{Ordering, Statement};
use cql::parser::parse_statement;

use crate::recognise::{Verb, may_order_by_ann, verb};

/// Takes the quick look at a text, and parses it.
///
/// The quick look may take a statement for more than it is, and never for less. So the kind of
/// every statement that can be parsed is recognised, and every query for neighbours is suspected.
///
/// # Panics
/// If that does not hold.
pub fn recognition(bytes: &[u8]) {
    let seen = verb(bytes);
    let may_order = may_order_by_ann(bytes);
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let Ok(parsed) = parse_statement(text) else {
        return;
    };
    let expected = match &parsed.statement {
        Statement::Select(select) => {
            let is_ann = |ordering: &Ordering| matches!(ordering, Ordering::Ann { .. });
            assert!(may_order || !select.order_by.iter().any(is_ann));
            Verb::Select
        }
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_) => Verb::Write,
        Statement::Use { .. } => Verb::Use,
        Statement::Truncate(_) => Verb::Truncate,
        Statement::CreateKeyspace(_)
        | Statement::CreateType(_)
        | Statement::CreateTable(_)
        | Statement::CreateIndex(_) => Verb::Create,
        Statement::AlterKeyspace { .. } | Statement::AlterType(_) | Statement::AlterTable(_) => {
            Verb::Alter
        }
        Statement::DropKeyspace { .. }
        | Statement::DropType { .. }
        | Statement::DropTable { .. }
        | Statement::DropIndex { .. }
        | Statement::DropAbsent { .. } => Verb::Drop,
        Statement::Describe(_) => Verb::Describe,
        // The verbs of statements about roles are not distinguished.
        Statement::Role(_) => seen,
        // Its first words are in the text that it holds.
        Statement::Unsupported(words) => verb(words.as_bytes()),
    };
    assert_eq!(seen, expected);
}
