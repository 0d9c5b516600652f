//! Types of a keyspace and grants of a role that have records of their own, as there are many.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schema::{Catalog, Keyspace, PermissionSet, Resource, Role};
use serde::{Deserialize, Serialize};
use value::UserType;

use super::records::{TypeRecord, are_types_apart, put_type, type_record};
use super::roles::{are_grants_apart, grant_of, names_of};
use super::{CatalogWrites, json};
use crate::StorageError;

pub(super) const TYPE: &[u8] = b"catalog/type/";
pub(super) const GRANT: &[u8] = b"catalog/grant/";

#[derive(Serialize, Deserialize)]
pub(super) struct StoredType {
    keyspace: String,
    #[serde(flatten)]
    definition: TypeRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredGrant {
    role: String,
    resource: String,
    permissions: Vec<String>,
}

/// Whether a catalog has such records.
pub(super) fn is_used(catalog: &Catalog) -> bool {
    let mut keyspaces = catalog.keyspaces.values();
    keyspaces.any(|keyspace| are_types_apart(keyspace))
        || catalog.roles.values().any(|role| are_grants_apart(role))
}

/// Adds the changes of the records of types, where a keyspace takes the place of another, comes or
/// goes.
pub(super) fn put_types(
    old: Option<&Keyspace>,
    new: Option<&Keyspace>,
    changes: &mut CatalogWrites,
) {
    let old = old.filter(|keyspace| are_types_apart(keyspace));
    let new = new.filter(|keyspace| are_types_apart(keyspace));
    let Some(keyspace) = new.or(old) else {
        return;
    };
    let (old, new) = (old.map(|of| &of.types), new.map(|of| &of.types));
    if old.zip(new).is_some_and(|(old, new)| old.is_same(new)) {
        return;
    }
    let none = BTreeMap::new();
    let before = old.map_or(&none, |types| &**types);
    let now = new.map_or(&none, |types| &**types);
    let is_same = |a: &Arc<UserType>, b: &Arc<UserType>| Arc::ptr_eq(a, b) || a == b;
    put(
        before,
        now,
        is_same,
        changes,
        |name: &String, definition| {
            let key = [TYPE, keyspace.name.as_bytes(), &[0], name.as_bytes()].concat();
            let record = definition.map(|definition| {
                json(&StoredType {
                    keyspace: keyspace.name.clone(),
                    definition: type_record(definition),
                })
            });
            (key.into(), record)
        },
    );
}

/// Adds the changes of the records of grants, where a role takes the place of another, comes or
/// goes.
pub(super) fn put_grants(
    name: &str,
    old: Option<&Role>,
    new: Option<&Role>,
    changes: &mut CatalogWrites,
) {
    let none = BTreeMap::new();
    let (before, now) = (
        grants_of(old).unwrap_or(&none),
        grants_of(new).unwrap_or(&none),
    );
    let is_same = |a: &PermissionSet, b: &PermissionSet| a == b;
    put(
        before,
        now,
        is_same,
        changes,
        |resource: &Resource, permissions| {
            let path = resource.path();
            let key = [GRANT, name.as_bytes(), &[0], path.as_bytes()].concat();
            let record = permissions.map(|permissions| {
                json(&StoredGrant {
                    role: name.to_owned(),
                    resource: path,
                    permissions: names_of(*permissions),
                })
            });
            (key.into(), record)
        },
    );
}

/// The grants of a role, if they have records of their own.
fn grants_of(role: Option<&Role>) -> Option<&BTreeMap<Resource, PermissionSet>> {
    let role = role.filter(|role| are_grants_apart(role));
    role.map(|role| &role.grants)
}

/// Adds a change for each entry that differs.
fn put<K: Ord, V>(
    before: &BTreeMap<K, V>,
    now: &BTreeMap<K, V>,
    is_same: impl Fn(&V, &V) -> bool,
    changes: &mut CatalogWrites,
    record: impl Fn(&K, Option<&V>) -> (Bytes, Option<Bytes>),
) {
    // Both are in the same order.
    let mut before = before.iter().peekable();
    for (key, value) in now {
        while let Some((gone, _)) = before.next_if(|(other, _)| *other < key) {
            changes.push(record(gone, None));
        }
        let was = before.next_if(|(other, _)| *other == key);
        if was.is_none_or(|(_, was)| !is_same(was, value)) {
            changes.push(record(key, Some(value)));
        }
    }
    changes.extend(before.map(|(gone, _)| record(gone, None)));
}

/// Puts the types of records into their keyspaces. They come in any order.
pub(super) fn take_types(
    mut types: Vec<StoredType>,
    keyspaces: &mut BTreeMap<String, Keyspace>,
) -> Result<(), StorageError> {
    // A type that uses another can be read once that one is there.
    while !types.is_empty() {
        let waiting = types.len();
        let mut fault = None;
        types.retain(|stored| {
            let Some(keyspace) = keyspaces.get_mut(&stored.keyspace) else {
                let what = format!(
                    "the stored schema has a type of keyspace {}, which it lacks",
                    stored.keyspace
                );
                fault = Some(StorageError::Corrupt(what));
                return true;
            };
            let read = put_type(&stored.definition, keyspace);
            let is_read = read.is_ok();
            fault = read.err().or(fault.take());
            !is_read
        });
        if types.len() == waiting {
            return fault.map_or(Ok(()), Err);
        }
    }
    Ok(())
}

/// Puts the grants of records into their roles.
pub(super) fn take_grants(
    grants: Vec<StoredGrant>,
    roles: &mut BTreeMap<String, Arc<Role>>,
) -> Result<(), StorageError> {
    for stored in grants {
        let unknown = |what: &str| {
            StorageError::Corrupt(format!(
                "a stored grant of role {} has an unknown {what}",
                stored.role
            ))
        };
        let grant = grant_of(&stored.resource, &stored.permissions);
        let (resource, permissions) = grant.map_err(unknown)?;
        let role = roles.get_mut(&stored.role);
        let role = role.ok_or_else(|| unknown("role"))?;
        Arc::make_mut(role).grants.insert(resource, permissions);
    }
    Ok(())
}
