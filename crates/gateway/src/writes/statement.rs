//! Statements that write to logged tables. Each is read once, and may be executed often.

use std::sync::Arc;

use cql::ast::{BatchEntry, Statement, TableName};
use cql::error::CqlError;
use cql::parser::{ChangedData, changed, changed_by_batch, parse_statement};
use cql::wire::{BoundValue, MarkerValues};

use super::hint::WriteHint;
use super::keys;
use super::plan::{LoggedWritePlan, UnplannableWrite};
use super::terms::unreadable;
use crate::catalog::{IndexCatalogSnapshot, LoggedTable};
use crate::recognise::{self, StatementVerb};

/// A statement that writes to logged tables.
#[derive(Debug)]
pub(crate) struct LoggedWrite {
    /// The plans, one for each statement of a logged table. A text may be a batch of several
    /// statements.
    plans: Vec<LoggedWritePlan>,
    /// Whether the text is a batch.
    is_batch: bool,
    /// Whether every table in the text, logged or not, is named with its keyspace.
    is_qualified: bool,
    /// The names of the bind markers, `None` for `?`.
    markers: Vec<Option<String>>,
    /// The beginning of the text, as the log of slow statements shows it.
    beginning: Arc<str>,
}

/// Reads a statement; `None` if it writes to no logged table, or if Cassandra refuses it anyway.
/// Names without a keyspace are in `keyspace`.
///
/// Of a statement for another table only the first words are read.
///
/// # Errors
/// If the statement writes to a logged table, and the gateway cannot know which rows. Also if it
/// begins like a write and names a logged table, and the gateway cannot tell which table it writes
/// to.
pub(crate) fn read(
    text: &str,
    keyspace: Option<&str>,
    snapshot: &IndexCatalogSnapshot,
) -> Result<Option<LoggedWrite>, CqlError> {
    let logged = |table: &TableName| -> Option<Arc<LoggedTable>> {
        let keyspace = table.keyspace.as_deref().or(keyspace)?;
        snapshot.logged_table(keyspace, &table.name)
    };
    let of = match changed(text) {
        Some(ChangedData::Rows(table)) => match logged(&table) {
            Some(table) => format!("a write to {}.{}", table.keyspace, table.name),
            None => return Ok(None),
        },
        // The batch writes to no logged table, so only the node has to understand it.
        Some(ChangedData::Batch) if !batch_is_logged(text, keyspace, snapshot) => return Ok(None),
        Some(ChangedData::Batch) => "a batch".to_owned(),
        None if is_of_no_table(text, snapshot) => return Err(of_no_table()),
        Some(ChangedData::All(_)) | None => return Ok(None),
    };
    let parsed = parse_statement(text).map_err(|error| CqlError {
        message: format!(
            "{} (the gateway must understand {of}, as its tables may have a vector index)",
            error.message
        ),
        ..error
    })?;
    let is_qualified = parsed.statement.is_qualified();
    let (entries, is_batch) = match parsed.statement {
        Statement::Insert(insert) => (vec![BatchEntry::Insert(insert)], false),
        Statement::Update(update) => (vec![BatchEntry::Update(update)], false),
        Statement::Delete(delete) => (vec![BatchEntry::Delete(delete)], false),
        Statement::Batch(batch) => (batch.statements, true),
        _ => return Ok(None),
    };
    let mut plans = Vec::new();
    for entry in &entries {
        let plan = match entry {
            BatchEntry::Insert(insert) => {
                logged(&insert.table).map(|table| LoggedWritePlan::of_insert(insert, table))
            }
            BatchEntry::Update(update) => {
                logged(&update.table).map(|table| LoggedWritePlan::of_update(update, table))
            }
            BatchEntry::Delete(delete) => {
                logged(&delete.table).map(|table| LoggedWritePlan::of_delete(delete, table))
            }
        };
        match plan {
            Some(Ok(plan)) => plans.push(plan),
            // Cassandra refuses a batch as a whole, so none of its other statements needs a log
            // row.
            Some(Err(UnplannableWrite::Refused)) => return Ok(None),
            Some(Err(UnplannableWrite::Unreadable(error))) => return Err(error),
            None => {}
        }
    }
    Ok((!plans.is_empty()).then_some(LoggedWrite {
        plans,
        is_batch,
        is_qualified,
        markers: parsed.markers,
        beginning: slow_statements::beginning(text).into(),
    }))
}

