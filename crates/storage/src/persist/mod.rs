//! The catalog on disk: a record for each keyspace and each table, so that a change of the schema
//! writes only what it changes.
//!
//! ```text
//! key       "catalog" in the meta space
//! value     {"format": 2, ...}: the fields that belong to no keyspace
//!
//! key       "catalog/keyspace/" and its name
//! value     {"name": ..., ...}
//!
//! key       "catalog/table/" and its id as UUID text
//! value     {"keyspace": ..., "generation": ..., "name": ..., ...}
//!
//! key       "catalog/role/" and its name
//! value     {"name": ..., ...}
//!
//! key       "catalog/type/", a keyspace, a zero byte and the name of a type
//! value     {"keyspace": ..., "name": ..., "fields": ...}
//!
//! key       "catalog/grant/", a role, a zero byte and the path of a resource
//! value     {"role": ..., "resource": ..., "permissions": ...}
//! ```
//!
//! A keyspace or a role has its types or grants in its own record, unless there are many of them:
//! then each has a record, so that one more of them does not write all of them again.
//!
//! A catalog with roles has format 3: a version that knows none would let everybody in. One with a
//! column of expiry times has format 4: other versions would leave such rows. One with records of
//! types or grants has format 5.
//!
//! Format 1 had the whole catalog under the first key (`format1`). Such a directory is converted
//! when it is opened, in one batch.

mod format1;
mod records;
mod roles;
mod separate_records;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use records::{KeyspaceRecord, StreamsRecord, TableRecord};
use roles::RoleRecord;
use schema::{Catalog, CopyOnWrite, Keyspace, Role, Table, TableId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::StorageError;

/// The most types of a keyspace, or grants of a role, that its own record has.
const WITHIN_MAX: usize = 64;

/// The version of the records of a catalog without roles.
const FORMAT: u32 = 2;
/// The version of those of a catalog with roles.
const FORMAT_WITH_ROLES: u32 = 3;
/// The version of those of a catalog in which a table has a column with the times at which its rows
/// expire.
const FORMAT_WITH_ROW_TTL: u32 = 4;
/// The version of those of a catalog in which types or grants have records of their own. A greater
/// one is refused.
const FORMAT_WITH_PARTS_APART: u32 = 5;
const HEAD: &[u8] = b"catalog";
const KEYSPACE: &[u8] = b"catalog/keyspace/";
const ROLE: &[u8] = b"catalog/role/";
const TABLE: &[u8] = b"catalog/table/";
/// The first key after all keys of the catalog.
const END: &[u8] = b"catalog0";

/// Generations of the tables' storage, counted up by TRUNCATE. A table that is not in the map has
/// generation 0.
pub(crate) type TableGenerations = HashMap<TableId, u64>;

/// Keys with their new values; `None` removes the key.
pub(crate) type CatalogWrites = Vec<(Bytes, Option<Bytes>)>;

/// A catalog as it was read.
pub(crate) struct LoadedCatalog {
    pub catalog: Catalog,
    pub generations: TableGenerations,
    /// The changes that convert the catalog to the present format; empty if it has that format.
    pub conversion: CatalogWrites,
}

#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

#[derive(Serialize, Deserialize)]
struct HeadRecord {
    format: u32,
    version: Uuid,
    host_id: Uuid,
    cluster_name: String,
    created_at_ms: i64,
    vnode_streams: StreamsRecord,
}

#[derive(Serialize, Deserialize)]
struct StoredTable {
    keyspace: String,
    generation: u64,
    #[serde(flatten)]
    table: TableRecord,
}

/// The range of the keys of a catalog.
pub(crate) fn keys() -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (
        Bound::Included(HEAD.to_vec()),
        Bound::Excluded(END.to_vec()),
    )
}

/// The changes to be written when the catalog `new` replaces `old`, or is the first one.
pub(crate) fn changes(
    old: Option<(&Catalog, &TableGenerations)>,
    new: (&Catalog, &TableGenerations),
) -> CatalogWrites {
    let mut changes = vec![(Bytes::from_static(HEAD), Some(head(new.0)))];
    let (old, of_old) = old.unzip();
    let no_keyspaces = BTreeMap::new();
    let old_keyspaces = old.map_or(&no_keyspaces, |old| &old.keyspaces);
    let same_generations = of_old == Some(new.1);
    for (name, keyspace) in &new.0.keyspaces {
        let old = old_keyspaces.get(name);
        if same_generations && old.is_some_and(|old| Arc::ptr_eq(old, keyspace)) {
            continue;
        }
        if old.is_none_or(|old| !records::has_same_record(old, keyspace)) {
            let record = json(&records::keyspace_record(keyspace));
            changes.push((keyspace_key(name), Some(record)));
        }
        separate_records::put_types(old.map(|old| &**old), Some(&**keyspace), &mut changes);
        let none = BTreeMap::new();
        let old_tables = old.map_or(&none, |old| &old.tables);
        put_tables(&keyspace.tables, new.1, old_tables, of_old, &mut changes);
    }
    let gone = old_keyspaces.iter();
    for (name, keyspace) in gone.filter(|(name, _)| !new.0.keyspaces.contains_key(*name)) {
        changes.push((keyspace_key(name), None));
        separate_records::put_types(Some(&**keyspace), None, &mut changes);
        let ids = keyspace.tables.values().map(|table| table.id);
        changes.extend(ids.map(|id| (table_key(id), None)));
    }
    put_roles(&new.0.roles, old.map(|old| &old.roles), &mut changes);
    changes
}

