//! Changes of roles, checked and applied in one step of the catalog.
//!
//! Stricter than Cassandra: only superusers alter or drop a role that is one, give it to others or
//! take it from them, and give it an identity or take one. A role that was dropped, or may not log
//! in any more, changes nothing.

use std::sync::Arc;

use cql::ast::RoleStatement;
use cql::error::CqlError;
use net::tls::{IDENTITY_BYTES_MAX, is_identity};
use schema::{Catalog, Permission, PermissionSet, Resource, Role};
use uuid::Uuid;

use super::attributes::ResolvedAttributes;
use super::{insufficient, own};
use crate::security::access::{RoleRights, unauthorized};
use crate::statement::LoggedInRole;

/// The most roles. Each change of the schema copies their list.
const ROLES_MAX: usize = 10_000;
/// The most identities of a role. Each change of the role writes them all.
const IDENTITIES_MAX: usize = 100;
/// The longest name of a role, in bytes.
const NAME_BYTES_MAX: usize = 1_024;

/// A change of roles, with what it was resolved to.
pub(super) struct RoleChange {
    pub statement: RoleStatement,
    pub attributes: ResolvedAttributes,
    pub resource: Option<Resource>,
    pub permissions: PermissionSet,
    /// Whether the resource belongs to the system, so that the catalog does not list it.
    pub resource_is_of_system: bool,
    /// The role that executes the statement.
    pub actor: LoggedInRole,
}

impl RoleChange {
    /// Applies the change. Returns warnings.
    pub fn apply(&self, catalog: &mut Catalog) -> Result<Vec<String>, CqlError> {
        let rights = RoleRights::of_logged_in(catalog, &self.actor);
        let rights = rights.ok_or_else(|| insufficient(&self.actor))?;
        match &self.statement {
            RoleStatement::Create {
                role,
                if_not_exists,
                ..
            } => self.create(catalog, &rights, role, *if_not_exists)?,
            RoleStatement::Alter {
                role, if_exists, ..
            } => self.alter(catalog, &rights, role, *if_exists)?,
            RoleStatement::Drop { role, if_exists } => {
                self.drop_role(catalog, &rights, role, *if_exists)?;
            }
            RoleStatement::GrantRole { role, member } => {
                self.grant_role(catalog, &rights, role, member)?;
            }
            RoleStatement::RevokeRole { role, member } => {
                self.revoke_role(catalog, &rights, role, member)?;
            }
            RoleStatement::Grant { role, .. } => return self.grant(catalog, &rights, role, true),
            RoleStatement::Revoke { role, .. } => return self.grant(catalog, &rights, role, false),
            RoleStatement::AddIdentity {
                identity,
                role,
                if_not_exists,
            } => self.add_identity(catalog, &rights, identity, role, *if_not_exists)?,
            RoleStatement::DropIdentity {
                identity,
                if_exists,
            } => self.drop_identity(catalog, &rights, identity, *if_exists)?,
            RoleStatement::ListRoles { .. }
            | RoleStatement::ListUsers
            | RoleStatement::ListPermissions { .. } => {}
        }
        Ok(Vec::new())
    }

    fn need(
        &self,
        rights: &RoleRights,
        permission: Permission,
        on: &Resource,
    ) -> Result<(), CqlError> {
        match rights.allow(permission, on) {
            true => Ok(()),
            false => Err(insufficient(&self.actor)),
        }
    }

