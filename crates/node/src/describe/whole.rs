//! Whole keyspaces as statements, for those who have a catalog and no database around it: backups
//! and restores.

use schema::{Catalog, Keyspace};

use super::{create, elements};

/// A keyspace with all that is in it, as one text of CQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceText {
    /// The name of the keyspace.
    pub name: String,
    /// The statements that create it, in an order in which they can be executed.
    pub text: String,
}

/// The kind of thing that a statement of [`keyspace_statements`] creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaObject {
    /// The keyspace itself.
    Keyspace,
    /// A user type.
    UserType,
    /// A table.
    Table,
    /// An index of any class.
    Index,
}

/// A statement that creates a part of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaStatement {
    /// The kind of thing that it creates.
    pub object: SchemaObject,
    /// The name of that.
    pub name: String,
    /// The table of an index; else the name again.
    pub table: String,
    /// The statement.
    pub statement: String,
}

/// The user's keyspaces in the order of their names.
pub fn keyspaces_as_cql(catalog: &Catalog) -> Vec<KeyspaceText> {
    let keyspaces = catalog.keyspaces.values();
    keyspaces
        .map(|keyspace| {
            let statements = keyspace_statements(keyspace).into_iter();
            let statements: Vec<String> = statements.map(|it| it.statement).collect();
            KeyspaceText {
                name: keyspace.name.clone(),
                text: statements.join("\n\n") + "\n",
            }
        })
        .collect()
}

/// The statements that create a keyspace, its types, its tables and their indexes, in this order.
/// CDC logs come with their tables.
pub fn keyspace_statements(keyspace: &Keyspace) -> Vec<SchemaStatement> {
    let of = |object, name: &str, table: &str, statement| SchemaStatement {
        object,
        name: name.to_owned(),
        table: table.to_owned(),
        statement,
    };
    let name = &keyspace.name;
    let made = create::keyspace(keyspace);
    let mut statements = vec![of(SchemaObject::Keyspace, name, name, made)];
    for definition in keyspace.types_in_order() {
        let (name, made) = (&definition.name, create::user_type(definition));
        statements.push(of(SchemaObject::UserType, name, name, made));
    }
    let tables = elements::by_name(&keyspace.tables);
    let tables: Vec<_> = tables.filter(|table| table.log_of.is_none()).collect();
    for table in &tables {
        let made = create::table(table, false);
        statements.push(of(SchemaObject::Table, &table.name, &table.name, made));
    }
    for table in tables {
        let indexes = elements::indexes(table).into_iter();
        let indexes = indexes.map(|(name, made)| of(SchemaObject::Index, name, &table.name, made));
        statements.extend(indexes);
    }
    statements
}
