//! The subject of a statement, by what is written in it: the audit log also has statements that
//! name what does not exist.

use std::collections::HashSet;

use cql::ast::{AbsentKind, BatchEntry, RoleStatement, Statement, TableName};

use super::names::cut;
use super::{EventCategory, RoleStatementTerms};

/// The most places of a batch that are logged.
const PLACES_MAX: usize = 64;

/// The category and the type of a statement, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatementSubject {
    pub category: EventCategory,
    /// The type, in the words of Cassandra.
    pub kind: &'static str,
    /// The places, at least one. A batch may be about several, of which [`PLACES_MAX`] are logged:
    /// one without keyspace and table replaces the others.
    pub places: Vec<LoggedTarget>,
    /// The terms of a statement about roles.
    pub terms: Option<Box<RoleStatementTerms>>,
}

/// A keyspace or a table, by names that may be cut. Without either it is no place in particular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedTarget {
    /// The keyspace; `None` if neither the statement nor the connection names one.
    pub keyspace: Option<String>,
    /// The table; `None` if it is the keyspace itself, or something else in it.
    pub table: Option<String>,
}

impl LoggedTarget {
    fn new(keyspace: Option<&str>, table: Option<&str>) -> LoggedTarget {
        let owned = |name: &str| cut(name).to_owned();
        LoggedTarget {
            keyspace: keyspace.map(owned),
            table: table.map(owned),
        }
    }
}

/// The category of a statement.
pub(crate) fn category_of(statement: &Statement) -> EventCategory {
    match statement {
        Statement::Select(_) => EventCategory::Query,
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_) => EventCategory::Dml,
        Statement::Use { .. } | Statement::Describe(_) => EventCategory::Other,
        Statement::Role(_) => EventCategory::Dcl,
        Statement::Unsupported(_) => EventCategory::Error,
        _ => EventCategory::Ddl,
    }
}

impl StatementSubject {
    /// The subject of a text that is no statement.
    pub fn unreadable() -> StatementSubject {
        StatementSubject {
            category: EventCategory::Error,
            kind: "REQUEST_FAILURE",
            places: vec![LoggedTarget::default()],
            terms: None,
        }
    }

    /// The subject of a statement that is read with a keyspace in use.
    pub fn of(statement: &Statement, in_use: Option<&str>) -> StatementSubject {
        let on = |kind, table: &TableName| {
            let keyspace = table.keyspace.as_deref().or(in_use);
            (kind, vec![LoggedTarget::new(keyspace, Some(&table.name))])
        };
        let within = |kind, keyspace: Option<&str>| {
            (kind, vec![LoggedTarget::new(keyspace.or(in_use), None)])
        };
        let nowhere = |kind| (kind, vec![LoggedTarget::default()]);
        let (kind, places) = match statement {
            Statement::Select(select) => on("SELECT", &select.table),
            Statement::Insert(insert) => on("UPDATE", &insert.table),
            Statement::Update(update) => on("UPDATE", &update.table),
            Statement::Delete(delete) => on("DELETE", &delete.table),
            Statement::Batch(batch) => ("BATCH", places(&batch.statements, in_use)),
            Statement::Truncate(truncate) => on("TRUNCATE", &truncate.table),
            Statement::CreateKeyspace(create) => within("CREATE_KEYSPACE", Some(&create.name)),
            Statement::AlterKeyspace { name, .. } => within("ALTER_KEYSPACE", Some(name)),
            Statement::DropKeyspace { name, .. } => within("DROP_KEYSPACE", Some(name)),
            Statement::CreateTable(create) => on("CREATE_TABLE", &create.table),
            Statement::AlterTable(alter) => on("ALTER_TABLE", &alter.table),
            Statement::DropTable { table, .. } => on("DROP_TABLE", table),
            Statement::CreateType(create) => within("CREATE_TYPE", create.name.keyspace.as_deref()),
            Statement::AlterType(alter) => within("ALTER_TYPE", alter.name.keyspace.as_deref()),
            Statement::DropType { name, .. } => within("DROP_TYPE", name.keyspace.as_deref()),
            Statement::CreateIndex(create) => on("CREATE_INDEX", &create.table),
            Statement::DropIndex { keyspace, .. } => within("DROP_INDEX", keyspace.as_deref()),
            Statement::DropAbsent { kind, keyspace } => {
                let kind = match kind {
                    AbsentKind::Function => "DROP_FUNCTION",
                    AbsentKind::Aggregate => "DROP_AGGREGATE",
                    AbsentKind::Trigger => "DROP_TRIGGER",
                    AbsentKind::MaterializedView => "DROP_VIEW",
                };
                within(kind, keyspace.as_deref())
            }
            Statement::Use { keyspace } => within("USE_KEYSPACE", Some(keyspace)),
            Statement::Describe(_) => nowhere("DESCRIBE"),
            Statement::Role(statement) => nowhere(of_role(statement)),
            Statement::Unsupported(_) => return StatementSubject::unreadable(),
        };
        let terms = match statement {
            Statement::Role(statement) => Some(Box::new(RoleStatementTerms::of(statement, in_use))),
            _ => None,
        };
        StatementSubject {
            category: category_of(statement),
            kind,
            places,
            terms,
        }
    }
}

