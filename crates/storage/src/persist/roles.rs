//! A role as JSON: resources by their paths, permissions by their names.

use std::collections::{BTreeMap, BTreeSet};

use cql::secret::Secret;
use schema::{Permission, PermissionSet, Resource, Role};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::WITHIN_MAX;
use crate::StorageError;

#[derive(Serialize, Deserialize)]
pub(super) struct RoleRecord {
    pub name: String,
    /// Roles of earlier versions have none.
    #[serde(default, skip_serializing_if = "Uuid::is_nil")]
    id: Uuid,
    is_superuser: bool,
    can_login: bool,
    salted_hash: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    member_of: BTreeSet<String>,
    /// Names of permissions by the path of their resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    grants: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    identities: BTreeSet<String>,
}

/// Whether the grants of a role have records of their own.
pub(super) fn are_grants_apart(role: &Role) -> bool {
    role.grants.len() > WITHIN_MAX
}

pub(super) fn role_record(name: &str, role: &Role) -> RoleRecord {
    // Many of them have records of their own.
    let grants = role.grants.iter().filter(|_| !are_grants_apart(role));
    RoleRecord {
        name: name.to_owned(),
        id: role.id,
        is_superuser: role.is_superuser,
        can_login: role.can_login,
        salted_hash: role.salted_hash.as_ref().map(|hash| hash.expose().clone()),
        member_of: role.member_of.clone(),
        grants: grants
            .map(|(resource, permissions)| (resource.path(), names_of(*permissions)))
            .collect(),
        identities: role.identities.clone(),
    }
}

/// Whether two roles have the same record, whatever the grants that have records of their own.
pub(super) fn has_same_record(a: &Role, b: &Role) -> bool {
    let Role {
        id,
        is_superuser,
        can_login,
        salted_hash,
        member_of,
        grants,
        identities,
    } = a;
    (
        id,
        is_superuser,
        can_login,
        salted_hash,
        member_of,
        identities,
    ) == (
        &b.id,
        &b.is_superuser,
        &b.can_login,
        &b.salted_hash,
        &b.member_of,
        &b.identities,
    ) && match (are_grants_apart(a), are_grants_apart(b)) {
        (true, true) => true,
        (false, false) => *grants == b.grants,
        _ => false,
    }
}

/// The names of permissions.
pub(super) fn names_of(permissions: PermissionSet) -> Vec<String> {
    let permissions = permissions.iter();
    permissions.map(|each| each.name().to_owned()).collect()
}

/// A grant from the path of its resource and the names of its permissions. The error says which of
/// them is unknown.
pub(super) fn grant_of(
    path: &str,
    names: &[String],
) -> Result<(Resource, PermissionSet), &'static str> {
    let resource = Resource::from_path(path).ok_or("resource")?;
    let permissions = names.iter().map(|name| Permission::from_name(name));
    let permissions = permissions.collect::<Option<PermissionSet>>();
    Ok((resource, permissions.ok_or("permission")?))
}

pub(super) fn role_of(record: RoleRecord) -> Result<Role, StorageError> {
    let unknown = |what: &str| {
        StorageError::Corrupt(format!(
            "the stored role {} has an unknown {what}",
            record.name
        ))
    };
    let mut grants = BTreeMap::new();
    for (path, names) in &record.grants {
        let (resource, permissions) = grant_of(path, names).map_err(unknown)?;
        grants.insert(resource, permissions);
    }
    Ok(Role {
        id: record.id,
        is_superuser: record.is_superuser,
        can_login: record.can_login,
        salted_hash: record.salted_hash.map(Secret::new),
        member_of: record.member_of,
        grants,
        identities: record.identities,
    })
}