/// Adds the changes for the roles that differ from before.
fn put_roles(
    roles: &CopyOnWrite<BTreeMap<String, Arc<Role>>>,
    old: Option<&CopyOnWrite<BTreeMap<String, Arc<Role>>>>,
    changes: &mut CatalogWrites,
) {
    if old.is_some_and(|old| old.is_same(roles)) {
        return;
    }
    // Both are in the order of their names.
    let mut before = old.into_iter().flat_map(|old| old.iter()).peekable();
    for (name, role) in roles.iter() {
        while let Some((gone, role)) = before.next_if(|(other, _)| *other < name) {
            drop_role(gone, role, changes);
        }
        let before = before.next_if(|(other, _)| *other == name);
        let before = before.map(|(_, before)| before);
        if before.is_some_and(|before| Arc::ptr_eq(before, role)) {
            continue;
        }
        if before.is_none_or(|before| !roles::has_same_record(before, role)) {
            let record = json(&roles::role_record(name, role));
            changes.push((role_key(name), Some(record)));
        }
        separate_records::put_grants(name, before.map(|before| &**before), Some(&**role), changes);
    }
    for (gone, role) in before {
        drop_role(gone, role, changes);
    }
}

fn drop_role(name: &str, role: &Role, changes: &mut CatalogWrites) {
    changes.push((role_key(name), None));
    separate_records::put_grants(name, Some(role), None, changes);
}

/// Adds the changes for the tables of a keyspace that differ from before.
fn put_tables(
    tables: &BTreeMap<String, Arc<Table>>,
    generations: &TableGenerations,
    old_tables: &BTreeMap<String, Arc<Table>>,
    of_old: Option<&TableGenerations>,
    changes: &mut CatalogWrites,
) {
    let number = |generations: &TableGenerations, id| generations.get(&id).copied().unwrap_or(0);
    for (name, table) in tables {
        let generation = number(generations, table.id);
        let old = old_tables.get(name);
        let is_same = |old: &&Arc<Table>| {
            Arc::ptr_eq(old, table)
                && of_old.map(|of_old| number(of_old, old.id)) == Some(generation)
        };
        if old.filter(is_same).is_none() {
            changes.push((table_key(table.id), Some(stored_table(table, generation))));
        }
    }
    for (name, old) in old_tables {
        if tables.get(name).is_none_or(|table| table.id != old.id) {
            changes.push((table_key(old.id), None));
        }
    }
}

/// Reads the catalog from the entries under [`keys`]; `None` if there is none.
pub(crate) fn load(
    entries: impl Iterator<Item = Result<(Bytes, Bytes), StorageError>>,
) -> Result<Option<LoadedCatalog>, StorageError> {
    let mut head = None;
    let mut keyspaces = BTreeMap::new();
    let mut roles: BTreeMap<String, Arc<Role>> = BTreeMap::new();
    let (mut types, mut grants) = (Vec::new(), Vec::new());
    let mut stored = Vec::new();
    for entry in entries {
        let (key, value) = entry?;
        if key == HEAD {
            check_format(&value)?;
            head = Some(value);
        } else if key.starts_with(KEYSPACE) {
            let keyspace = records::keyspace_of(parse::<KeyspaceRecord>(&value)?)?;
            keyspaces.insert(keyspace.name.clone(), keyspace);
        } else if key.starts_with(ROLE) {
            let record = parse::<RoleRecord>(&value)?;
            let name = record.name.clone();
            roles.insert(name, Arc::new(roles::role_of(record)?));
        } else if key.starts_with(separate_records::TYPE) {
            types.push(parse(&value)?);
        } else if key.starts_with(separate_records::GRANT) {
            grants.push(parse(&value)?);
        } else if key.starts_with(TABLE) {
            stored.push(parse::<StoredTable>(&value)?);
        }
    }
    separate_records::take_types(types, &mut keyspaces)?;
    separate_records::take_grants(grants, &mut roles)?;
    let Some(head) = head else {
        return Ok(None);
    };
    if parse::<FormatOnly>(&head)?.format == format1::FORMAT {
        return format1::load(&head).map(Some);
    }
    let mut generations = TableGenerations::new();
    for StoredTable {
        keyspace,
        generation,
        table,
    } in stored
    {
        let keyspace = keyspaces.get_mut(&keyspace).ok_or_else(|| {
            StorageError::Corrupt(format!(
                "the stored schema has table {} without its keyspace {keyspace}",
                table.name
            ))
        })?;
        let table = records::table_of(table, keyspace)?;
        if generation > 0 {
            generations.insert(table.id, generation);
        }
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
    }
    let record: HeadRecord = parse(&head)?;
    Ok(Some(LoadedCatalog {
        catalog: Catalog {
            roles: roles.into(),
            ..catalog(record, keyspaces)
        },
        generations,
        conversion: CatalogWrites::new(),
    }))
}