/// The tables of a batch, each once.
fn places(batch: &[BatchEntry], in_use: Option<&str>) -> Vec<LoggedTarget> {
    let mut seen = HashSet::new();
    let mut places = Vec::new();
    for entry in batch {
        let table = match entry {
            BatchEntry::Insert(insert) => &insert.table,
            BatchEntry::Update(update) => &update.table,
            BatchEntry::Delete(delete) => &delete.table,
        };
        let place = (table.keyspace.as_deref().or(in_use), table.name.as_str());
        if !seen.insert(place) {
            continue;
        }
        if places.len() == PLACES_MAX {
            places.push(LoggedTarget::default());
            break;
        }
        places.push(LoggedTarget::new(place.0, Some(place.1)));
    }
    places
}

fn of_role(statement: &RoleStatement) -> &'static str {
    match statement {
        RoleStatement::Create { .. } => "CREATE_ROLE",
        RoleStatement::Alter { .. } => "ALTER_ROLE",
        RoleStatement::Drop { .. } => "DROP_ROLE",
        RoleStatement::GrantRole { .. } | RoleStatement::Grant { .. } => "GRANT",
        RoleStatement::RevokeRole { .. } | RoleStatement::Revoke { .. } => "REVOKE",
        RoleStatement::ListRoles { .. } => "LIST_ROLES",
        RoleStatement::ListUsers => "LIST_USERS",
        RoleStatement::ListPermissions { .. } => "LIST_PERMISSIONS",
        RoleStatement::AddIdentity { .. } => "ADD_IDENTITY",
        RoleStatement::DropIdentity { .. } => "DROP_IDENTITY",
    }
}

#[cfg(test)]
mod tests {
    use cql::parser::parse_statement;

    use super::*;

    /// Category, type and places (`keyspace.table`) of a statement with the keyspace `used` in use.
    fn describe(text: &str) -> (EventCategory, &'static str, String) {
        let parsed = parse_statement(text).unwrap();
        let subject = StatementSubject::of(&parsed.statement, Some("used"));
        let places = subject.places.iter().map(|place| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{}.{}", part(&place.keyspace), part(&place.table))
        });
        let places = places.collect::<Vec<_>>().join(" ");
        (subject.category, subject.kind, places)
    }

    #[test]
    fn statements_have_cassandras_types_and_their_places() {
        use EventCategory::{Dcl, Ddl, Dml, Error, Other, Query};
        for (text, category, kind, places) in [
            ("SELECT * FROM shop.t", Query, "SELECT", "shop.t"),
            ("INSERT INTO t (a) VALUES (1)", Dml, "UPDATE", "used.t"),
            ("DELETE FROM t WHERE a = 1", Dml, "DELETE", "used.t"),
            (
                "BEGIN BATCH UPDATE t SET b = 1 WHERE a = 1; INSERT INTO s.u (a) VALUES (1); \
                 DELETE FROM t WHERE a = 2; APPLY BATCH",
                Dml,
                "BATCH",
                "used.t s.u",
            ),
            ("TRUNCATE t", Ddl, "TRUNCATE", "used.t"),
            ("DROP KEYSPACE shop", Ddl, "DROP_KEYSPACE", "shop."),
            ("CREATE INDEX ON shop.t (a)", Ddl, "CREATE_INDEX", "shop.t"),
            ("DROP INDEX i", Ddl, "DROP_INDEX", "used."),
            ("DROP TYPE shop.address", Ddl, "DROP_TYPE", "shop."),
            ("DROP FUNCTION IF EXISTS f", Ddl, "DROP_FUNCTION", "used."),
            (
                "DROP MATERIALIZED VIEW IF EXISTS shop.v",
                Ddl,
                "DROP_VIEW",
                "shop.",
            ),
            ("USE shop", Other, "USE_KEYSPACE", "shop."),
            ("DESCRIBE TABLES", Other, "DESCRIBE", "."),
            ("GRANT SELECT ON shop.t TO app", Dcl, "GRANT", "."),
            ("ALTER USER app SUPERUSER", Dcl, "ALTER_ROLE", "."),
            ("CREATE TRIGGER x", Error, "REQUEST_FAILURE", "."),
        ] {
            assert_eq!(
                describe(text),
                (category, kind, places.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_batch_about_many_tables_tells_of_a_few_and_that_there_are_others() {
        let batch = |tables: usize| {
            let deletes = (0..tables).map(|table| format!("DELETE FROM s.t{table} WHERE a = 1; "));
            let deletes = deletes.collect::<String>();
            let parsed = parse_statement(&format!("BEGIN BATCH {deletes}{deletes}APPLY BATCH"));
            StatementSubject::of(&parsed.unwrap().statement, None).places
        };
        let all = batch(PLACES_MAX);
        assert_eq!(all.len(), PLACES_MAX);
        assert!(all.iter().all(|place| place.table.is_some()));
        for tables in [PLACES_MAX + 1, 20_000] {
            let some = batch(tables);
            assert_eq!(some[..PLACES_MAX], all);
            assert_eq!(some[PLACES_MAX..], [LoggedTarget::default()]);
        }
    }
}
