//! Schema events for the connections that registered for them.
//!
//! They come from a comparison of catalogs, not from the statements. So they name every change
//! once, by any client, and also what a statement changes in addition to its object: a vector
//! index creates a CDC log, too.

use std::sync::{Arc, Mutex, PoisonError};

use cql::wire::{SchemaChange, SchemaChangeKind, SchemaTarget, ServerEvent};
use schema::{Catalog, Keyspace, Table};
use tokio::sync::broadcast;
use value::UserType;

/// The most events by which a connection may lag.
const BACKLOG: usize = 4096;

/// Sends an event for each change of the catalog.
pub(super) struct SchemaEvents {
    sender: broadcast::Sender<ServerEvent>,
    /// The newest catalog whose changes were sent.
    last_sent: Mutex<Arc<Catalog>>,
}

impl SchemaEvents {
    /// Events for the changes after `catalog`.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        SchemaEvents {
            sender: broadcast::Sender::new(BACKLOG),
            last_sent: Mutex::new(catalog),
        }
    }

    /// A receiver of the events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<ServerEvent> {
        self.sender.subscribe()
    }

    /// Sends events for all changes up to `catalog`.
    pub fn publish(&self, catalog: Arc<Catalog>) {
        let mut told = self
            .last_sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Versions rise. Another statement may have sent the events of a newer catalog meanwhile.
        if value::compare(
            &value::CqlType::Timeuuid,
            catalog.version.as_bytes(),
            told.version.as_bytes(),
        )
        .is_le()
        {
            return;
        }
        for change in changes(&told, &catalog) {
            // It fails only if no connection listens.
            let _ = self.sender.send(ServerEvent::SchemaChange(change));
        }
        *told = catalog;
    }
}

/// The changes between two catalogs, in an order that a driver can follow.
fn changes(old: &Catalog, new: &Catalog) -> Vec<SchemaChange> {
    let mut changes = Vec::new();
    for name in old.keyspaces.keys() {
        if !new.keyspaces.contains_key(name) {
            changes.push(of_keyspace(SchemaChangeKind::Dropped, name));
        }
    }
    for (name, keyspace) in &new.keyspaces {
        match old.keyspaces.get(name) {
            None => {
                changes.push(of_keyspace(SchemaChangeKind::Created, name));
                let types = keyspace.types_in_order().into_iter();
                changes.extend(types.map(|new| of_type(SchemaChangeKind::Created, new)));
                let tables = keyspace.tables.values();
                changes.extend(tables.map(|table| of_table(SchemaChangeKind::Created, table)));
            }
            Some(before) if !Arc::ptr_eq(before, keyspace) => {
                if !same_properties(before, keyspace) {
                    changes.push(of_keyspace(SchemaChangeKind::Updated, name));
                }
                type_changes(before, keyspace, &mut changes);
                table_changes(before, keyspace, &mut changes);
                let types = before.types.iter();
                let is_whole = before.types.is_same(&keyspace.types);
                let gone =
                    types.filter(|(name, _)| !is_whole && !keyspace.types.contains_key(*name));
                let gone = gone.map(|(_, gone)| of_type(SchemaChangeKind::Dropped, gone));
                changes.extend(gone);
            }
            Some(_) => {}
        }
    }
    changes
}

fn same_properties(old: &Keyspace, new: &Keyspace) -> bool {
    (&old.replication, old.durable_writes, old.tablets)
        == (&new.replication, new.durable_writes, new.tablets)
}

/// Adds the types that are new or others than before, each after those that it uses.
fn type_changes(old: &Keyspace, new: &Keyspace, changes: &mut Vec<SchemaChange>) {
    if old.types.is_same(&new.types) {
        return;
    }
    for definition in new.types_in_order() {
        match old.types.get(&definition.name) {
            None => changes.push(of_type(SchemaChangeKind::Created, definition)),
            Some(before) if !Arc::ptr_eq(before, definition) && before != definition => {
                changes.push(of_type(SchemaChangeKind::Updated, definition));
            }
            Some(_) => {}
        }
    }
}

fn table_changes(old: &Keyspace, new: &Keyspace, changes: &mut Vec<SchemaChange>) {
    for (name, table) in &old.tables {
        if new.tables.get(name).is_none_or(|now| now.id != table.id) {
            changes.push(of_table(SchemaChangeKind::Dropped, table));
        }
    }
    for (name, table) in &new.tables {
        match old.tables.get(name).filter(|before| before.id == table.id) {
            None => changes.push(of_table(SchemaChangeKind::Created, table)),
            Some(before) if !Arc::ptr_eq(before, table) && !same_schema(before, table) => {
                changes.push(of_table(SchemaChangeKind::Updated, table));
            }
            Some(_) => {}
        }
    }
}

