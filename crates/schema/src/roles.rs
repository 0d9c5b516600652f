//! Roles, the things that permissions are about, and who may do what.
//!
//! A role has permissions on resources. It also has those of the roles that it is a member of, and
//! of their roles. A permission on a resource holds for all that is in it: one on a keyspace for
//! its tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use cql::secret::Secret;
use uuid::Uuid;

use crate::{Catalog, log_table_name};

/// A role: somebody who logs in, or a set of permissions that others are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    /// The id that the role was created with: another role of the same name has another one. Nil
    /// for a role that an earlier version has created.
    pub id: Uuid,
    /// Whether the role may do everything.
    pub is_superuser: bool,
    /// Whether the role can log in.
    pub can_login: bool,
    /// The bcrypt hash of the password; `None` if no password lets the role in.
    pub salted_hash: Option<Secret<String>>,
    /// The roles that this one is a member of.
    pub member_of: BTreeSet<String>,
    /// The permissions that were granted to this very role. No set is empty.
    pub grants: BTreeMap<Resource, PermissionSet>,
    /// The identities in certificates of clients by which this role logs in. No two roles share
    /// one.
    pub identities: BTreeSet<String>,
}

/// A permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are the words of CQL")]
pub enum Permission {
    Create,
    Alter,
    Drop,
    Select,
    Modify,
    Authorize,
    Describe,
    Execute,
    Unmask,
    SelectMasked,
    VectorSearchIndexing,
    TextSearchIndexing,
}

impl Permission {
    /// All permissions, in the order in which they are listed.
    pub const EVERY: [Permission; 12] = [
        Permission::Create,
        Permission::Alter,
        Permission::Drop,
        Permission::Select,
        Permission::Modify,
        Permission::Authorize,
        Permission::Describe,
        Permission::Execute,
        Permission::Unmask,
        Permission::SelectMasked,
        Permission::VectorSearchIndexing,
        Permission::TextSearchIndexing,
    ];

    /// The word of CQL, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Permission::Create => "CREATE",
            Permission::Alter => "ALTER",
            Permission::Drop => "DROP",
            Permission::Select => "SELECT",
            Permission::Modify => "MODIFY",
            Permission::Authorize => "AUTHORIZE",
            Permission::Describe => "DESCRIBE",
            Permission::Execute => "EXECUTE",
            Permission::Unmask => "UNMASK",
            Permission::SelectMasked => "SELECT_MASKED",
            Permission::VectorSearchIndexing => "VECTOR_SEARCH_INDEXING",
            Permission::TextSearchIndexing => "TEXT_SEARCH_INDEXING",
        }
    }

    /// The permission with this name, in capitals.
    pub fn from_name(name: &str) -> Option<Permission> {
        let mut every = Permission::EVERY.into_iter();
        every.find(|permission| permission.name() == name)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet(u16);

impl PermissionSet {
    /// Whether the permission is in the set.
    pub fn has(self, permission: Permission) -> bool {
        self.0 & 1 << permission as u16 != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions of either set.
    #[must_use]
    pub fn and(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 | other.0)
    }

    /// The permissions of both sets.
    #[must_use]
    pub fn common(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 & other.0)
    }

    /// The permissions of this set that are not in the other.
    #[must_use]
    pub fn without(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 & !other.0)
    }

    /// The permissions, in the order in which they are listed.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        let every = Permission::EVERY.into_iter();
        every.filter(move |permission| self.has(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> PermissionSet {
        let bits = permissions.into_iter();
        PermissionSet(bits.fold(0, |set, permission| set | 1 << permission as u16))
    }
}

/// A thing that permissions are about. The order is that of lists of permissions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// All keyspaces.
    AllKeyspaces,
    /// A keyspace.
    Keyspace(String),
    /// All tables in a keyspace.
    AllTables(String),
    /// A table, by its keyspace and its name.
    Table(String, String),
    /// All functions.
    AllFunctions,
    /// All functions in a keyspace.
    FunctionsOf(String),
    /// All roles.
    AllRoles,
    /// A role.
    Role(String),
}

impl Resource {
    /// The smallest resource that contains this one.
    pub fn parent(&self) -> Option<Resource> {
        match self {
            Resource::AllKeyspaces | Resource::AllFunctions | Resource::AllRoles => None,
            Resource::Keyspace(_) => Some(Resource::AllKeyspaces),
            Resource::AllTables(keyspace) => Some(Resource::Keyspace(keyspace.clone())),
            Resource::Table(keyspace, _) => Some(Resource::AllTables(keyspace.clone())),
            Resource::FunctionsOf(_) => Some(Resource::AllFunctions),
            Resource::Role(_) => Some(Resource::AllRoles),
        }
    }

