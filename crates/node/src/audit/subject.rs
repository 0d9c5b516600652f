//! The subject of a statement, by what is written in it: the audit log tells also of statements
//! that name what is not there.

use cql::ast::{BatchEntry, RoleStatement, Statement, TableName};

use super::Category;

/// The category and the type of a statement, and the places that it is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub category: Category,
    /// The type, in the words of Cassandra.
    pub kind: &'static str,
    /// A batch may be about several, and a statement about roles is about none.
    pub places: Vec<Place>,
}

/// A keyspace or a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The keyspace; `None` if neither the statement nor the connection names one.
    pub keyspace: Option<String>,
    /// The table; `None` if it is the keyspace itself, or something else in it.
    pub table: Option<String>,
}

impl Place {
    /// The table of a statement that is read with a keyspace in use.
    fn table(name: &TableName, in_use: Option<&str>) -> Place {
        Place {
            table: Some(name.name.clone()),
            ..Place::in_keyspace(name.keyspace.as_deref(), in_use)
        }
    }

    fn in_keyspace(named: Option<&str>, in_use: Option<&str>) -> Place {
        Place {
            keyspace: named.or(in_use).map(str::to_owned),
            table: None,
        }
    }
}

impl Subject {
    /// The subject of a text that is no statement.
    pub fn unreadable() -> Subject {
        Subject::somewhere(Category::Error, "REQUEST_FAILURE", [])
    }

    /// The subject of a statement that is read with a keyspace in use.
    pub fn of(statement: &Statement, in_use: Option<&str>) -> Subject {
        use Category::{Ddl, Dml, Other, Query};
        let on = |category, kind, table: &TableName| {
            Subject::somewhere(category, kind, [Place::table(table, in_use)])
        };
        let within = |kind, keyspace: Option<&str>| {
            Subject::somewhere(Ddl, kind, [Place::in_keyspace(keyspace, in_use)])
        };
        match statement {
            Statement::Select(select) => on(Query, "SELECT", &select.table),
            Statement::Insert(insert) => on(Dml, "UPDATE", &insert.table),
            Statement::Update(update) => on(Dml, "UPDATE", &update.table),
            Statement::Delete(delete) => on(Dml, "DELETE", &delete.table),
            Statement::Batch(batch) => {
                let tables = batch.statements.iter().map(|entry| match entry {
                    BatchEntry::Insert(insert) => &insert.table,
                    BatchEntry::Update(update) => &update.table,
                    BatchEntry::Delete(delete) => &delete.table,
                });
                Subject::of_batch(tables, in_use)
            }
            Statement::Truncate(truncate) => on(Ddl, "TRUNCATE", &truncate.table),
            Statement::CreateKeyspace(create) => within("CREATE_KEYSPACE", Some(&create.name)),
            Statement::AlterKeyspace { name, .. } => within("ALTER_KEYSPACE", Some(name)),
            Statement::DropKeyspace { name, .. } => within("DROP_KEYSPACE", Some(name)),
            Statement::CreateTable(create) => on(Ddl, "CREATE_TABLE", &create.table),
            Statement::AlterTable(alter) => on(Ddl, "ALTER_TABLE", &alter.table),
            Statement::DropTable { table, .. } => on(Ddl, "DROP_TABLE", table),
            Statement::CreateType(create) => within("CREATE_TYPE", create.name.keyspace.as_deref()),
            Statement::AlterType(alter) => within("ALTER_TYPE", alter.name.keyspace.as_deref()),
            Statement::DropType { name, .. } => within("DROP_TYPE", name.keyspace.as_deref()),
            Statement::CreateIndex(create) => on(Ddl, "CREATE_INDEX", &create.table),
            Statement::DropIndex { keyspace, .. } => within("DROP_INDEX", keyspace.as_deref()),
            Statement::Use { keyspace } => {
                let place = Place::in_keyspace(Some(keyspace), None);
                Subject::somewhere(Other, "USE_KEYSPACE", [place])
            }
            Statement::Describe(_) => Subject::somewhere(Other, "DESCRIBE", []),
            Statement::Role(statement) => Subject::somewhere(Category::Dcl, of_role(statement), []),
            Statement::Unsupported(_) => Subject::unreadable(),
        }
    }

    /// The subject of a batch on these tables.
    fn of_batch<'a>(tables: impl Iterator<Item = &'a TableName>, in_use: Option<&str>) -> Subject {
        let mut places: Vec<Place> = Vec::new();
        for place in tables.map(|table| Place::table(table, in_use)) {
            // Most batches are about a few tables.
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Subject {
            category: Category::Dml,
            kind: "BATCH",
            places,
        }
    }

    fn somewhere(category: Category, kind: &'static str, places: impl Into<Vec<Place>>) -> Subject {
        Subject {
            category,
            kind,
            places: places.into(),
        }
    }
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
    fn told(text: &str) -> (Category, &'static str, String) {
        let parsed = parse_statement(text).unwrap();
        let subject = Subject::of(&parsed.statement, Some("used"));
        let places = subject.places.iter().map(|place| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{}.{}", part(&place.keyspace), part(&place.table))
        });
        let places = places.collect::<Vec<_>>().join(" ");
        (subject.category, subject.kind, places)
    }

    #[test]
    fn statements_have_cassandras_types_and_their_places() {
        use Category::{Dcl, Ddl, Dml, Error, Other, Query};
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
            ("USE shop", Other, "USE_KEYSPACE", "shop."),
            ("DESCRIBE TABLES", Other, "DESCRIBE", ""),
            ("GRANT SELECT ON shop.t TO app", Dcl, "GRANT", ""),
            ("ALTER USER app SUPERUSER", Dcl, "ALTER_ROLE", ""),
            ("CREATE TRIGGER x", Error, "REQUEST_FAILURE", ""),
        ] {
            assert_eq!(told(text), (category, kind, places.to_owned()), "{text}");
        }
    }
}