/// Compares tables without the time of their last TRUNCATE, which is no part of the schema.
fn same_schema(old: &Table, new: &Table) -> bool {
    if old.truncated_at_ms == new.truncated_at_ms {
        return old == new;
    }
    let old = Table {
        truncated_at_ms: new.truncated_at_ms,
        ..old.clone()
    };
    old == *new
}

fn of_keyspace(change: SchemaChangeKind, name: &str) -> SchemaChange {
    SchemaChange {
        change,
        keyspace: name.to_owned(),
        target: SchemaTarget::Keyspace,
    }
}

fn of_table(change: SchemaChangeKind, table: &Table) -> SchemaChange {
    SchemaChange {
        change,
        keyspace: table.keyspace.clone(),
        target: SchemaTarget::Table(table.name.clone()),
    }
}

fn of_type(change: SchemaChangeKind, definition: &UserType) -> SchemaChange {
    SchemaChange {
        change,
        keyspace: definition.keyspace.clone(),
        target: SchemaTarget::Type(definition.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn described(old: &Catalog, new: &Catalog) -> Vec<String> {
        changes(old, new)
            .into_iter()
            .map(|change| match change.target {
                SchemaTarget::Table(name) | SchemaTarget::Type(name) => {
                    format!("{:?} {}.{name}", change.change, change.keyspace)
                }
                _ => format!("{:?} {}", change.change, change.keyspace),
            })
            .collect()
    }

    #[test]
    fn every_change_is_told_once() {
        let old = fixtures::catalog();
        assert!(described(&old, &old).is_empty());

        let mut new = old.clone();
        fixtures::edit_table(&mut new, "shop", "films", |table| table.default_ttl_s = 5);
        assert_eq!(described(&old, &new), ["Updated shop.films"]);

        let mut dropped = old.clone();
        dropped.keyspaces.remove("shop");
        assert_eq!(described(&old, &dropped), ["Dropped shop"]);
        let back = described(&dropped, &old);
        assert_eq!(back[0], "Created shop");
        assert!(back.contains(&"Created shop.films".to_owned()), "{back:?}");
        assert!(back.contains(&"Created shop.films_scylla_cdc_log".to_owned()));
    }

    #[test]
    fn a_table_made_again_under_its_name_is_another() {
        let old = fixtures::catalog();
        let mut new = old.clone();
        fixtures::edit_table(&mut new, "shop", "films", |table| {
            table.id = schema::TableId(uuid::Uuid::from_u128(77));
        });
        assert_eq!(
            described(&old, &new),
            ["Dropped shop.films", "Created shop.films"]
        );
    }

    #[test]
    fn types_are_told_before_the_tables_that_use_them_and_dropped_behind_them() {
        let defined = |fields: &[&str]| UserType {
            keyspace: "shop".to_owned(),
            name: "size".to_owned(),
            field_names: fields.iter().map(|name| (*name).to_owned()).collect(),
            field_types: vec![value::CqlType::Int; fields.len()],
        };
        let old = fixtures::catalog();
        let mut new = old.clone();
        new.put_type(defined(&["width"]));
        assert_eq!(described(&old, &new), ["Created shop.size"]);
        let size = new.keyspaces["shop"].types["size"].clone();
        fixtures::edit_table(&mut new, "shop", "films", |table| {
            table.columns.last_mut().unwrap().cql_type = value::CqlType::UserType {
                definition: size,
                frozen: true,
            };
        });
        let mut wider = new.clone();
        wider.put_type(defined(&["width", "height"]));
        let changes = described(&new, &wider);
        assert_eq!(changes, ["Updated shop.size", "Updated shop.films"]);
        let changes = described(&new, &old);
        assert_eq!(changes, ["Updated shop.films", "Dropped shop.size"]);
    }

    #[test]
    fn truncate_is_no_schema_change() {
        let old = fixtures::catalog();
        let mut new = old.clone();
        fixtures::edit_table(&mut new, "shop", "films", |table| {
            table.truncated_at_ms = Some(1);
        });
        assert!(described(&old, &new).is_empty());
    }

    #[tokio::test]
    async fn an_older_catalog_tells_nothing() {
        let old = fixtures::catalog();
        let mut new = old.clone();
        new.version = fixtures::version(2);
        fixtures::edit_table(&mut new, "shop", "films", |table| table.default_ttl_s = 5);
        let events = SchemaEvents::new(Arc::new(old.clone()));
        let mut receiver = events.subscribe();
        events.publish(Arc::new(new));
        assert!(receiver.try_recv().is_ok());
        events.publish(Arc::new(old));
        assert!(receiver.try_recv().is_err());
    }
}