    /// This resource and all that contain it, the smallest first.
    pub fn chain(&self) -> impl Iterator<Item = Resource> {
        std::iter::successors(Some(self.clone()), Resource::parent)
    }

    /// The permissions that the resource can have.
    pub fn applicable(&self) -> PermissionSet {
        use Permission::*;
        let data = [Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked];
        let (common, more): (&[Permission], &[Permission]) = match self {
            Resource::AllKeyspaces => (&data, &[Create, VectorSearchIndexing, TextSearchIndexing]),
            Resource::Keyspace(_) | Resource::AllTables(_) => (&data, &[Create]),
            Resource::Table(..) => (&data, &[]),
            Resource::AllFunctions | Resource::FunctionsOf(_) => {
                (&[Create, Alter, Drop, Authorize, Execute], &[])
            }
            Resource::AllRoles => (&[Create, Alter, Drop, Authorize, Describe], &[]),
            Resource::Role(_) => (&[Alter, Drop, Authorize, Describe], &[]),
        };
        common.iter().chain(more).copied().collect()
    }

    /// Cassandra's name of the kind of resource, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Resource::AllKeyspaces
            | Resource::Keyspace(_)
            | Resource::AllTables(_)
            | Resource::Table(..) => "DataResource",
            Resource::AllFunctions | Resource::FunctionsOf(_) => "FunctionResource",
            Resource::AllRoles | Resource::Role(_) => "RoleResource",
        }
    }

    /// The path of the resource, as `system_auth.role_permissions` has it: `data/ks/table`.
    pub fn path(&self) -> String {
        match self {
            Resource::AllKeyspaces => "data".to_owned(),
            Resource::Keyspace(keyspace) => format!("data/{keyspace}"),
            Resource::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Resource::Table(keyspace, table) => format!("data/{keyspace}/{table}"),
            Resource::AllFunctions => "functions".to_owned(),
            Resource::FunctionsOf(keyspace) => format!("functions/{keyspace}"),
            Resource::AllRoles => "roles".to_owned(),
            Resource::Role(role) => format!("roles/{role}"),
        }
    }

    /// The resource with this path. `None` if there is no such kind of resource.
    pub fn from_path(path: &str) -> Option<Resource> {
        let (kind, rest) = match path.split_once('/') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (path, None),
        };
        Some(match (kind, rest) {
            ("data", None) => Resource::AllKeyspaces,
            ("data", Some(rest)) => match rest.split_once('/') {
                None => Resource::Keyspace(rest.to_owned()),
                Some((keyspace, "*")) => Resource::AllTables(keyspace.to_owned()),
                Some((keyspace, table)) => Resource::Table(keyspace.to_owned(), table.to_owned()),
            },
            ("functions", None) => Resource::AllFunctions,
            ("functions", Some(keyspace)) => Resource::FunctionsOf(keyspace.to_owned()),
            ("roles", None) => Resource::AllRoles,
            ("roles", Some(role)) => Resource::Role(role.to_owned()),
            _ => return None,
        })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::AllKeyspaces => f.write_str("<all keyspaces>"),
            Resource::Keyspace(keyspace) => write!(f, "<keyspace {keyspace}>"),
            Resource::AllTables(keyspace) => write!(f, "<all tables in {keyspace}>"),
            Resource::Table(keyspace, table) => write!(f, "<table {keyspace}.{table}>"),
            Resource::AllFunctions => f.write_str("<all functions>"),
            Resource::FunctionsOf(keyspace) => write!(f, "<all functions in {keyspace}>"),
            Resource::AllRoles => f.write_str("<all roles>"),
            Resource::Role(role) => write!(f, "<role {role}>"),
        }
    }
}

impl Catalog {
    /// Whether the resource is there. All keyspaces, roles and functions always are.
    pub fn has_resource(&self, resource: &Resource) -> bool {
        match resource {
            Resource::AllKeyspaces | Resource::AllFunctions | Resource::AllRoles => true,
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::FunctionsOf(keyspace) => self.keyspace(keyspace).is_some(),
            Resource::Table(keyspace, table) => self.table(keyspace, table).is_some(),
            Resource::Role(role) => self.roles.contains_key(role),
        }
    }

