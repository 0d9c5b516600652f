//! The permission that each change of the schema needs, as Cassandra requires it.

use schema::{Catalog, Permission, Resource};

use super::{DefinitionPlan, SchemaPlan};

impl SchemaPlan {
    /// The permission, and the resource that it has to be on. It need not exist: a user who may not
    /// change a table does not learn whether it is there.
    pub(crate) fn need(&self, catalog: &Catalog) -> (Permission, Resource) {
        let keyspace = |name: &str| Resource::Keyspace(name.to_owned());
        let tables = |keyspace: &str| Resource::AllTables(keyspace.to_owned());
        let table = |keyspace: &str, name: &str| Resource::Table(keyspace.into(), name.into());
        match &self.work {
            DefinitionPlan::CreateKeyspace(_) => (Permission::Create, Resource::AllKeyspaces),
            DefinitionPlan::AlterKeyspace(plan) => (Permission::Alter, keyspace(plan.name())),
            DefinitionPlan::DropKeyspace(plan) => (Permission::Drop, keyspace(&plan.name)),
            DefinitionPlan::CreateType(plan) => (Permission::Create, tables(plan.keyspace())),
            DefinitionPlan::AlterType(plan) => (Permission::Alter, tables(plan.keyspace())),
            DefinitionPlan::DropType(plan) => (Permission::Drop, tables(&plan.keyspace)),
            DefinitionPlan::CreateTable(plan) => (Permission::Create, tables(plan.keyspace())),
            DefinitionPlan::AlterTable(plan) => {
                let (keyspace, name) = plan.table();
                (Permission::Alter, table(keyspace, name))
            }
            DefinitionPlan::DropTable(plan) => {
                (Permission::Drop, table(&plan.keyspace, &plan.name))
            }
            DefinitionPlan::CreateIndex(plan) => {
                let (keyspace, name) = plan.table();
                (Permission::Alter, table(keyspace, name))
            }
            DefinitionPlan::DropIndex(plan) => (
                Permission::Alter,
                match table_of_index(catalog, &plan.keyspace, &plan.name) {
                    Some(name) => table(&plan.keyspace, name),
                    None => tables(&plan.keyspace),
                },
            ),
        }
    }
}

fn table_of_index<'a>(catalog: &'a Catalog, keyspace: &str, index: &str) -> Option<&'a str> {
    let mut tables = catalog.keyspace(keyspace)?.tables.values();
    let table = tables.find(|table| {
        table.indexes.contains_key(index) || table.secondary_indexes.contains_key(index)
    });
    table.map(|table| table.name.as_str())
}