/// Whether a batch may write to a logged table. The statements for other tables need not be
/// understood here.
fn batch_is_logged(text: &str, keyspace: Option<&str>, snapshot: &IndexCatalogSnapshot) -> bool {
    if !snapshot.names_logged_table(text) {
        return false;
    }
    changed_by_batch(text).is_none_or(|tables| {
        tables.iter().any(|table| {
            let keyspace = table.keyspace.as_deref().or(keyspace);
            keyspace.is_some_and(|keyspace| snapshot.logged_table(keyspace, &table.name).is_some())
        })
    })
}

/// Whether a statement begins like a write and names a logged table somewhere, but does not show
/// which table it changes. A statement that names no logged table goes to the node.
fn is_of_no_table(text: &str, snapshot: &IndexCatalogSnapshot) -> bool {
    recognise::verb(text.as_bytes()) == StatementVerb::Write && snapshot.names_logged_table(text)
}

/// The error for a statement that does not show which table it changes. It is not certain what
/// Cassandra makes of it, so it does not pass.
fn of_no_table() -> CqlError {
    CqlError::syntax(
        "the gateway cannot tell which table this statement changes, and must, as some tables have a vector index: \
         name the table right after INSERT INTO, UPDATE, DELETE ... FROM or TRUNCATE",
    )
}

/// The logged table that a TRUNCATE empties; `None` if it empties another one.
///
/// # Errors
/// If the text names a logged table, but does not show which table is truncated.
pub(crate) fn truncated(
    text: &str,
    keyspace: Option<&str>,
    snapshot: &IndexCatalogSnapshot,
) -> Result<Option<Arc<LoggedTable>>, CqlError> {
    let Some(ChangedData::All(table)) = changed(text) else {
        return match snapshot.names_logged_table(text) {
            true => Err(of_no_table()),
            false => Ok(None),
        };
    };
    let keyspace = table.keyspace.as_deref().or(keyspace);
    Ok(keyspace.and_then(|keyspace| snapshot.logged_table(keyspace, &table.name)))
}

/// Whether a statement may write to a logged table, by its first words.
pub(crate) fn is_logged(
    text: &str,
    keyspace: Option<&str>,
    snapshot: &IndexCatalogSnapshot,
) -> bool {
    match changed(text) {
        Some(ChangedData::Rows(table)) => table
            .keyspace
            .as_deref()
            .or(keyspace)
            .is_some_and(|keyspace| snapshot.logged_table(keyspace, &table.name).is_some()),
        Some(ChangedData::Batch) => batch_is_logged(text, keyspace, snapshot),
        Some(ChangedData::All(_)) => false,
        None => is_of_no_table(text, snapshot),
    }
}

impl LoggedWrite {
    /// Whether the statement can be one of several in a BATCH for several tables.
    pub(super) fn can_share_a_batch(&self) -> bool {
        // Cassandra takes no batch within a batch, and no condition next to another table.
        !self.is_batch && self.plans.iter().all(|plan| !plan.conditional)
    }

    /// The beginning of the text, as the log of slow statements shows it.
    pub(super) fn beginning(&self) -> Arc<str> {
        self.beginning.clone()
    }

    /// Whether the statement means the same in any keyspace.
    pub(crate) fn is_qualified(&self) -> bool {
        self.is_qualified
    }

    /// Whether the result is the same if the statement is carried out twice.
    pub(super) fn is_repeatable(&self) -> bool {
        self.plans.iter().all(|plan| plan.is_repeatable)
    }

    /// Whether the statement must be written again for each execution, with its changing calls
    /// evaluated.
    pub(crate) fn has_changing_calls(&self) -> bool {
        self.plans.iter().any(LoggedWritePlan::has_changing_calls)
    }

    /// The hints of one execution, in a request that needs `before` hints already.
    pub(super) fn hints(
        &self,
        bound: &[BoundValue],
        before: usize,
    ) -> Result<Vec<WriteHint>, UnplannableWrite> {
        let mut hints = Vec::new();
        for plan in &self.plans {
            hints.extend(keys::hints(plan, bound, before + hints.len())?);
        }
        Ok(hints)
    }

