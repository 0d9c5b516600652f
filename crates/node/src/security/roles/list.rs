//! `LIST ROLES`, `LIST USERS` and `LIST PERMISSIONS`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use client_memory::{MemoryAccount, MemoryCharge};
use cql::ast::RoleStatement;
use cql::error::CqlError;
use schema::{Catalog, Permission, PermissionSet, Resource, Role};
use value::CqlType;

use super::RolesPlan;
use crate::security::access::{RoleRights, unauthorized};
use crate::statement::{
    ColumnSpec, ExecutionOutcome, ExecutionResult, ResultRows, answer_memory_error,
};

/// The answer of a statement that lists; `None` for one that changes something. `is_of_system` says
/// whether the resource belongs to the system, so that the catalog does not list it.
pub(super) fn answer(
    plan: &RolesPlan,
    catalog: &Catalog,
    rights: &RoleRights,
    is_of_system: bool,
    memory: &MemoryAccount,
) -> Result<Option<ExecutionResult>, CqlError> {
    let list = RoleListing {
        catalog,
        rights,
        memory,
    };
    let outcome = match &plan.statement {
        RoleStatement::ListRoles { of, recursive } => list.roles(of.as_deref(), *recursive)?,
        RoleStatement::ListUsers => list.users()?,
        RoleStatement::ListPermissions { of, recursive, .. } => {
            list.permissions(plan, of.as_deref(), *recursive, is_of_system)?
        }
        _ => return Ok(None),
    };
    Ok(Some(ExecutionResult {
        outcome,
        warnings: Vec::new(),
    }))
}

/// The longest list, in bytes. A list is one answer without pages.
const LIST_BYTES_MAX: usize = 16 << 20;

struct RoleListing<'a> {
    catalog: &'a Catalog,
    rights: &'a RoleRights,
    memory: &'a MemoryAccount,
}

impl<'a> RoleListing<'a> {
    fn roles(&self, of: Option<&str>, recursive: bool) -> Result<ExecutionOutcome, CqlError> {
        let sees_all = self.rights.allow(Permission::Describe, &Resource::AllRoles);
        let roles = match of {
            Some(of) => {
                if !sees_all && !self.rights.has_role(of) {
                    return Err(unauthorized(format!(
                        "You are not authorized to view roles granted to {of} "
                    )));
                }
                self.known(of)?;
                self.granted_to(of, recursive)
            }
            None if sees_all => self.every(),
            None => self.granted_to(self.rights.role(), recursive),
        };
        let columns = [
            ("role", CqlType::Text),
            ("super", CqlType::Boolean),
            ("login", CqlType::Boolean),
            ("options", options_type()),
            ("datacenters", CqlType::Text),
        ];
        let mut rows = RoleRowsWriter::new("roles", columns, self.memory);
        for (name, role) in roles {
            rows.text(name);
            rows.boolean(role.is_superuser);
            rows.boolean(role.can_login);
            rows.empty_map();
            rows.text("ALL");
            rows.end_row()?;
        }
        Ok(rows.finish())
    }

    fn users(&self) -> Result<ExecutionOutcome, CqlError> {
        let sees_all = self.rights.allow(Permission::Describe, &Resource::AllRoles);
        let roles = match sees_all {
            true => self.every(),
            false => self.granted_to(self.rights.role(), true),
        };
        let columns = [
            ("name", CqlType::Text),
            ("super", CqlType::Boolean),
            ("datacenters", CqlType::Text),
        ];
        let mut rows = RoleRowsWriter::new("users", columns, self.memory);
        for (name, _) in roles.into_iter().filter(|(_, role)| role.can_login) {
            let mut roles = self.catalog.roles_of(name).into_values();
            rows.text(name);
            rows.boolean(roles.any(|role| role.is_superuser));
            rows.text("ALL");
            rows.end_row()?;
        }
        Ok(rows.finish())
    }

