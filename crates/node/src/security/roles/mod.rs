//! Statements about roles: CREATE, ALTER, DROP and LIST of roles and users, GRANT and REVOKE of
//! roles and permissions, and identities of certificates.
//!
//! Only a role that has logged in may execute them. What each needs is checked in the step that
//! changes the catalog ([`change`]), so that no grant that was just taken away is used. Checks and
//! texts are those of Cassandra; some are stricter, as else a role that may alter roles could make
//! itself a superuser ([`change`] names them).

mod attributes;
mod change;
mod list;
#[cfg(test)]
mod tests;

use attributes::ResolvedAttributes;
use cql::ast::{PermissionNames, ResourceName, RoleStatement};
use cql::error::CqlError;
use schema::{Catalog, Permission, PermissionSet, Resource};
use storage::{CatalogChangeError, Storage};

use crate::security::access::{AuthService, unauthorized};
use crate::statement::{
    ExecutionOutcome, ExecutionParameters, ExecutionResult, LoggedInRole, keyspace_name,
    storage_error,
};
use crate::system::SystemTables;

/// A prepared statement about roles.
#[derive(Debug)]
pub struct RolesPlan {
    statement: RoleStatement,
    /// The resource that the statement names.
    resource: Option<Resource>,
    /// The permissions that the statement names, as far as the resource can have them.
    permissions: PermissionSet,
}

/// Resolves the resource and the permissions of a statement. `keyspace` is the one in use.
///
/// # Errors
/// Resources that can't be here, and permissions that the resource can't have.
pub fn prepare(keyspace: Option<&str>, statement: &RoleStatement) -> Result<RolesPlan, CqlError> {
    let (named, permissions) = match statement {
        RoleStatement::Grant {
            permissions,
            resource,
            ..
        }
        | RoleStatement::Revoke {
            permissions,
            resource,
            ..
        } => (Some(resource), Some(permissions)),
        RoleStatement::ListPermissions {
            permissions,
            resource,
            ..
        } => (resource.as_ref(), Some(permissions)),
        _ => (None, None),
    };
    let resource = named.map(|named| resource(keyspace, named)).transpose()?;
    let is_list = matches!(statement, RoleStatement::ListPermissions { .. });
    // A list also shows what was granted on the things around the resource.
    let applicable = match &resource {
        Some(resource) if !is_list => resource.applicable(),
        _ => Permission::EVERY.into_iter().collect(),
    };
    let wanted = match permissions {
        None => PermissionSet::default(),
        Some(PermissionNames::All) => applicable,
        Some(PermissionNames::Some(names)) => {
            let names = names.iter();
            names
                .filter_map(|name| Permission::from_name(name))
                .collect()
        }
    };
    let permissions = wanted.common(applicable);
    if let Some(resource) = &resource
        && permissions.is_empty()
        && !is_list
    {
        return Err(CqlError::syntax(format!(
            "Resource type {} does not support any of the requested permissions",
            resource.kind()
        )));
    }
    Ok(RolesPlan {
        statement: statement.clone(),
        resource,
        permissions,
    })
}

fn resource(keyspace: Option<&str>, named: &ResourceName) -> Result<Resource, CqlError> {
    Ok(match named {
        ResourceName::AllKeyspaces => Resource::AllKeyspaces,
        ResourceName::Keyspace(name) => Resource::Keyspace(name.clone()),
        ResourceName::AllTables(name) => Resource::AllTables(name.clone()),
        ResourceName::Table(name) => {
            let keyspace = keyspace_name(name.keyspace.as_deref(), keyspace)?;
            Resource::Table(keyspace.to_owned(), name.name.clone())
        }
        ResourceName::AllRoles => Resource::AllRoles,
        ResourceName::Role(role) => Resource::Role(role.clone()),
        ResourceName::AllFunctions => Resource::AllFunctions,
        ResourceName::FunctionsOf(name) => Resource::FunctionsOf(name.clone()),
        ResourceName::Function(name) => {
            let keyspace = keyspace_name(name.keyspace.as_deref(), keyspace)?;
            return Err(CqlError::invalid(format!(
                "Resource <function {keyspace}.{}> doesn't exist: there are built-in functions alone, which everybody may call",
                name.name
            )));
        }
        ResourceName::Managed => {
            return Err(CqlError::invalid(
                "Annulus has no MBeans: what operators do goes by its HTTP API and its command line",
            ));
        }
    })
}

