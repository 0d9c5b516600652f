//! The user types of a keyspace, and who uses them.

use std::collections::BTreeSet;
use std::sync::Arc;

use value::{CqlType, UserType};

use super::{Catalog, ColumnKind, Keyspace, Table};

impl Catalog {
    /// Adds a user type, or replaces the one of the same name wherever it is used: in other types
    /// and in the columns of tables.
    ///
    /// # Panics
    /// If the keyspace does not exist: the caller has checked.
    pub fn put_type(&mut self, definition: UserType) {
        let keyspace = self
            .keyspaces
            .get_mut(&definition.keyspace)
            .expect("the keyspace of a user type exists");
        Arc::make_mut(keyspace).put_type(Arc::new(definition));
    }

    /// Removes a user type. The caller has checked that nothing uses it.
    pub fn remove_type(&mut self, keyspace: &str, name: &str) {
        if let Some(keyspace) = self.keyspaces.get_mut(keyspace) {
            Arc::make_mut(keyspace).types.remove(name);
        }
    }
}

impl Keyspace {
    fn put_type(&mut self, definition: Arc<UserType>) {
        let replaces = self.types.contains_key(&definition.name);
        if replaces {
            for known in self.types.values_mut() {
                if known.field_types.iter().any(|part| part.uses(&definition)) {
                    *known = Arc::new(known.with(&definition));
                }
            }
            // The identity of a column stays, and so do the cells in it: a value of a type holds
            // fewer fields than the type, but never others.
            for table in self.tables.values_mut() {
                if table.uses(&definition) {
                    for column in &mut Arc::make_mut(table).columns {
                        column.cql_type = column.cql_type.with(&definition);
                    }
                }
            }
        }
        self.types.insert(definition.name.clone(), definition);
    }

    /// The user types, each after those that it uses, and else by name.
    pub fn types_in_order(&self) -> Vec<&Arc<UserType>> {
        let mut ordered = Vec::with_capacity(self.types.len());
        let mut placed = BTreeSet::new();
        for name in self.types.keys() {
            self.place(name, &mut placed, &mut ordered);
        }
        ordered
    }

    fn place<'k>(
        &'k self,
        name: &'k str,
        placed: &mut BTreeSet<&'k str>,
        ordered: &mut Vec<&'k Arc<UserType>>,
    ) {
        let Some(definition) = self.types.get(name) else {
            return;
        };
        if !placed.insert(name) {
            return;
        }
        let mut used = Vec::new();
        for field in &definition.field_types {
            names_in(field, &mut used);
        }
        for inner in used {
            if let Some((inner, _)) = self.types.get_key_value(inner) {
                self.place(inner, placed, ordered);
            }
        }
        ordered.push(definition);
    }

    /// The names of the user types that use this one, in their order.
    pub fn types_with<'k>(&'k self, user_type: &'k UserType) -> impl Iterator<Item = &'k str> {
        let others = self.types.values().filter(|other| {
            let mut fields = other.field_types.iter();
            fields.any(|field| field.uses(user_type))
        });
        others.map(|other| other.name.as_str())
    }

    /// The tables that use a user type, without CDC logs, in the order of their names.
    pub fn tables_with<'k>(
        &'k self,
        user_type: &'k UserType,
    ) -> impl Iterator<Item = &'k Arc<Table>> {
        let tables = self.tables.values();
        tables.filter(|table| table.log_of.is_none() && table.uses(user_type))
    }
}

impl Table {
    /// Whether a column of the table uses a user type.
    pub fn uses(&self, user_type: &UserType) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.cql_type.uses(user_type))
    }

    /// Whether a column of the partition key uses a user type.
    pub fn has_in_partition_key(&self, user_type: &UserType) -> bool {
        self.columns.iter().any(|column| {
            matches!(column.kind, ColumnKind::PartitionKey { .. })
                && column.cql_type.uses(user_type)
        })
    }
}

/// Adds the names of the user types that occur in a type, without those within these.
fn names_in<'t>(cql_type: &'t CqlType, names: &mut Vec<&'t str>) {
    match cql_type {
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => names_in(element, names),
        CqlType::Map { key, value, .. } => {
            names_in(key, names);
            names_in(value, names);
        }
        CqlType::Tuple(types) => types.iter().for_each(|part| names_in(part, names)),
        CqlType::UserType { definition, .. } => names.push(&definition.name),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn defined(name: &str, fields: &[(&str, CqlType)]) -> UserType {
        UserType {
            keyspace: "k".to_owned(),
            name: name.to_owned(),
            field_names: fields.iter().map(|(name, _)| (*name).to_owned()).collect(),
            field_types: fields.iter().map(|(_, kind)| kind.clone()).collect(),
        }
    }

    fn frozen(definition: &UserType) -> CqlType {
        CqlType::UserType {
            definition: Arc::new(definition.clone()),
            frozen: true,
        }
    }

    #[test]
    fn types_are_sorted_after_those_they_use_and_take_over_their_changes() {
        let inner = defined("z", &[("x", CqlType::Int)]);
        let outer = defined("a", &[("t", CqlType::Tuple(vec![frozen(&inner)]))]);
        let mut keyspace = Keyspace {
            name: "k".to_owned(),
            replication: BTreeMap::new(),
            durable_writes: true,
            tablets: false,
            types: Default::default(),
            tables: BTreeMap::new(),
        };
        for definition in [&inner, &outer, &defined("b", &[])] {
            keyspace.put_type(Arc::new(definition.clone()));
        }
        let names: Vec<&str> = keyspace
            .types_in_order()
            .iter()
            .map(|definition| definition.name.as_str())
            .collect();
        assert_eq!(names, ["z", "a", "b"]);
        assert_eq!(keyspace.types_with(&inner).collect::<Vec<_>>(), ["a"]);
        let wider = defined("z", &[("x", CqlType::Int), ("y", CqlType::Text)]);
        keyspace.put_type(Arc::new(wider.clone()));
        let now = CqlType::Tuple(vec![frozen(&wider)]);
        assert_eq!(keyspace.types["a"].field_types, [now]);
    }
}
