//! Changes of the schema: CREATE, ALTER and DROP of keyspaces, user types, tables and indexes.
//!
//! A statement becomes a [`SchemaPlan`] after the checks that need no schema. The other checks run
//! when the plan is applied to the catalog, in one step of the storage. So of two statements at the
//! same time, each sees all of the other's changes or none.

mod alter_table;
mod cdc;
mod column_type;
mod compaction;
mod compression;
mod counters;
mod create_table;
mod guarded;
mod ignored_options;
mod indexes;
mod keyspace;
mod names;
mod properties;
mod readded_columns;
mod replication;
mod required_permissions;
mod retry;
mod row_ttl;
mod table_options;
mod user_type;

use std::sync::Arc;
use std::time::Duration;

use alter_table::{AlterTablePlan, DropTablePlan};
use cql::ast::{Statement, TableName};
use cql::error::{CqlError, ErrorKind};
use create_table::CreateTablePlan;
use indexes::{CreateIndexPlan, DropIndexPlan};
use keyspace::{AlterKeyspacePlan, CreateKeyspacePlan, DropKeyspacePlan};
use schema::{Catalog, Resource, Table, log_table_name};
use storage::CatalogChangeError;
use storage::clock::ServerClock;
use user_type::{AlterTypePlan, CreateTypePlan, DropTypePlan};
use value::timeuuid;

use crate::database::CqlDatabase;
use crate::guardrails::Guardrails;
use crate::security::{access, roles};
use crate::statement::{
    Actor, CatalogChange, CatalogChangeKind, ChangedObject, ExecutionOutcome, ExecutionResult,
    keyspace_name, storage_error,
};

/// The longest time that CREATE INDEX waits for a secondary index to be built, as for one on
/// vectors.
const BUILT_WITHIN: Duration = Duration::from_secs(5);

/// A prepared statement that changes the schema.
#[derive(Clone, Debug)]
pub struct SchemaPlan {
    work: DefinitionPlan,
}

#[derive(Clone, Debug)]
enum DefinitionPlan {
    CreateKeyspace(CreateKeyspacePlan),
    AlterKeyspace(AlterKeyspacePlan),
    DropKeyspace(DropKeyspacePlan),
    CreateType(CreateTypePlan),
    AlterType(AlterTypePlan),
    DropType(DropTypePlan),
    CreateTable(Box<CreateTablePlan>),
    AlterTable(Box<AlterTablePlan>),
    DropTable(DropTablePlan),
    CreateIndex(CreateIndexPlan),
    DropIndex(DropIndexPlan),
}

/// The result of applying a plan to the catalog.
#[derive(Debug)]
enum ApplyOutcome {
    /// No change: `IF NOT EXISTS` or `IF EXISTS` made the statement unnecessary, or it changes
    /// nothing.
    Nothing,
    Changed(CatalogChange),
}

impl ApplyOutcome {
    fn keyspace(kind: CatalogChangeKind, keyspace: &str) -> Self {
        ApplyOutcome::Changed(CatalogChange {
            kind,
            keyspace: keyspace.to_owned(),
            object: ChangedObject::Keyspace,
        })
    }

    fn table(kind: CatalogChangeKind, keyspace: &str, table: &str) -> Self {
        ApplyOutcome::Changed(CatalogChange {
            kind,
            keyspace: keyspace.to_owned(),
            object: ChangedObject::Table(table.to_owned()),
        })
    }

