//! The rights of one role by one version of the catalog: its own, and those of the roles that it is
//! a member of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cql::error::CqlError;
use schema::{Catalog, Permission, PermissionSet, Resource, SearchClass, Table};

use super::no_permission;
use crate::statement::LoggedInRole;

/// System keyspaces whose tables everybody reads: drivers and readers of the change log can't do
/// without.
const OPEN_KEYSPACES: [&str; 4] = [
    "system",
    "system_schema",
    "system_distributed",
    "system_virtual_schema",
];
/// Further system keyspaces.
const OTHER_SYSTEM_KEYSPACES: [&str; 3] = ["system_auth", "system_traces", "system_views"];
/// Tables of the open keyspaces that tell of other clients, or of the operator's settings.
const CLOSED_TABLES: [&str; 4] = ["clients", "config", "large_data", "prepared_statements"];

/// The rights of a role.
#[derive(Debug, Default)]
pub struct RoleRights {
    role: String,
    is_superuser: bool,
    /// The role itself and all roles that it is a member of.
    roles: BTreeSet<String>,
    /// The permissions on all keyspaces but those of the system.
    everywhere: PermissionSet,
    /// The permissions in a keyspace, by its name. Two maps, so that a statement on a table is
    /// checked without making a [`Resource`].
    in_keyspaces: HashMap<String, KeyspacePermissions>,
    /// The permissions on roles and functions.
    others: BTreeMap<Resource, PermissionSet>,
}

/// The permissions in a keyspace.
#[derive(Debug, Default)]
struct KeyspacePermissions {
    /// Those on the keyspace itself.
    own: PermissionSet,
    /// Those on all of its tables.
    all_tables: PermissionSet,
    tables: HashMap<String, PermissionSet>,
}

impl RoleRights {
    /// The rights of a role that has logged in; `None` if it is not there any more, or may not log
    /// in any more.
    pub fn of_logged_in(catalog: &Catalog, role: &LoggedInRole) -> Option<RoleRights> {
        match role.is_in(catalog) {
            true => RoleRights::of(catalog, role),
            false => None,
        }
    }

    /// The rights of a role; `None` if there is no such role, or if it may not log in.
    pub fn of(catalog: &Catalog, role: &str) -> Option<RoleRights> {
        if !catalog.roles.get(role)?.can_login {
            return None;
        }
        let mut rights = RoleRights {
            role: role.to_owned(),
            ..RoleRights::default()
        };
        for (name, role) in catalog.roles_of(role) {
            rights.is_superuser |= role.is_superuser;
            rights.roles.insert(name.to_owned());
            for (resource, permissions) in &role.grants {
                let place = rights.place(resource);
                *place = place.and(*permissions);
            }
        }
        Some(rights)
    }

    fn place(&mut self, resource: &Resource) -> &mut PermissionSet {
        match resource {
            Resource::AllKeyspaces => &mut self.everywhere,
            Resource::Keyspace(name) => &mut self.in_keyspace(name).own,
            Resource::AllTables(name) => &mut self.in_keyspace(name).all_tables,
            Resource::Table(name, table) => {
                let tables = &mut self.in_keyspace(name).tables;
                tables.entry(table.clone()).or_default()
            }
            Resource::AllFunctions
            | Resource::FunctionsOf(_)
            | Resource::AllRoles
            | Resource::Role(_) => self.others.entry(resource.clone()).or_default(),
        }
    }

    fn in_keyspace(&mut self, name: &str) -> &mut KeyspacePermissions {
        self.in_keyspaces.entry(name.to_owned()).or_default()
    }

    /// The name of the role.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// Whether the role may do everything.
    pub fn is_superuser(&self) -> bool {
        self.is_superuser
    }