/// Notes the names of the tables and secondary indexes in a record of the catalog, as
/// `keyspace.table`. Other records are passed over.
pub(crate) fn note_names(key: &[u8], value: &[u8], names: &mut HashMap<TableId, String>) {
    let mut note = |table: &TableRecord, keyspace: &str| {
        let name = format!("{keyspace}.{}", table.name);
        for (version, index) in table.secondary_indexes() {
            names.insert(TableId(version), format!("{name}, its index {index}"));
        }
        if let Some(version) = table.row_ttl() {
            names.insert(TableId(version), format!("{name}, its times of expiry"));
        }
        names.insert(TableId(table.id), name);
    };
    if key == HEAD {
        format1::each_table(value, note);
    } else if key.starts_with(TABLE)
        && let Ok(stored) = parse::<StoredTable>(value)
    {
        note(&stored.table, &stored.keyspace);
    }
}

fn check_format(head: &[u8]) -> Result<(), StorageError> {
    let FormatOnly { format } = parse(head)?;
    if format > FORMAT_WITH_PARTS_APART {
        return Err(StorageError::NewerFormat(format!(
            "the schema was written by a newer version of Annulus (format {format}, this one knows \
             up to {FORMAT_WITH_PARTS_APART}): use that version"
        )));
    }
    Ok(())
}

fn catalog(head: HeadRecord, keyspaces: BTreeMap<String, Keyspace>) -> Catalog {
    Catalog {
        version: head.version,
        host_id: head.host_id,
        cluster_name: head.cluster_name,
        created_at_ms: head.created_at_ms,
        vnode_streams: records::streams_of(head.vnode_streams),
        keyspaces: keyspaces
            .into_iter()
            .map(|(name, keyspace)| (name, Arc::new(keyspace)))
            .collect(),
        roles: Default::default(),
    }
}

/// The least version that can read the catalog.
fn format_of(catalog: &Catalog) -> u32 {
    let mut keyspaces = catalog.keyspaces.values();
    let has_row_ttl = |table: &Arc<Table>| table.row_ttl.is_some();
    if separate_records::is_used(catalog) {
        FORMAT_WITH_PARTS_APART
    } else if keyspaces.any(|keyspace| keyspace.tables.values().any(has_row_ttl)) {
        FORMAT_WITH_ROW_TTL
    } else if catalog.roles.is_empty() {
        FORMAT
    } else {
        FORMAT_WITH_ROLES
    }
}

fn head(catalog: &Catalog) -> Bytes {
    json(&HeadRecord {
        format: format_of(catalog),
        version: catalog.version,
        host_id: catalog.host_id,
        cluster_name: catalog.cluster_name.clone(),
        created_at_ms: catalog.created_at_ms,
        vnode_streams: records::streams_record(&catalog.vnode_streams),
    })
}

fn stored_table(table: &Table, generation: u64) -> Bytes {
    json(&StoredTable {
        keyspace: table.keyspace.clone(),
        generation,
        table: records::table_record(table),
    })
}

fn keyspace_key(name: &str) -> Bytes {
    [KEYSPACE, name.as_bytes()].concat().into()
}

fn role_key(name: &str) -> Bytes {
    [ROLE, name.as_bytes()].concat().into()
}

fn table_key(id: TableId) -> Bytes {
    [TABLE, id.0.to_string().as_bytes()].concat().into()
}

fn json(record: &impl Serialize) -> Bytes {
    serde_json::to_vec(record)
        .expect("a record of strings and numbers has a JSON form")
        .into()
}

fn parse<'a, R: Deserialize<'a>>(bytes: &'a [u8]) -> Result<R, StorageError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StorageError::Corrupt(format!("the stored schema can't be read: {error}")))
}
