//! The catalog made ready for reading and writing: for each table how its keys are written, which
//! columns are alive and where its rows lie.

use std::collections::HashMap;
use std::sync::Arc;

use schema::{Catalog, Column, ColumnId, Table, TableId};
use value::CqlType;

use crate::StorageError;
use crate::cdc::Growth;
use crate::engine::{SpaceId, SpaceOptions};
use crate::key::KeyCodec;
use crate::persist::Generations;
use crate::record::LiveColumns;

/// The values derived from one [`Catalog`]. They never change, as the catalog does not.
pub(crate) struct Schema {
    pub catalog: Arc<Catalog>,
    pub generations: Generations,
    tables: Arc<Tables>,
}

/// All tables by their ids.
pub(crate) type Tables = HashMap<TableId, Arc<TableSchema>>;

pub(crate) struct TableSchema {
    pub table: Arc<Table>,
    pub keys: KeyCodec,
    pub live: LiveColumns,
    pub space: SpaceId,
    /// Positions in [`Table::columns`].
    by_id: HashMap<ColumnId, usize>,
    /// Cloned by whoever reads the space, so that its files outlive the table's end.
    pub lease: Arc<()>,
    /// Of a CDC log, how far it goes.
    pub growth: Arc<Growth>,
}

impl Schema {
    /// `old` gives what did not change.
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        mut generations: Generations,
        old: Option<&Schema>,
    ) -> Schema {
        let tables: Tables = catalog
            .keyspaces
            .values()
            .flat_map(|keyspace| keyspace.tables.values())
            .map(|table| {
                let generation = generations.get(&table.id).copied().unwrap_or(0);
                let space = SpaceId::new(table.id, generation);
                let old = old
                    .and_then(|old| old.tables.get(&table.id))
                    .filter(|old| old.space == space);
                let schema = match old {
                    Some(old) if Arc::ptr_eq(&old.table, table) => Arc::clone(old),
                    _ => Arc::new(TableSchema::new(table, space, old)),
                };
                (table.id, schema)
            })
            .collect();
        generations.retain(|table, _| tables.contains_key(table));
        Schema {
            catalog,
            generations,
            tables: Arc::new(tables),
        }
    }

    pub(crate) fn by_id(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Whether the rows of a table lie in that space.
    pub(crate) fn has_space(&self, space: SpaceId) -> bool {
        let table = self.tables.get(&space.table());
        table.is_some_and(|table| table.space == space)
    }

    pub(crate) fn table(&self, id: TableId) -> Result<&Arc<TableSchema>, StorageError> {
        self.tables
            .get(&id)
            .ok_or_else(|| StorageError::NoSuchTable(id.0.to_string()))
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.tables.values()
    }
}

impl TableSchema {
    /// `old` is of the same rows.
    fn new(table: &Arc<Table>, space: SpaceId, old: Option<&Arc<TableSchema>>) -> TableSchema {
        let (lease, growth) = old
            .map(|old| (old.lease.clone(), old.growth.clone()))
            .unwrap_or_default();
        TableSchema {
            keys: KeyCodec::new(table),
            live: LiveColumns::new(table),
            space,
            by_id: table
                .columns
                .iter()
                .enumerate()
                .map(|(position, column)| (column.id, position))
                .collect(),
            lease,
            growth,
            table: Arc::clone(table),
        }
    }

    pub(crate) fn column(&self, id: ColumnId) -> Option<&Column> {
        self.by_id.get(&id).map(|at| &self.table.columns[*at])
    }

    pub(crate) fn type_of(&self, id: ColumnId) -> Option<&CqlType> {
        self.column(id).map(|column| &column.cql_type)
    }

    /// Whether partitions may have a head: only where they have more than one row.
    pub(crate) fn has_heads(&self) -> bool {
        self.keys.has_clustering()
    }

    /// Tables with vectors keep large values apart.
    pub(crate) fn space_options(&self) -> SpaceOptions {
        SpaceOptions {
            separate_values: self
                .table
                .columns
                .iter()
                .any(|column| matches!(column.cql_type, CqlType::Vector { .. })),
        }
    }
}