    fn create(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        name: &str,
        if_not_exists: bool,
    ) -> Result<(), CqlError> {
        self.need(rights, Permission::Create, &Resource::AllRoles)?;
        if self.attributes.superuser == Some(true) && !rights.is_superuser() {
            return Err(unauthorized(
                "Only superusers can create a role with superuser status",
            ));
        }
        check_name(name)?;
        if catalog.roles.contains_key(name) {
            return if_not_exists
                .then_some(())
                .ok_or_else(|| CqlError::invalid(format!("{name} already exists")));
        }
        if catalog.roles.len() >= ROLES_MAX {
            return Err(CqlError::invalid(format!(
                "There are {ROLES_MAX} roles already, which is the most: drop some, or let applications share a role"
            )));
        }
        let role = Role {
            id: Uuid::new_v4(),
            is_superuser: self.attributes.superuser.unwrap_or(false),
            can_login: self.attributes.login.unwrap_or(false),
            salted_hash: self.attributes.salted_hash.clone(),
            ..Role::default()
        };
        catalog.roles.insert(name.to_owned(), Arc::new(role));
        own(catalog, &self.actor, Resource::Role(name.to_owned()));
        Ok(())
    }

    fn alter(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        name: &str,
        if_exists: bool,
    ) -> Result<(), CqlError> {
        self.may_alter(catalog, rights, name)?;
        if self.attributes.is_empty() {
            return Err(CqlError::invalid("ALTER [ROLE|USER] can't be empty"));
        }
        let Some(role) = catalog.roles.get_mut(name) else {
            return if_exists
                .then_some(())
                .ok_or_else(|| CqlError::invalid(format!("Role {name} doesn't exist")));
        };
        let role = Arc::make_mut(role);
        role.is_superuser = self.attributes.superuser.unwrap_or(role.is_superuser);
        role.can_login = self.attributes.login.unwrap_or(role.can_login);
        if let Some(hash) = &self.attributes.salted_hash {
            role.salted_hash = Some(hash.clone());
        }
        Ok(())
    }

    fn may_alter(
        &self,
        catalog: &Catalog,
        rights: &RoleRights,
        name: &str,
    ) -> Result<(), CqlError> {
        if self.attributes.superuser.is_some() {
            if rights.has_role(name) {
                return Err(unauthorized(
                    "You aren't allowed to alter your own superuser status or that of a role granted to you",
                ));
            }
            if !rights.is_superuser() {
                return Err(unauthorized(
                    "Only superusers are allowed to alter superuser status",
                ));
            }
        }
        if rights.is_superuser() {
            return Ok(());
        }
        if name == &*self.actor {
            // A role changes nothing of itself but its password.
            return match self.attributes.login {
                Some(_) => Err(unauthorized("You aren't allowed to alter LOGIN")),
                None => Ok(()),
            };
        }
        self.need(rights, Permission::Alter, &Resource::Role(name.to_owned()))?;
        refuse_superuser(catalog, name, "alter a role")
    }

    fn drop_role(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        name: &str,
        if_exists: bool,
    ) -> Result<(), CqlError> {
        self.need(rights, Permission::Drop, &Resource::Role(name.to_owned()))?;
        if !rights.is_superuser() {
            refuse_superuser(catalog, name, "drop a role")?;
        }
        if !catalog.roles.contains_key(name) {
            return if_exists.then_some(()).ok_or_else(|| missing(name));
        }
        if name == &*self.actor {
            return Err(CqlError::invalid(
                "Cannot DROP primary role for current login",
            ));
        }
        catalog.remove_role(name);
        Ok(())
    }

    /// Refuses to give a role to a member, or to take it, without AUTHORIZE on the role, where it
    /// is a superuser's, and where one of them is missing.
    fn may_grant(
        &self,
        catalog: &Catalog,
        rights: &RoleRights,
        role: &str,
        member: &str,
    ) -> Result<(), CqlError> {
        let resource = Resource::Role(role.to_owned());
        self.need(rights, Permission::Authorize, &resource)?;
        if !rights.is_superuser() {
            refuse_superuser(catalog, role, "grant or revoke a role")?;
        }
        let mut names = [role, member].into_iter();
        let gone = names.find(|name| !catalog.roles.contains_key(*name));
        gone.map_or(Ok(()), |name| Err(missing(name)))
    }