/// Executes a plan.
///
/// # Errors
/// Unauthorized if no role is logged in or the role may not do this; unknown roles and resources.
pub async fn execute(
    storage: &Storage,
    access: &AuthService,
    system: &SystemTables,
    plan: &RolesPlan,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let actor = parameters.actor.role()?.clone();
    let is_of_system = is_of_system(system, plan.resource.as_ref());
    let listed = {
        let catalog = storage.catalog();
        let rights = access.rights(&catalog, &actor)?;
        list::answer(plan, &catalog, &rights, is_of_system, &parameters.memory)?
    };
    if let Some(answer) = listed {
        return Ok(answer);
    }
    let attributes = ResolvedAttributes::of(&plan.statement)?;
    let statement = plan.statement.clone();
    let (resource, permissions) = (plan.resource.clone(), plan.permissions);
    let mut change = change::RoleChange {
        statement,
        attributes,
        resource,
        permissions,
        resource_is_of_system: is_of_system,
        actor: actor.clone(),
    };
    // A hash costs as much as a thousand reads, so the password of a refused statement is not
    // hashed.
    change.apply(&mut Catalog::clone(&storage.catalog()))?;
    let hashing = &access.hashing;
    let hashed = change.attributes.hash(&plan.statement, &actor, hashing);
    hashed.await?;
    let changed = storage.change_catalog(move |catalog: &mut Catalog| change.apply(catalog));
    let warnings = changed.await.map_err(|error| match error {
        CatalogChangeError::Refused(error) => error,
        CatalogChangeError::Storage(error) => storage_error(error),
    })?;
    tracing::info!(
        role = &*actor,
        change = described(&plan.statement),
        "roles were changed"
    );
    Ok(ExecutionResult {
        outcome: ExecutionOutcome::Void,
        warnings,
    })
}

/// Whether the resource is a system keyspace or a table in one, which the catalog does not list.
fn is_of_system(system: &SystemTables, resource: Option<&Resource>) -> bool {
    match resource {
        Some(Resource::Keyspace(keyspace) | Resource::AllTables(keyspace)) => {
            system.keyspace(keyspace).is_some()
        }
        Some(Resource::Table(keyspace, table)) => system.table(keyspace, table).is_some(),
        _ => false,
    }
}

/// The kind of a change, for the log.
fn described(statement: &RoleStatement) -> &'static str {
    match statement {
        RoleStatement::Create { .. } => "CREATE ROLE",
        RoleStatement::Alter { .. } => "ALTER ROLE",
        RoleStatement::Drop { .. } => "DROP ROLE",
        RoleStatement::GrantRole { .. } | RoleStatement::Grant { .. } => "GRANT",
        RoleStatement::RevokeRole { .. } | RoleStatement::Revoke { .. } => "REVOKE",
        RoleStatement::AddIdentity { .. } => "ADD IDENTITY",
        RoleStatement::DropIdentity { .. } => "DROP IDENTITY",
        RoleStatement::ListRoles { .. }
        | RoleStatement::ListUsers
        | RoleStatement::ListPermissions { .. } => "LIST",
    }
}

/// Makes the role the owner of what it has made.
pub(crate) fn own(catalog: &mut Catalog, role: &LoggedInRole, made: Resource) {
    let all = made.applicable();
    // Another role of the name has not made it.
    if role.is_in(catalog) {
        catalog.grant(role, made, all);
    }
}

/// The error of a role that lacks the right to change roles.
fn insufficient(role: &str) -> CqlError {
    unauthorized(format!(
        "User {role} does not have sufficient privileges to perform the requested operation"
    ))
}