    /// Whether it is this role, or a member of it.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.contains(role)
    }

    /// Whether the permission was granted on the resource or on one that contains it.
    pub fn allow(&self, permission: Permission, resource: &Resource) -> bool {
        if self.is_superuser {
            return true;
        }
        match resource {
            Resource::AllKeyspaces => self.everywhere.has(permission),
            Resource::Keyspace(keyspace) => self.on_table(permission, keyspace, None, false),
            Resource::AllTables(keyspace) => self.on_table(permission, keyspace, None, true),
            Resource::Table(keyspace, table) => {
                self.on_table(permission, keyspace, Some(table), true)
            }
            _ => resource.chain().any(|each| {
                let granted = self.others.get(&each);
                granted.is_some_and(|granted| granted.has(permission))
            }),
        }
    }

    fn on_table(
        &self,
        permission: Permission,
        keyspace: &str,
        table: Option<&str>,
        with_tables: bool,
    ) -> bool {
        let in_keyspace = self.in_keyspaces.get(keyspace);
        self.everywhere.has(permission) && !is_of_system(keyspace)
            || in_keyspace.is_some_and(|keyspace| {
                let of_table = table.and_then(|table| keyspace.tables.get(table));
                keyspace.own.has(permission)
                    || with_tables && keyspace.all_tables.has(permission)
                    || of_table.is_some_and(|granted| granted.has(permission))
            })
    }

    /// Refuses what was not granted.
    ///
    /// # Errors
    /// Unauthorized.
    pub fn need(&self, permission: Permission, resource: &Resource) -> Result<(), CqlError> {
        match self.allow(permission, resource) {
            true => Ok(()),
            false => Err(no_permission(&self.role, permission, resource)),
        }
    }

    /// Refuses a read or a write of a table's rows that was not granted.
    ///
    /// # Errors
    /// Unauthorized.
    pub fn need_on_table(
        &self,
        permission: Permission,
        table: &Table,
        catalog: &Catalog,
    ) -> Result<(), CqlError> {
        let reads = permission == Permission::Select;
        let allowed = self.is_superuser
            || self.on_table(permission, &table.keyspace, Some(&table.name), true)
            || reads && (is_open(table) || self.indexes(table, catalog));
        if allowed {
            return Ok(());
        }
        if reads && is_watched_by_index_services(table) {
            let needed = Permission::VectorSearchIndexing;
            return Err(no_permission(&self.role, needed, &Resource::AllKeyspaces));
        }
        let resource = Resource::Table(table.keyspace.clone(), table.name.clone());
        Err(no_permission(&self.role, permission, &resource))
    }

    /// Whether the role reads the table for an index service: the table has an index of a class
    /// that the role may build, or is the log of one that has, or records changes of the schema.
    fn indexes(&self, table: &Table, catalog: &Catalog) -> bool {
        let builds = |class| self.everywhere.has(permission_to_build(class));
        if !SEARCH_CLASSES.into_iter().any(builds) {
            return false;
        }
        if is_watched_by_index_services(table) {
            return true;
        }
        let base = table.log_of.and_then(|base| catalog.table_by_id(base));
        let mut indexes = base.map_or(table, |base| base).indexes.values();
        indexes.any(|index| builds(index.class()))
    }
}

/// The classes of indexes that index services build.
const SEARCH_CLASSES: [SearchClass; 2] = [SearchClass::Vector, SearchClass::FullText];

/// The permission by which an index service reads what indexes of the class are built from.
fn permission_to_build(class: SearchClass) -> Permission {
    match class {
        SearchClass::Vector => Permission::VectorSearchIndexing,
        SearchClass::FullText => Permission::TextSearchIndexing,
    }
}

/// Whether a keyspace is the system's. As in Cassandra, a permission on all keyspaces does not hold
/// for it, so that not everybody who reads all data also reads the hashes of passwords.
pub(crate) fn is_of_system(keyspace: &str) -> bool {
    OPEN_KEYSPACES.contains(&keyspace) || OTHER_SYSTEM_KEYSPACES.contains(&keyspace)
}

fn is_open(table: &Table) -> bool {
    OPEN_KEYSPACES.contains(&table.keyspace.as_str())
        && !CLOSED_TABLES.contains(&table.name.as_str())
        && !is_watched_by_index_services(table)
}