    /// The values of the bind markers, in the order of the markers. `names` are those that the node
    /// gave the markers when it prepared the statement. Without `names`, the names in the text are
    /// used.
    pub(super) fn positional(
        &self,
        values: &MarkerValues,
        names: Option<&[Arc<str>]>,
    ) -> Result<Vec<BoundValue>, UnplannableWrite> {
        let named = match values {
            // Such values are in the order of the markers already.
            MarkerValues::Positional(values) => return Ok(values.clone()),
            MarkerValues::Named(named) => named,
        };
        let name_of = |position: usize, own: &Option<String>| -> Option<String> {
            match names {
                // Cassandra names a `?` after its column. The text does not show that name, but the
                // answer to PREPARE does.
                Some(names) => names.get(position).map(|name| name.as_ref().to_owned()),
                None => own.clone(),
            }
        };
        self.markers
            .iter()
            .enumerate()
            .map(|(position, own)| {
                // Which column a `?` of an unprepared statement belongs to, only the node knows.
                let name = name_of(position, own).ok_or_else(|| {
                    unreadable(
                        "values with names for markers without names are not supported on a table with a vector \
                         index: write :name, or bind by position",
                    )
                })?;
                // If a name comes twice, Cassandra takes the first value.
                let value = named.iter().find(|(given, _)| *given == name);
                // For a missing value Cassandra has an error of its own, so the request goes there
                // as it came.
                value.map(|(_, value)| value.clone()).ok_or(UnplannableWrite::Refused)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::test_tables::{events, products};
    use super::*;

    fn snapshot() -> IndexCatalogSnapshot {
        IndexCatalogSnapshot::new([Arc::new(products()), Arc::new(events())], [])
    }

    fn tables(text: &str, keyspace: Option<&str>) -> Result<Option<Vec<String>>, CqlError> {
        let write = read(text, keyspace, &snapshot())?;
        Ok(write.map(|write| {
            let names = write.plans.iter().map(|plan| plan.table.name.clone());
            names.collect()
        }))
    }

    #[test]
    fn only_logged_tables_are_recognised_and_in_their_keyspace() {
        let insert = "INSERT INTO products (id) VALUES (1)";
        let expected = Ok(Some(vec!["products".to_owned()]));
        assert_eq!(tables(insert, Some("shop")), expected);
        assert_eq!(tables(insert, Some("other")), Ok(None));
        assert_eq!(tables(insert, None), Ok(None));
        let qualified = "INSERT INTO Shop.\"products\" (id) VALUES (1)";
        assert_eq!(tables(qualified, Some("other")), expected);
        assert_eq!(tables("SELECT * FROM shop.products", None), Ok(None));
        assert_eq!(
            tables("UPDATE shop.others SET not a statement", None),
            Ok(None)
        );
        assert_eq!(
            tables("DELETE FROM shop.products WHERE id = null", None),
            expected
        );
    }

    #[test]
    fn a_batch_that_names_no_logged_table_is_for_the_node_to_understand() {
        let batch = |table: &str| format!("BEGIN BATCH UPDATE {table} SET what APPLY BATCH");
        assert_eq!(tables(&batch("others"), Some("shop")), Ok(None));
        // The name of a logged table may be anywhere, as in a string or as a column name.
        let others = "BEGIN BATCH UPDATE others SET a = 1 * 2, b = 'products' WHERE products = {zip: 1}; APPLY BATCH";
        assert_eq!(tables(others, Some("shop")), Ok(None));
        assert!(!is_logged(others, Some("shop"), &snapshot()));
        assert_eq!(tables(&batch("other.products"), Some("shop")), Ok(None));
        for table in ["products", "PRODUCTS", "shop.products", "\"products\""] {
            let error = tables(&batch(table), Some("shop")).unwrap_err();
            assert!(error.message.contains("must understand a batch"), "{error}");
        }
    }

    #[test]
    fn a_batch_is_read_for_all_its_statements() {
        let batch = "BEGIN UNLOGGED BATCH INSERT INTO others (id) VALUES (?); \
                     UPDATE events SET v = ? WHERE tenant = 1 AND day = 1 AND hour = 1 AND seq = ?; \
                     DELETE FROM products WHERE id = ? APPLY BATCH";
        let write = read(batch, Some("shop"), &snapshot()).unwrap().unwrap();
        assert!(!write.can_share_a_batch());
        let int = |number: i32| BoundValue::Value(Bytes::copy_from_slice(&number.to_be_bytes()));
        let hints = write.hints(&[int(1), int(2), int(3), int(4)], 0).unwrap();
        let last = |hint: &WriteHint| {
            hint.partition
                .iter()
                .chain(&hint.clustering)
                .last()
                .cloned()
        };
        let last: Vec<_> = hints.iter().filter_map(last).collect();
        assert_eq!(last, [&[0u8, 0, 0, 3][..], &[0, 0, 0, 4]]);
        let others = "BEGIN BATCH INSERT INTO others (id) VALUES (1); APPLY BATCH";
        assert_eq!(tables(others, Some("shop")), Ok(None));
    }

    #[test]
    fn values_and_fields_of_user_types_are_understood() {
        let expected = Ok(Some(vec!["products".to_owned()]));
        for text in [
            "INSERT INTO products (id, u) VALUES (1, {street: 'a', zip: ?, \"Inner\": {f: now()}})",
            "INSERT INTO products (id, m) VALUES (1, {'a': {street: 'b'}, 'c': {street: :street}})",
            "UPDATE products SET u.zip = 7, u.\"Street\" = ? WHERE id = 1 IF u.zip = 7 AND u.street IN ('a', ?)",
            "DELETE u.zip, name FROM products WHERE id = 1",
            "BEGIN BATCH UPDATE products SET u = {zip: 1} WHERE id = 1; \
             INSERT INTO others (id, u) VALUES (1, {zip:?}); APPLY BATCH",
        ] {
            assert_eq!(tables(text, Some("shop")), expected, "{text}");
        }
        let text = "UPDATE products SET u.zip = ?, m = {a: ?} WHERE id = ?";
        let write = read(text, Some("shop"), &snapshot()).unwrap().unwrap();
        assert!(write.is_repeatable() && !write.has_changing_calls());
        let int = |number: i32| BoundValue::Value(Bytes::copy_from_slice(&number.to_be_bytes()));
        let [hint] = &write.hints(&[int(1), int(2), int(3)], 0).unwrap()[..] else {
            panic!("one row is written");
        };
        assert_eq!(hint.partition, [&[0u8, 0, 0, 3][..]]);
    }

    #[test]
    fn a_write_that_is_not_understood_is_refused_with_its_reason() {
        let unfinished = "UPDATE shop.products SET name = 1 * WHERE id = 1";
        let error = tables(unfinished, None).unwrap_err();
        assert!(
            error.message.contains("a write to shop.products"),
            "{error}"
        );
        let error = tables("INSERT INTO shop.products JSON '{}'", None).unwrap_err();
        assert!(
            error.message.contains("INSERT JSON is not supported"),
            "{error}"
        );
        // Cassandra gives a better reason for its refusal.
        assert_eq!(
            tables("UPDATE shop.events SET v = 1 WHERE seq = 1", None),
            Ok(None)
        );
    }

    #[test]
    fn a_comment_ends_with_its_line_however_that_ends() {
        for end in ["\n", "\r", "\r\n"] {
            let text = format!("-- x{end}INSERT INTO shop.products (id) VALUES (1)");
            let expected = Ok(Some(vec!["products".to_owned()]));
            assert_eq!(tables(&text, None), expected, "{end:?}");
        }
    }

    #[test]
    fn a_write_whose_table_cannot_be_determined_is_refused() {
        for text in [
            "INSERT INTO 'products' (id) VALUES (1)",
            "UPDATE ? SET name = 'products'",
            "DELETE name OF PRODUCTS",
            "insert/* products",
        ] {
            assert!(tables(text, Some("shop")).is_err(), "{text}");
            assert!(is_logged(text, Some("shop"), &snapshot()), "{text}");
        }
        // A statement that names no logged table goes to the node, which refuses it.
        for text in [
            "SELECT name FROM products",
            "INSERTED products",
            "",
            "/* DELETE products",
            "INSERT t (k) VALUES (1)",
            "DELETE name",
        ] {
            assert_eq!(tables(text, Some("shop")), Ok(None), "{text}");
            assert!(!is_logged(text, Some("shop"), &snapshot()), "{text}");
        }
    }

    #[test]
    fn named_values_are_put_in_order() {
        let text = "INSERT INTO shop.products (id, name) VALUES (:id, :name)";
        let write = read(text, None, &snapshot()).unwrap().unwrap();
        let value = |text: &'static str| BoundValue::Value(Bytes::from_static(text.as_bytes()));
        let named = MarkerValues::Named(vec![
            ("name".to_owned(), value("n")),
            ("more".to_owned(), value("m")),
            ("id".to_owned(), value("first")),
            ("id".to_owned(), value("last")),
        ]);
        let expected = Ok(vec![value("first"), value("n")]);
        assert_eq!(write.positional(&named, None), expected);
        assert_eq!(
            write.positional(&MarkerValues::Positional(vec![value("x")]), None),
            Ok(vec![value("x")])
        );
        let missing = MarkerValues::Named(vec![("id".to_owned(), value("x"))]);
        assert_eq!(
            write.positional(&missing, None),
            Err(UnplannableWrite::Refused)
        );

        let text = "INSERT INTO shop.products (id, name) VALUES (?, ?)";
        let write = read(text, None, &snapshot()).unwrap().unwrap();
        assert!(matches!(
            write.positional(&named, None),
            Err(UnplannableWrite::Unreadable(_))
        ));
        let names = ["id".into(), "name".into()];
        assert_eq!(write.positional(&named, Some(&names)), expected);
    }
}