    /// The role itself and all roles that it is a member of, also by way of others. Empty if there
    /// is no such role.
    pub fn roles_of<'a>(&'a self, role: &str) -> BTreeMap<&'a str, &'a Role> {
        let mut found = BTreeMap::new();
        let mut open = vec![role];
        while let Some(name) = open.pop() {
            let Some((name, role)) = self.roles.get_key_value(name) else {
                continue;
            };
            if found.insert(name.as_str(), &**role).is_none() {
                open.extend(role.member_of.iter().map(String::as_str));
            }
        }
        found
    }

    /// The role that logs in by this identity of a certificate.
    pub fn role_of_identity(&self, identity: &str) -> Option<&str> {
        let mut roles = self.roles.iter();
        let (name, _) = roles.find(|(_, role)| role.identities.contains(identity))?;
        Some(name)
    }

    /// Gives a role permissions, and returns those that it did not have yet. A role that was
    /// dropped gets none.
    pub fn grant(&mut self, role: &str, on: Resource, permissions: PermissionSet) -> PermissionSet {
        let Some(role) = self.roles.get_mut(role) else {
            return PermissionSet::default();
        };
        let had = role.grants.get(&on).copied().unwrap_or_default();
        let added = permissions.without(had);
        if !added.is_empty() {
            Arc::make_mut(role).grants.insert(on, had.and(added));
        }
        added
    }

    /// Takes permissions from a role, and returns those that it had.
    pub fn revoke(
        &mut self,
        role: &str,
        on: &Resource,
        permissions: PermissionSet,
    ) -> PermissionSet {
        let Some(role) = self.roles.get_mut(role) else {
            return PermissionSet::default();
        };
        let had = role.grants.get(on).copied().unwrap_or_default();
        let taken = had.common(permissions);
        if !taken.is_empty() {
            let grants = &mut Arc::make_mut(role).grants;
            match had.without(taken) {
                left if left.is_empty() => grants.remove(on),
                left => grants.insert(on.clone(), left),
            };
        }
        taken
    }

    /// Takes from all roles what they may do with a resource that is dropped, and with all in it.
    pub fn forget_grants(&mut self, dropped: &Resource) {
        let lies_in = |resource: &Resource| resource.chain().any(|each| each == *dropped);
        for role in self.roles.values_mut() {
            if role.grants.keys().any(lies_in) {
                let grants = &mut Arc::make_mut(role).grants;
                grants.retain(|resource, _| !lies_in(resource));
            }
        }
    }

    /// Adapts the grants on a table's log, which is new or dropped. Roles that may grant
    /// permissions on the very table, as its creator may, get the same ones on a new log.
    pub(crate) fn adapt_grants_on_log(&mut self, keyspace: &str, table: &str, is_new: bool) {
        let resource = |name: String| Resource::Table(keyspace.to_owned(), name);
        let (table, log) = (resource(table.to_owned()), resource(log_table_name(table)));
        self.forget_grants(&log);
        if !is_new {
            return;
        }
        for role in self.roles.values_mut() {
            if let Some(granted) = role.grants.get(&table).copied()
                && granted.has(Permission::Authorize)
            {
                Arc::make_mut(role).grants.insert(log.clone(), granted);
            }
        }
    }

    /// Removes a role, its place in others, and all permissions on it.
    pub fn remove_role(&mut self, name: &str) {
        self.roles.remove(name);
        for role in self.roles.values_mut() {
            if role.member_of.contains(name) {
                Arc::make_mut(role).member_of.remove(name);
            }
        }
        self.forget_grants(&Resource::Role(name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_resources_name_each_other() {
        let table = Resource::Table("ks".to_owned(), "t/x".to_owned());
        for (resource, path) in [
            (Resource::AllKeyspaces, "data"),
            (Resource::Keyspace("ks".to_owned()), "data/ks"),
            (Resource::AllTables("ks".to_owned()), "data/ks/*"),
            (table, "data/ks/t/x"),
            (Resource::AllFunctions, "functions"),
            (Resource::FunctionsOf("ks".to_owned()), "functions/ks"),
            (Resource::AllRoles, "roles"),
            (Resource::Role("a/b".to_owned()), "roles/a/b"),
        ] {
            assert_eq!(resource.path(), path);
            assert_eq!(Resource::from_path(path), Some(resource));
        }
        assert_eq!(Resource::from_path("mbean/x"), None);
    }

    #[test]
    fn a_set_has_the_permissions_that_were_put_in() {
        let set: PermissionSet = [Permission::Modify, Permission::Create]
            .into_iter()
            .collect();
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Permission::Create, Permission::Modify]
        );
        assert!(!set.has(Permission::Select));
        for permission in Permission::EVERY {
            assert_eq!(Permission::from_name(permission.name()), Some(permission));
        }
    }
}