    fn grant_role(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        role: &str,
        member: &str,
    ) -> Result<(), CqlError> {
        self.may_grant(catalog, rights, role, member)?;
        for (one, other) in [(member, role), (role, member)] {
            if catalog.roles_of(one).contains_key(other) {
                return Err(CqlError::invalid(format!("{one} is a member of {other}")));
            }
        }
        if let Some(member) = catalog.roles.get_mut(member) {
            Arc::make_mut(member).member_of.insert(role.to_owned());
        }
        Ok(())
    }

    fn revoke_role(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        role: &str,
        member: &str,
    ) -> Result<(), CqlError> {
        self.may_grant(catalog, rights, role, member)?;
        let of = catalog.roles.get_mut(member).map(Arc::make_mut);
        if !of.is_some_and(|of| of.member_of.remove(role)) {
            return Err(CqlError::invalid(format!(
                "{member} is not a member of {role}"
            )));
        }
        Ok(())
    }

    /// Gives or takes permissions. Returns a warning of those that were there, or were not there.
    fn grant(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        role: &str,
        gives: bool,
    ) -> Result<Vec<String>, CqlError> {
        let resource = self.resource.clone().unwrap_or(Resource::AllKeyspaces);
        rights.need(Permission::Authorize, &resource)?;
        for permission in self.permissions.iter() {
            rights.need(permission, &resource)?;
        }
        if !catalog.roles.contains_key(role) {
            return Err(CqlError::invalid(format!("Role {role} doesn't exist")));
        }
        if !self.resource_is_of_system && !catalog.has_resource(&resource) {
            return Err(CqlError::invalid(format!(
                "Resource {resource} doesn't exist"
            )));
        }
        let changed = match gives {
            true => catalog.grant(role, resource.clone(), self.permissions),
            false => catalog.revoke(role, &resource, self.permissions),
        };
        let others = self.permissions.without(changed);
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = others.iter().map(Permission::name).collect();
        let was = match gives {
            true => "already granted",
            false => "not granted",
        };
        Ok(vec![format!(
            "Role '{role}' was {was} {} on {resource}",
            names.join(", ")
        )])
    }

    fn add_identity(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        identity: &str,
        role: &str,
        if_not_exists: bool,
    ) -> Result<(), CqlError> {
        self.need(rights, Permission::Create, &Resource::AllRoles)?;
        // A user with the certificate becomes the role, as one who sets its password does. A role
        // gains no right by an identity of its own.
        if role != &*self.actor {
            self.need(rights, Permission::Alter, &Resource::Role(role.to_owned()))?;
        }
        if !rights.is_superuser() {
            refuse_superuser(catalog, role, "add an identity to a role")?;
        }
        if !is_identity(identity) {
            return Err(CqlError::invalid(format!(
                "No certificate proves this identity: it has 1 to {IDENTITY_BYTES_MAX} bytes and no control characters"
            )));
        }
        if !catalog.roles.contains_key(role) {
            return Err(CqlError::invalid(format!(
                "Can not add identity for non-existent role '{role}'"
            )));
        }
        if catalog.role_of_identity(identity).is_some() {
            return if_not_exists
                .then_some(())
                .ok_or_else(|| CqlError::invalid(format!("{identity} already exists")));
        }
        if let Some(known) = catalog.roles.get_mut(role) {
            if known.identities.len() >= IDENTITIES_MAX {
                return Err(CqlError::invalid(format!(
                    "The role {role} has {IDENTITIES_MAX} identities already, which is the most: drop some, or let certificates share an identity"
                )));
            }
            Arc::make_mut(known).identities.insert(identity.to_owned());
        }
        Ok(())
    }

