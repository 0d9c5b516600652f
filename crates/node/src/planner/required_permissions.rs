//! The permissions that each statement needs, as Cassandra requires them.

use cql::error::CqlError;
use schema::{Catalog, Permission};

use super::StatementPlan;
use crate::security::access::{AuthService, RoleRights};
use crate::statement::Actor;

impl StatementPlan {
    /// Refuses a statement that the actor may not execute.
    ///
    /// # Errors
    /// Unauthorized, with the permission that is missing.
    pub fn check_rights(
        &self,
        access: &AuthService,
        catalog: &Catalog,
        actor: &Actor,
    ) -> Result<(), CqlError> {
        match actor {
            Actor::Anybody => Ok(()),
            Actor::Role(role) => {
                let rights = access.rights(catalog, role)?;
                check(self, &rights, catalog)
            }
        }
    }
}

/// Refuses a plan that needs more than the rights. Statements about roles check their own needs.
fn check(plan: &StatementPlan, rights: &RoleRights, catalog: &Catalog) -> Result<(), CqlError> {
    match plan {
        StatementPlan::Select(plan) => {
            rights.need_on_table(Permission::Select, plan.selected_table(), catalog)
        }
        StatementPlan::Modify(plan) => plan.written_tables().try_for_each(|written| {
            rights.need_on_table(Permission::Modify, written.table, catalog)?;
            match written.is_conditional {
                // The answer of a refused condition shows values.
                true => rights.need_on_table(Permission::Select, written.table, catalog),
                false => Ok(()),
            }
        }),
        StatementPlan::Schema(plan) => {
            let (permission, resource) = plan.need(catalog);
            rights.need(permission, &resource)
        }
        StatementPlan::Roles(_)
        | StatementPlan::Describe(_)
        | StatementPlan::Nothing
        | StatementPlan::Use { .. } => Ok(()),
    }
}
