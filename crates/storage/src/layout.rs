//! The catalog made ready for reading and writing: for each table how its keys are written, which
//! columns are alive and where its rows are stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use index::Analysis;
use schema::{Catalog, Column, ColumnId, IndexedPart, RowTtl, SecondaryIndex, Table, TableId};
use uuid::Uuid;
use value::CqlType;

use crate::StorageError;
use crate::engine::{SpaceId, SpaceOptions};
use crate::growth::LatestLogTimes;
use crate::key::KeyCodec;
use crate::key::term::TermCodec;
use crate::persist::TableGenerations;
use crate::record::LiveColumns;

/// The values derived from one [`Catalog`]. They never change, as the catalog does not.
pub(crate) struct ResolvedSchema {
    pub catalog: Arc<Catalog>,
    pub generations: TableGenerations,
    /// The secondary indexes that lack entries of rows from before their creation.
    pub building: UnbuiltIndexes,
    tables: Arc<TableSchemas>,
}

/// Secondary indexes that are being built, by [`SecondaryIndex::version`].
pub(crate) type UnbuiltIndexes = HashSet<Uuid>;

/// All tables by their ids.
pub(crate) type TableSchemas = HashMap<TableId, Arc<TableSchema>>;

pub(crate) struct TableSchema {
    pub table: Arc<Table>,
    pub keys: KeyCodec,
    pub live: LiveColumns,
    pub space: SpaceId,
    /// Positions in [`Table::columns`].
    by_id: HashMap<ColumnId, usize>,
    /// Cloned by readers of the space, so that its files outlive the table's end.
    pub lease: Arc<()>,
    /// Of a CDC log, how far it goes.
    pub growth: Arc<LatestLogTimes>,
    /// The secondary indexes, followed by the times at which rows expire ([`TableSchema::expiry`]).
    pub indexes: Vec<IndexSchema>,
    /// Whether it is a table of counters ([`Table::is_counter`]).
    pub is_counter: bool,
}

/// A secondary index of a table.
#[derive(Clone)]
pub(crate) struct IndexSchema {
    /// Identifies the index ([`schema::SecondaryIndex::version`]).
    pub version: Uuid,
    /// The indexed column.
    pub column: Column,
    pub part: IndexedPart,
    pub terms: TermCodec,
    /// The space of the entries. A TRUNCATE of the table gives the index another one, too.
    pub space: SpaceId,
    /// Whether all rows of the table have their entries.
    pub is_ready: bool,
    /// Cloned by readers of the space, so that its files outlive the end of the index.
    pub lease: Arc<()>,
}

impl ResolvedSchema {
    /// `old` gives what did not change.
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        mut generations: TableGenerations,
        mut building: UnbuiltIndexes,
        old: Option<&ResolvedSchema>,
    ) -> ResolvedSchema {
        let tables: TableSchemas = catalog
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
                    Some(old) if Arc::ptr_eq(&old.table, table) && old.is_built_as(&building) => {
                        Arc::clone(old)
                    }
                    _ => Arc::new(TableSchema::new(table, space, &building, old)),
                };
                (table.id, schema)
            })
            .collect();
        generations.retain(|table, _| tables.contains_key(table));
        let indexes = tables.values().flat_map(|table| &table.indexes);
        let known: HashSet<Uuid> = indexes.map(|index| index.version).collect();
        building.retain(|index| known.contains(index));
        ResolvedSchema {
            catalog,
            generations,
            building,
            tables: Arc::new(tables),
        }
    }

    pub(crate) fn by_id(&self) -> &Arc<TableSchemas> {
        &self.tables
    }

    /// The spaces of all tables and secondary indexes, with their options and leases.
    pub(crate) fn spaces(&self) -> HashMap<SpaceId, (SpaceOptions, Arc<()>)> {
        let mut spaces = HashMap::new();
        for table in self.tables() {
            let options = table.space_options();
            spaces.insert(table.space, (options, Arc::clone(&table.lease)));
            for index in &table.indexes {
                let options = SpaceOptions {
                    separate_values: false,
                    resident: false,
                };
                spaces.insert(index.space, (options, Arc::clone(&index.lease)));
            }
        }
        spaces
    }

    /// The spaces that are held in memory.
    pub(crate) fn resident_spaces(&self) -> Vec<SpaceId> {
        let tables = self.tables();
        let resident = tables.filter(|table| table.space_options().resident);
        resident.map(|table| table.space).collect()
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
    fn new(
        table: &Arc<Table>,
        space: SpaceId,
        building: &UnbuiltIndexes,
        old: Option<&Arc<TableSchema>>,
    ) -> TableSchema {
        let old_indexes = old.map(|old| old.indexes.as_slice()).unwrap_or_default();
        let indexes = table.secondary_indexes.values().filter_map(|index| {
            let old = old_indexes.iter().find(|old| old.version == index.version);
            IndexSchema::new(table, index, space.generation(), building, old)
        });
        let expiry = IndexSchema::of_row_ttl(table, space.generation(), building, old_indexes);
        let indexes = indexes.chain(expiry).collect();
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
            indexes,
            is_counter: table.is_counter(),
            table: Arc::clone(table),
        }
    }

    /// Whether the same indexes are being built.
    fn is_built_as(&self, building: &UnbuiltIndexes) -> bool {
        let mut indexes = self.indexes.iter();
        indexes.all(|index| index.is_ready != building.contains(&index.version))
    }

    /// The secondary index of this version.
    pub(crate) fn index(&self, version: Uuid) -> Result<&IndexSchema, StorageError> {
        let mut indexes = self.indexes.iter();
        indexes
            .find(|index| index.version == version)
            .ok_or_else(|| StorageError::NoSuchIndex(version.to_string()))
    }

    /// The times at which rows expire, stored as an index on the column that has them.
    pub(crate) fn expiry(&self) -> Option<&IndexSchema> {
        let version = self.table.row_ttl?.version;
        self.indexes.iter().find(|index| index.version == version)
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
            resident: self.table.is_in_memory(),
        }
    }
}

impl IndexSchema {
    /// `old` is of the same entries. `None` if the column was dropped.
    fn new(
        table: &Table,
        index: &SecondaryIndex,
        generation: u64,
        building: &UnbuiltIndexes,
        old: Option<&IndexSchema>,
    ) -> Option<IndexSchema> {
        let column = table.column_by_id(index.column)?;
        let terms = TermCodec::new(column, index.part, Analysis::of(&index.options));
        let version = index.version;
        Some(IndexSchema {
            version,
            column: column.clone(),
            part: index.part,
            terms,
            space: SpaceId::new(TableId(version), generation),
            is_ready: !building.contains(&version),
            lease: old.map(|old| Arc::clone(&old.lease)).unwrap_or_default(),
        })
    }

    /// The index on the column with the time at which a row expires; `None` if there is no such
    /// column.
    fn of_row_ttl(
        table: &Table,
        generation: u64,
        building: &UnbuiltIndexes,
        old: &[IndexSchema],
    ) -> Option<IndexSchema> {
        let RowTtl { column, version } = table.row_ttl?;
        let index = SecondaryIndex {
            name: String::new(),
            column,
            part: IndexedPart::Value,
            is_local: false,
            class_name: None,
            options: BTreeMap::new(),
            version,
        };
        let old = old.iter().find(|old| old.version == version);
        IndexSchema::new(table, &index, generation, building, old)
    }
}