    fn drop_identity(
        &self,
        catalog: &mut Catalog,
        rights: &RoleRights,
        identity: &str,
        if_exists: bool,
    ) -> Result<(), CqlError> {
        self.need(rights, Permission::Drop, &Resource::AllRoles)?;
        let Some(role) = catalog.role_of_identity(identity).map(str::to_owned) else {
            return if_exists
                .then_some(())
                .ok_or_else(|| CqlError::invalid(format!("identity '{identity}' doesn't exist")));
        };
        if !rights.is_superuser() {
            refuse_superuser(catalog, &role, "drop an identity of a role")?;
        }
        if let Some(role) = catalog.roles.get_mut(&role) {
            Arc::make_mut(role).identities.remove(identity);
        }
        Ok(())
    }
}

fn missing(role: &str) -> CqlError {
    CqlError::invalid(format!("{role} doesn't exist"))
}

fn check_name(name: &str) -> Result<(), CqlError> {
    match name.len() {
        0 => Err(CqlError::invalid("Role name can't be an empty string")),
        1..=NAME_BYTES_MAX => Ok(()),
        _ => Err(CqlError::invalid(format!(
            "The name of a role has at most {NAME_BYTES_MAX} bytes"
        ))),
    }
}

/// Refuses to a role without superuser status what it would do to a role that has it.
fn refuse_superuser(catalog: &Catalog, name: &str, what: &str) -> Result<(), CqlError> {
    let mut roles = catalog.roles_of(name).into_values();
    match roles.any(|role| role.is_superuser) {
        true => Err(unauthorized(format!(
            "Only superusers can {what} with superuser status"
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::{RoleAttributes, RolePassword};
    use cql::secret::Secret;

    use super::*;
    use crate::fixtures;

    /// A catalog with the superuser `chief`, its member `deputy`, and `admin`, which has all
    /// permissions on roles.
    fn catalog() -> Catalog {
        let mut catalog = fixtures::catalog();
        let role = |is_superuser, member_of: &[&str]| Role {
            is_superuser,
            can_login: true,
            member_of: member_of.iter().map(|&name| name.to_owned()).collect(),
            identities: is_superuser
                .then(|| "chief's".to_owned())
                .into_iter()
                .collect(),
            ..Role::default()
        };
        for (name, role) in [
            ("chief", role(true, &[])),
            ("deputy", role(false, &["chief"])),
            ("admin", role(false, &[])),
            ("reader", role(false, &[])),
        ] {
            catalog.roles.insert(name.to_owned(), Arc::new(role));
        }
        let all = Resource::AllRoles.applicable();
        catalog.grant("admin", Resource::AllRoles, all);
        catalog
    }

    fn change(actor: &str, statement: RoleStatement) -> RoleChange {
        RoleChange {
            attributes: ResolvedAttributes::default(),
            statement,
            resource: None,
            permissions: PermissionSet::default(),
            resource_is_of_system: false,
            actor: actor.into(),
        }
    }

    fn apply(catalog: &mut Catalog, actor: &str, statement: RoleStatement) -> Result<(), String> {
        let changed = change(actor, statement).apply(catalog);
        changed.map(drop).map_err(|error| error.message)
    }

    #[test]
    fn the_right_to_alter_roles_makes_no_superuser() {
        let mut catalog = catalog();
        let grant = |role: &str, member: &str| RoleStatement::GrantRole {
            role: role.to_owned(),
            member: member.to_owned(),
        };
        let text = "Only superusers can grant or revoke a role with superuser status";
        for role in ["chief", "deputy"] {
            let refused = apply(&mut catalog, "admin", grant(role, "admin"));
            assert_eq!(refused.unwrap_err(), text, "{role}");
        }
        let revoke = RoleStatement::RevokeRole {
            role: "chief".to_owned(),
            member: "deputy".to_owned(),
        };
        let refused = apply(&mut catalog, "admin", revoke.clone());
        assert_eq!(refused.unwrap_err(), text);
        let drop_identity = RoleStatement::DropIdentity {
            identity: "chief's".to_owned(),
            if_exists: false,
        };
        let refused = apply(&mut catalog, "admin", drop_identity.clone());
        assert_eq!(
            refused.unwrap_err(),
            "Only superusers can drop an identity of a role with superuser status"
        );
        apply(&mut catalog, "admin", grant("reader", "admin")).unwrap();
        apply(&mut catalog, "chief", revoke).unwrap();
        apply(&mut catalog, "chief", drop_identity).unwrap();
    }

    /// The role that the user of a statement can log in as from then on, or has the rights of:
    /// by a password, an identity or a membership of its own. The new role of CREATE ROLE has no
    /// rights.
    fn becomes(statement: &RoleStatement) -> Option<&str> {
        match statement {
            RoleStatement::Alter {
                role, attributes, ..
            } => attributes.password.as_ref().map(|_| &**role),
            RoleStatement::GrantRole { role, .. } | RoleStatement::AddIdentity { role, .. } => {
                Some(role)
            }
            RoleStatement::Create { .. }
            | RoleStatement::Drop { .. }
            | RoleStatement::RevokeRole { .. }
            | RoleStatement::Grant { .. }
            | RoleStatement::Revoke { .. }
            | RoleStatement::ListRoles { .. }
            | RoleStatement::ListUsers
            | RoleStatement::ListPermissions { .. }
            | RoleStatement::DropIdentity { .. } => None,
        }
    }

    /// Each kind of statement about the role `boss`, with the permissions on all roles that it
    /// needs.
    fn statements() -> [(RoleStatement, &'static [Permission]); 9] {
        use Permission::{Alter, Authorize, Create, Drop};
        let role = || "boss".to_owned();
        let password = RoleAttributes {
            password: Some(RolePassword::Plain(Secret::new("secret".to_owned()))),
            ..RoleAttributes::default()
        };
        let cannot_log_in = RoleAttributes {
            login: Some(false),
            ..RoleAttributes::default()
        };
        let alter = |attributes: &RoleAttributes| RoleStatement::Alter {
            role: role(),
            if_exists: false,
            attributes: attributes.clone(),
        };
        let create = RoleStatement::Create {
            role: "another".to_owned(),
            if_not_exists: false,
            attributes: password.clone(),
        };
        let drop = RoleStatement::Drop {
            role: role(),
            if_exists: false,
        };
        let grant = RoleStatement::GrantRole {
            role: role(),
            member: "clerk".to_owned(),
        };
        let revoke = RoleStatement::RevokeRole {
            role: role(),
            member: "reader".to_owned(),
        };
        let add_identity = RoleStatement::AddIdentity {
            identity: "clerk's".to_owned(),
            role: role(),
            if_not_exists: false,
        };
        let drop_identity = RoleStatement::DropIdentity {
            identity: "boss's".to_owned(),
            if_exists: false,
        };
        [
            (create, &[Create]),
            (alter(&password), &[Alter]),
            (alter(&cannot_log_in), &[Alter]),
            (drop, &[Drop]),
            (grant, &[Authorize]),
            (revoke, &[Authorize]),
            (add_identity, &[Create, Alter]),
            (drop_identity, &[Drop]),
            (RoleStatement::ListUsers, &[]),
        ]
    }

    /// That statement about the superuser `chief`; `None` for one by which no one can become that
    /// role.
    fn of_chief(statement: &RoleStatement) -> Option<RoleStatement> {
        becomes(statement)?;
        let mut of_chief = statement.clone();
        match &mut of_chief {
            RoleStatement::Alter { role, .. }
            | RoleStatement::GrantRole { role, .. }
            | RoleStatement::AddIdentity { role, .. } => "chief".clone_into(role),
            _ => {}
        }
        Some(of_chief)
    }

    /// A catalog in which `clerk` has these permissions on all roles, and `reader` is a member of
    /// `boss`.
    fn with_clerk(permissions: PermissionSet) -> Catalog {
        let mut catalog = catalog();
        let role = |member_of: &[&str], identities: &[&str]| Role {
            can_login: true,
            member_of: member_of.iter().map(|&name| name.to_owned()).collect(),
            identities: identities.iter().map(|&name| name.to_owned()).collect(),
            ..Role::default()
        };
        for (name, role) in [
            ("boss", role(&[], &["boss's"])),
            ("clerk", role(&[], &[])),
            ("reader", role(&["boss"], &[])),
        ] {
            catalog.roles.insert(name.to_owned(), Arc::new(role));
        }
        if !permissions.is_empty() {
            catalog.grant("clerk", Resource::AllRoles, permissions);
        }
        catalog
    }

    #[test]
    fn a_role_that_can_become_another_may_alter_or_grant_it() {
        use Permission::{Alter, Authorize, Create, Describe, Drop};
        let all = [Create, Alter, Drop, Authorize, Describe];
        for granted in 0..1 << all.len() {
            let permissions = all.into_iter().enumerate();
            let permissions = permissions.filter(|(bit, _)| granted >> bit & 1 == 1);
            let permissions: PermissionSet = permissions.map(|(_, each)| each).collect();
            let catalog = with_clerk(permissions);
            for (statement, needed) in statements() {
                let run = |statement: &RoleStatement| {
                    let change = RoleChange {
                        attributes: ResolvedAttributes::of(statement).unwrap(),
                        ..change("clerk", statement.clone())
                    };
                    change.apply(&mut catalog.clone())
                };
                let done = run(&statement);
                let may = needed.iter().all(|needed| permissions.has(*needed));
                assert_eq!(done.is_ok(), may, "{permissions:?} {statement:?} {done:?}");
                if done.is_ok() && becomes(&statement).is_some() {
                    assert!(permissions.has(Alter) || permissions.has(Authorize));
                }
                // Only a superuser can become one.
                let of_chief = of_chief(&statement);
                assert!(of_chief.is_none_or(|statement| run(&statement).is_err()));
            }
        }
    }

    #[test]
    fn a_role_that_may_create_roles_adds_an_identity_to_itself_without_alter() {
        let add = |role: &str| RoleStatement::AddIdentity {
            identity: "clerk's".to_owned(),
            role: role.to_owned(),
            if_not_exists: false,
        };
        let mut catalog = with_clerk([Permission::Create].into_iter().collect());
        apply(&mut catalog, "clerk", add("boss")).unwrap_err();
        apply(&mut catalog, "clerk", add("clerk")).unwrap();
        assert_eq!(catalog.role_of_identity("clerk's"), Some("clerk"));
        let mut without = with_clerk(PermissionSet::default());
        apply(&mut without, "clerk", add("clerk")).unwrap_err();
    }

    #[test]
    fn a_role_has_so_many_identities_and_no_more() {
        let mut catalog = catalog();
        let mut add = |number: usize| {
            let statement = RoleStatement::AddIdentity {
                identity: format!("client {number}"),
                role: "reader".to_owned(),
                if_not_exists: false,
            };
            apply(&mut catalog, "admin", statement)
        };
        for number in 0..IDENTITIES_MAX {
            add(number).unwrap();
        }
        let refused = add(IDENTITIES_MAX).unwrap_err();
        assert!(refused.contains("100 identities already"), "{refused}");
    }

    #[test]
    fn an_identity_that_no_certificate_proves_is_refused() {
        let mut catalog = catalog();
        let mut add = |identity: String| {
            let statement = RoleStatement::AddIdentity {
                identity,
                role: "reader".to_owned(),
                if_not_exists: false,
            };
            apply(&mut catalog, "admin", statement)
        };
        add("x".repeat(IDENTITY_BYTES_MAX)).unwrap();
        for identity in [
            "x".repeat(IDENTITY_BYTES_MAX + 1),
            String::new(),
            "a\nb".to_owned(),
        ] {
            let refused = add(identity).unwrap_err();
            assert!(refused.starts_with("No certificate proves"), "{refused}");
        }
    }
}