    fn permissions(
        &self,
        plan: &RolesPlan,
        of: Option<&str>,
        recursive: bool,
        is_of_system: bool,
    ) -> Result<ExecutionOutcome, CqlError> {
        if let Some(of) = of {
            self.known(of)?;
        }
        if let Some(resource) = &plan.resource
            && !is_of_system
            && !self.catalog.has_resource(resource)
        {
            return Err(CqlError::invalid(format!("{resource} doesn't exist")));
        }
        let may_see = self.rights.is_superuser() || of.is_some_and(|of| self.rights.has_role(of));
        if !may_see {
            let whose = of.map_or("everyone's".to_owned(), |of| format!("{of}'s"));
            return Err(unauthorized(format!(
                "You are not authorized to view {whose} permissions"
            )));
        }
        let roles = of.map_or_else(|| self.every(), |of| self.catalog.roles_of(of));
        let wanted: Option<Vec<Resource>> = plan.resource.as_ref().map(|resource| {
            let chain = resource.chain();
            chain.take(if recursive { usize::MAX } else { 1 }).collect()
        });
        let columns = ["role", "username", "resource", "permission"];
        let columns = columns.map(|name| (name, CqlType::Text));
        let mut rows = RoleRowsWriter::new("permissions", columns, self.memory);
        for (name, role) in roles {
            for (resource, permissions) in by_path(role) {
                let is_wanted = wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted.contains(resource));
                let shown = permissions.common(plan.permissions);
                for permission in shown.iter().filter(|_| is_wanted) {
                    rows.text(name);
                    rows.text(name);
                    rows.text(&resource.to_string());
                    rows.text(permission.name());
                    rows.end_row()?;
                }
            }
        }
        Ok(match rows.is_empty() {
            true => ExecutionOutcome::Void,
            false => rows.finish(),
        })
    }

    fn every(&self) -> BTreeMap<&'a str, &'a Role> {
        let roles = self.catalog.roles.iter();
        roles.map(|(name, role)| (name.as_str(), &**role)).collect()
    }

    fn granted_to(&self, name: &str, recursive: bool) -> BTreeMap<&'a str, &'a Role> {
        let mut roles = self.catalog.roles_of(name);
        if !recursive && let Some(role) = self.catalog.roles.get(name) {
            roles.retain(|each, _| *each == name || role.member_of.contains(*each));
        }
        roles
    }

    fn known(&self, role: &str) -> Result<(), CqlError> {
        match self.catalog.roles.contains_key(role) {
            true => Ok(()),
            false => Err(CqlError::invalid(format!("<role {role}> doesn't exist"))),
        }
    }
}

/// The grants of a role in the order of their resources' paths.
fn by_path(role: &Role) -> Vec<(&Resource, PermissionSet)> {
    let grants = role.grants.iter();
    let mut grants: Vec<_> = grants
        .map(|(resource, granted)| (resource, *granted))
        .collect();
    grants.sort_by_cached_key(|(resource, _)| resource.path());
    grants
}

/// The rows of a list while they are written.
struct RoleRowsWriter {
    columns: Arc<[ColumnSpec]>,
    body: BytesMut,
    cells: usize,
    /// The memory that the body is charged for.
    charge: MemoryCharge,
}

/// The bytes that a list is charged ahead of its size.
const AHEAD_BYTES: usize = 16 << 10;

fn options_type() -> CqlType {
    CqlType::Map {
        key: Box::new(CqlType::Text),
        value: Box::new(CqlType::Text),
        frozen: false,
    }
}

impl RoleRowsWriter {
    fn new<const N: usize>(
        table: &str,
        columns: [(&str, CqlType); N],
        memory: &MemoryAccount,
    ) -> RoleRowsWriter {
        let columns = columns.map(|(name, cql_type)| ColumnSpec {
            keyspace: "system_auth".into(),
            table: table.into(),
            name: name.into(),
            cql_type,
        });
        RoleRowsWriter {
            columns: columns.into(),
            body: BytesMut::new(),
            cells: 0,
            charge: memory.charge(),
        }
    }

    fn cell(&mut self, bytes: &[u8]) {
        self.body.put_u32(bytes.len() as u32);
        self.body.put_slice(bytes);
        self.cells += 1;
    }

    fn text(&mut self, text: &str) {
        self.cell(text.as_bytes());
    }

    fn boolean(&mut self, value: bool) {
        self.cell(&[u8::from(value)]);
    }

    fn empty_map(&mut self) {
        self.cell(&0_i32.to_be_bytes());
    }

    /// Ends a row: charges for it.
    ///
    /// # Errors
    /// If there is no memory for the list, or it is too long.
    fn end_row(&mut self) -> Result<(), CqlError> {
        if self.body.len() > LIST_BYTES_MAX {
            return Err(CqlError::invalid(
                "The list of roles or permissions has more than 16 MiB: list those of one role or on one resource",
            ));
        }
        if self.body.len() > self.charge.bytes() {
            let charged = self.charge.resize(self.body.len() + AHEAD_BYTES);
            charged.map_err(|_| answer_memory_error(self.body.len()))?;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.cells == 0
    }

    fn finish(mut self) -> ExecutionOutcome {
        // Shrinking a charge never fails.
        let _ = self.charge.resize(self.body.len());
        ExecutionOutcome::Rows(ResultRows {
            count: (self.cells / self.columns.len()) as u32,
            columns: self.columns,
            body: self.body,
            paging_state: None,
            charge: Some(self.charge),
        })
    }
}