    /// The resources that are new, which belong to the role that has made them: a table, and its
    /// log if it has one.
    fn made(&self, catalog: &Catalog) -> Vec<Resource> {
        let table = |keyspace: &str, name: &str| Resource::Table(keyspace.into(), name.into());
        match self {
            ApplyOutcome::Changed(CatalogChange {
                kind: CatalogChangeKind::Created,
                keyspace,
                object,
            }) => match object {
                ChangedObject::Keyspace => vec![Resource::Keyspace(keyspace.clone())],
                ChangedObject::Table(name) => {
                    let made = catalog.table(keyspace, name);
                    let log = made.filter(|made| made.log.is_some());
                    let log = log.map(|_| table(keyspace, &log_table_name(name)));
                    std::iter::once(table(keyspace, name)).chain(log).collect()
                }
                ChangedObject::Type(_) => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn user_type(kind: CatalogChangeKind, keyspace: &str, name: &str) -> Self {
        ApplyOutcome::Changed(CatalogChange {
            kind,
            keyspace: keyspace.to_owned(),
            object: ChangedObject::Type(name.to_owned()),
        })
    }
}

/// Prepares a statement, with the checks that need no schema.
///
/// # Errors
/// Names, types and options that no schema allows, and changes of system keyspaces.
pub fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    statement: &Statement,
) -> Result<SchemaPlan, CqlError> {
    let user_keyspace = |own: Option<&str>| -> Result<String, CqlError> {
        let name = keyspace_name(own, keyspace)?;
        refuse_system(database, name)?;
        Ok(name.to_owned())
    };
    let keyspace_of = |table: &TableName| user_keyspace(table.keyspace.as_deref());
    let data_center = database.system.data_center();
    let work = match statement {
        Statement::CreateKeyspace(create) => {
            refuse_system(database, &create.name)?;
            DefinitionPlan::CreateKeyspace(CreateKeyspacePlan::prepare(create, data_center)?)
        }
        Statement::AlterKeyspace {
            name,
            if_exists,
            options,
        } => {
            refuse_system(database, name)?;
            let plan = AlterKeyspacePlan::prepare(name, *if_exists, options, data_center)?;
            DefinitionPlan::AlterKeyspace(plan)
        }
        Statement::DropKeyspace { name, if_exists } => {
            refuse_system(database, name)?;
            DefinitionPlan::DropKeyspace(DropKeyspacePlan {
                name: name.clone(),
                if_exists: *if_exists,
            })
        }
        Statement::CreateType(_) | Statement::AlterType(_) | Statement::DropType { .. } => {
            prepare_user_type(statement, keyspace_of)?
        }
        Statement::CreateTable(create) => {
            let keyspace = keyspace_of(&create.table)?;
            DefinitionPlan::CreateTable(Box::new(CreateTablePlan::prepare(&keyspace, create)?))
        }
        Statement::AlterTable(alter) => {
            let keyspace = keyspace_of(&alter.table)?;
            DefinitionPlan::AlterTable(Box::new(AlterTablePlan::prepare(&keyspace, alter)?))
        }
        Statement::DropTable { table, if_exists } => DefinitionPlan::DropTable(DropTablePlan {
            keyspace: keyspace_of(table)?,
            name: table.name.clone(),
            if_exists: *if_exists,
        }),
        Statement::CreateIndex(create) => {
            let keyspace = keyspace_of(&create.table)?;
            DefinitionPlan::CreateIndex(CreateIndexPlan::prepare(&keyspace, create)?)
        }
        Statement::DropIndex {
            keyspace: own,
            name,
            if_exists,
        } => DefinitionPlan::DropIndex(DropIndexPlan {
            keyspace: user_keyspace(own.as_deref())?,
            name: name.clone(),
            if_exists: *if_exists,
        }),
        _ => {
            return Err(CqlError::server(
                "bug: this statement does not change the schema",
            ));
        }
    };
    Ok(SchemaPlan { work })
}

fn prepare_user_type(
    statement: &Statement,
    keyspace_of: impl Fn(&TableName) -> Result<String, CqlError>,
) -> Result<DefinitionPlan, CqlError> {
    Ok(match statement {
        Statement::CreateType(create) => {
            let keyspace = keyspace_of(&create.name)?;
            DefinitionPlan::CreateType(CreateTypePlan::prepare(&keyspace, create)?)
        }
        Statement::AlterType(alter) => {
            let keyspace = keyspace_of(&alter.name)?;
            DefinitionPlan::AlterType(AlterTypePlan::prepare(&keyspace, alter)?)
        }
        Statement::DropType { name, if_exists } => DefinitionPlan::DropType(DropTypePlan {
            keyspace: keyspace_of(name)?,
            name: name.name.clone(),
            if_exists: *if_exists,
        }),
        _ => return Err(CqlError::server("bug: this statement defines no user type")),
    })
}

/// Executes a plan.
///
/// # Errors
/// Changes that the present schema does not allow, and errors of the storage.
pub async fn execute(
    database: &CqlDatabase,
    plan: &SchemaPlan,
    actor: Actor,
) -> Result<ExecutionResult, CqlError> {
    let plan = plan.clone();
    let warnings = plan.warnings();
    let clock = Arc::clone(database.storage.clock());
    let creates_index = matches!(plan.work, DefinitionPlan::CreateIndex(_));
    let guardrails = Arc::clone(database.system.guardrails());
    let (applied, of_guardrails) = database
        .storage
        .change_catalog(move |catalog| {
            let (applied, warnings) = plan.apply_guarded(catalog, &clock, &guardrails)?;
            if let Actor::Role(role) = &actor {
                for made in applied.made(catalog) {
                    roles::own(catalog, role, made);
                }
            }
            Ok((applied, warnings))
        })
        .await
        .map_err(|error| match error {
            CatalogChangeError::Refused(error) => error,
            CatalogChangeError::Storage(error) => storage_error(error),
        })?;
    if let ApplyOutcome::Changed(change) = &applied
        && creates_index
    {
        index_serves(database, change).await;
    }
    Ok(ExecutionResult {
        outcome: match applied {
            ApplyOutcome::Nothing => ExecutionOutcome::Void,
            ApplyOutcome::Changed(change) => ExecutionOutcome::SchemaChange(change),
        },
        warnings: warnings.into_iter().chain(of_guardrails).collect(),
    })
}

/// Waits until the newest index of the table serves, since the client may search by it next. A
/// secondary index that takes long to build is not waited for to its end.
async fn index_serves(database: &CqlDatabase, change: &CatalogChange) {
    let catalog = database.storage.catalog();
    let ChangedObject::Table(table) = &change.object else {
        return;
    };
    let Some(table) = catalog.table(&change.keyspace, table) else {
        return;
    };
    let searched = table.indexes.values();
    let searched = searched.max_by_key(|index| timeuuid::unix_micros(&index.version));
    let secondary = table.secondary_indexes.values();
    let secondary = secondary.max_by_key(|index| timeuuid::unix_micros(&index.version));
    let is_secondary = match (searched, secondary) {
        (Some(searched), Some(secondary)) => {
            timeuuid::unix_micros(&searched.version) < timeuuid::unix_micros(&secondary.version)
        }
        (searched, _) => searched.is_none(),
    };
    if is_secondary && let Some(index) = secondary {
        let built = database.storage.index_built(index.version);
        let _ = tokio::time::timeout(BUILT_WITHIN, built).await;
    }
    // The indexes on vectors and texts keep the column of a new secondary index, too.
    if let Some(index) = searched {
        let stores = &database.stores;
        stores
            .created(&change.keyspace, &index.name, index.version)
            .await;
    }
}

impl SchemaPlan {
    /// The warnings that the client gets with the result.
    fn warnings(&self) -> Vec<String> {
        match &self.work {
            DefinitionPlan::CreateKeyspace(plan) => plan.warnings(),
            DefinitionPlan::AlterKeyspace(plan) => plan.warning().into_iter().collect(),
            DefinitionPlan::CreateTable(plan) => plan.warnings(),
            DefinitionPlan::AlterTable(plan) => plan.warnings(),
            DefinitionPlan::CreateIndex(plan) => plan.warning().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Applies the change to the catalog if the guardrails allow it. Returns their warnings, too.
    fn apply_guarded(
        &self,
        catalog: &mut Catalog,
        clock: &ServerClock,
        guardrails: &Guardrails,
    ) -> Result<(ApplyOutcome, Vec<String>), CqlError> {
        let before = catalog.clone();
        let applied = self.apply(catalog, clock)?;
        let mut warnings = Vec::new();
        if let ApplyOutcome::Changed(change) = &applied {
            guarded::check(guardrails, (&before, catalog), change, &mut warnings)?;
        }
        Ok((applied, warnings))
    }

    /// Applies the change to the catalog, or returns the error for which it is refused.
    fn apply(&self, catalog: &mut Catalog, clock: &ServerClock) -> Result<ApplyOutcome, CqlError> {
        match &self.work {
            DefinitionPlan::CreateKeyspace(plan) => plan.apply(catalog),
            DefinitionPlan::AlterKeyspace(plan) => plan.apply(catalog),
            DefinitionPlan::DropKeyspace(plan) => plan.apply(catalog),
            DefinitionPlan::CreateType(plan) => plan.apply(catalog),
            DefinitionPlan::AlterType(plan) => plan.apply(catalog),
            DefinitionPlan::DropType(plan) => plan.apply(catalog),
            DefinitionPlan::CreateTable(plan) => plan.apply(catalog, clock),
            DefinitionPlan::AlterTable(plan) => plan.apply(catalog, clock),
            DefinitionPlan::DropTable(plan) => plan.apply(catalog),
            DefinitionPlan::CreateIndex(plan) => plan.apply(catalog, clock),
            DefinitionPlan::DropIndex(plan) => plan.apply(catalog),
        }
    }
}

/// Checks the name of a keyspace that is made without a statement, as CREATE KEYSPACE does.
///
/// # Errors
/// If the name is no word of 1 to 48 characters, or is that of a system keyspace.
pub fn check_new_keyspace(name: &str) -> Result<(), CqlError> {
    match access::is_of_system(name) {
        true => Err(not_modifiable(name)),
        false => names::check_keyspace(name),
    }
}

fn refuse_system(database: &CqlDatabase, keyspace: &str) -> Result<(), CqlError> {
    match database.system.keyspace(keyspace) {
        Some(_) => Err(not_modifiable(keyspace)),
        None => Ok(()),
    }
}

fn not_modifiable(keyspace: &str) -> CqlError {
    CqlError::new(
        ErrorKind::Unauthorized,
        format!("{keyspace} keyspace is not user-modifiable."),
    )
}

/// Refuses a change of a CDC log, which is changed and dropped only with its table.
fn refuse_log(table: &Table) -> Result<(), CqlError> {
    if table.log_of.is_some() {
        return Err(CqlError::new(
            ErrorKind::Unauthorized,
            format!(
                "Cannot modify {}.{}: a CDC log is changed and dropped with its table alone",
                table.keyspace, table.name
            ),
        ));
    }
    Ok(())
}

/// The error "Keyspace 'x' doesn't exist"; with `IF EXISTS` there is no error and no change.
fn missing_keyspace(name: &str, if_exists: bool) -> Result<ApplyOutcome, CqlError> {
    if if_exists {
        return Ok(ApplyOutcome::Nothing);
    }
    Err(CqlError::invalid(format!(
        "Keyspace '{name}' doesn't exist"
    )))
}

/// The error for a table that does not exist; with `IF EXISTS` there is no error and no change.
fn missing_table(
    catalog: &Catalog,
    keyspace: &str,
    name: &str,
    if_exists: bool,
) -> Result<ApplyOutcome, CqlError> {
    if if_exists {
        return Ok(ApplyOutcome::Nothing);
    }
    if catalog.keyspace(keyspace).is_none() {
        return missing_keyspace(keyspace, false);
    }
    Err(CqlError::invalid(format!(
        "Table '{keyspace}.{name}' doesn't exist"
    )))
}