/// Whether index services look at the table for changes of the schema. As in ScyllaDB, a role that
/// may index nothing may not read it: such a service would find no index, and say that it serves.
fn is_watched_by_index_services(table: &Table) -> bool {
    table.keyspace == "system" && table.name == "group0_history"
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schema::Role;

    use super::*;
    use crate::fixtures;

    fn with_grants(grants: &[(Resource, Permission)]) -> RoleRights {
        let mut catalog = fixtures::catalog();
        let role = Role {
            can_login: true,
            ..Role::default()
        };
        catalog.roles.insert("r".to_owned(), Arc::new(role));
        for (resource, permission) in grants {
            catalog.grant("r", resource.clone(), [*permission].into_iter().collect());
        }
        RoleRights::of(&catalog, "r").unwrap()
    }

    #[test]
    fn a_permission_holds_for_all_that_lies_in_its_resource() {
        let table = || Resource::Table("shop".to_owned(), "films".to_owned());
        let keyspace = || Resource::Keyspace("shop".to_owned());
        let tables = || Resource::AllTables("shop".to_owned());
        for (granted, on_table, on_tables, on_keyspace) in [
            (Resource::AllKeyspaces, true, true, true),
            (keyspace(), true, true, true),
            (tables(), true, true, false),
            (table(), true, false, false),
            (Resource::Keyspace("old".to_owned()), false, false, false),
        ] {
            let rights = with_grants(&[(granted.clone(), Permission::Select)]);
            let allow = |resource| rights.allow(Permission::Select, &resource);
            assert_eq!(allow(table()), on_table, "{granted}");
            assert_eq!(allow(tables()), on_tables, "{granted}");
            assert_eq!(allow(keyspace()), on_keyspace, "{granted}");
            assert!(!rights.allow(Permission::Modify, &table()), "{granted}");
        }
    }

    #[test]
    fn all_keyspaces_are_those_of_users() {
        let roles = Resource::Table("system_auth".to_owned(), "roles".to_owned());
        for (granted, may) in [
            (Resource::AllKeyspaces, false),
            (Resource::Keyspace("system_auth".to_owned()), true),
            (roles.clone(), true),
        ] {
            let rights = with_grants(&[(granted.clone(), Permission::Select)]);
            assert_eq!(rights.allow(Permission::Select, &roles), may, "{granted}");
        }
        let names = OPEN_KEYSPACES.iter().chain(&OTHER_SYSTEM_KEYSPACES);
        let names: Vec<_> = names.collect();
        let system = crate::system::SystemTables::new();
        for keyspace in system.keyspaces() {
            assert!(names.contains(&&&*keyspace.name), "{}", keyspace.name);
        }
    }

    #[test]
    fn an_index_service_reads_what_has_an_index_of_its_class_and_its_log() {
        let vector = Permission::VectorSearchIndexing;
        let text = Permission::TextSearchIndexing;
        for (classes, granted, reads) in [
            (&["vector_index"][..], vector, true),
            (&["vector_index"], text, false),
            (&["fulltext_index"], vector, false),
            (&["fulltext_index"], text, true),
            (&["fulltext_index", "vector_index"], vector, true),
            (&["fulltext_index", "vector_index"], text, true),
            (&[], vector, false),
            (&[], text, false),
        ] {
            let rights = with_grants(&[(Resource::AllKeyspaces, granted)]);
            let mut catalog = fixtures::catalog();
            fixtures::edit_table(&mut catalog, "shop", "films", |films| {
                let (_, index) = films.indexes.pop_first().unwrap();
                for class in classes {
                    let mut index = schema::SearchIndexMetadata::clone(&index);
                    (*class).clone_into(&mut index.class_name);
                    films.indexes.insert((*class).to_owned(), Arc::new(index));
                }
            });
            let may = |permission, name| {
                let table = catalog.table("shop", name).unwrap();
                rights.need_on_table(permission, table, &catalog).is_ok()
            };
            for name in ["films", "films_scylla_cdc_log"] {
                assert_eq!(
                    may(Permission::Select, name),
                    reads,
                    "{granted:?} {classes:?}"
                );
                assert!(!may(Permission::Modify, name) && !may(Permission::Alter, name));
            }
            assert!(!may(Permission::Select, "Odd Names"));
        }
    }

    #[test]
    fn roles_without_index_permissions_do_not_see_the_schema_history() {
        let system = crate::system::SystemTables::new();
        let history = system.table("system", "group0_history").unwrap();
        let local = system.table("system", "local").unwrap();
        let catalog = fixtures::catalog();
        let everywhere = |permission| with_grants(&[(Resource::AllKeyspaces, permission)]);
        for (rights, may) in [
            (with_grants(&[]), false),
            (everywhere(Permission::Select), false),
            (everywhere(Permission::VectorSearchIndexing), true),
            (everywhere(Permission::TextSearchIndexing), true),
        ] {
            let read = rights.need_on_table(Permission::Select, history, &catalog);
            assert_eq!(read.is_ok(), may);
            let local = rights.need_on_table(Permission::Select, local, &catalog);
            assert_eq!(local, Ok(()));
        }
        let refused = with_grants(&[]).need_on_table(Permission::Select, history, &catalog);
        let message = refused.unwrap_err().message;
        assert!(message.contains("VECTOR_SEARCH_INDEXING"), "{message}");
    }
}
