//! The schema: keyspaces, tables, columns, indexes, and CDC streams, as plain data.
//!
//! A [`Catalog`] is an immutable snapshot in an `Arc`; a change makes a new one. The storage keeps
//! it on disk, and everything that plans a statement or reads rows goes by it.

#![warn(clippy::unwrap_used)]

pub mod log_table;
mod roles;
mod row_ttl;
mod secondary;
mod shared;
mod streams;
mod user_types;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;
use value::{
    CqlType, UserType,
    token::{Partitioner, Token},
};

pub use index::{IndexedPart, SearchClass};
pub use roles::{Permission, PermissionSet, Resource, Role};
pub use row_ttl::RowTtl;
pub use secondary::SecondaryIndex;
pub use shared::CopyOnWrite;

/// The identity of a table: a dropped and recreated table gets another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub Uuid);

/// The identity of a column within its table. Only a column that is added under the name of a
/// dropped one takes an id that was used before ([`DroppedColumn::id`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u32);

/// A snapshot of the schema and of the identity of the node.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// A timeuuid that rises with every change: the newest `state_id` of `system.group0_history`.
    pub version: Uuid,
    /// The identity of this node, made when the directory was.
    pub host_id: Uuid,
    /// The name of the cluster, as `system.local` gives it.
    pub cluster_name: String,
    /// The time at which the directory was made and the first generation of vnode streams began.
    /// Milliseconds since the epoch.
    pub created_at_ms: i64,
    /// The CDC streams of all keyspaces without tablets.
    pub vnode_streams: StreamGeneration,
    /// The user keyspaces by name. System keyspaces are not here; the node defines them.
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// The roles by name.
    pub roles: CopyOnWrite<BTreeMap<String, Arc<Role>>>,
}

/// A keyspace with its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// The name.
    pub name: String,
    /// The replication options as the user gave them, with `class` among the keys.
    pub replication: BTreeMap<String, String>,
    /// The keyspace option `durable_writes`. It is stored only to be shown again.
    pub durable_writes: bool,
    /// The keyspace option `tablets = {'enabled': ...}`. With tablets each CDC log has its own
    /// streams; without them all logs share [`Catalog::vnode_streams`].
    pub tablets: bool,
    /// The user types by name.
    pub types: CopyOnWrite<BTreeMap<String, Arc<UserType>>>,
    /// The tables by name, CDC logs included. The types of their columns hold the definitions of
    /// the user types in them.
    pub tables: BTreeMap<String, Arc<Table>>,
}

/// A table: its columns, options, indexes and CDC log.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The identity of the table.
    pub id: TableId,
    /// The keyspace that the table belongs to.
    pub keyspace: String,
    /// The name without its keyspace.
    pub name: String,
    /// The columns in the order of definition.
    pub columns: Vec<Column>,
    /// The id that the next added column gets.
    pub next_column: ColumnId,
    /// The dropped columns by name, each with its last drop.
    pub dropped_columns: BTreeMap<String, DroppedColumn>,
    /// The function that gives a partition its token.
    pub partitioner: TablePartitioner,
    /// The table option `default_time_to_live`. Seconds; 0 for none.
    pub default_ttl_s: u32,
    /// The column that says when its row expires; `None` if there is none.
    pub row_ttl: Option<RowTtl>,
    /// The table option `gc_grace_seconds`: the time for which the marks of deletions and expired
    /// cells are retained. Seconds.
    pub gc_grace_s: u32,
    /// All further table options (`comment`, `compaction`, `caching`, ...) by name, with their
    /// values as CQL text. They are stored only to be shown again.
    pub options: BTreeMap<String, String>,
    /// The indexes on vectors and on texts by name. Index services build them.
    pub indexes: BTreeMap<String, Arc<SearchIndexMetadata>>,
    /// The secondary indexes by name. No name is in both maps.
    pub secondary_indexes: BTreeMap<String, Arc<SecondaryIndex>>,
    /// `WITH cdc = {...}` as the user gave it; `None` if never given.
    pub cdc: Option<CdcOptions>,
    /// The CDC log, if there is one. A table has one if `cdc` is or was enabled, or if the table
    /// has an index.
    pub log: Option<CdcLog>,
    /// The table that this CDC log belongs to; `None` if this table is no CDC log.
    pub log_of: Option<TableId>,
    /// The time of the last TRUNCATE. Milliseconds since the epoch.
    pub truncated_at_ms: Option<i64>,
}

/// The tokens of the node. It is the only node of its ring and has one token. Without tablets there
/// is one CDC stream for each token.
pub const RING_TOKENS: [Token; 1] = [Token(0)];

/// The partitioner of a table.
pub type TablePartitioner = Partitioner;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The identity of the column within its table.
    pub id: ColumnId,
    /// The name.
    pub name: String,
    /// The place of the column in the primary key or outside it.
    pub kind: ColumnKind,
    /// The type of its values.
    pub cql_type: CqlType,
}

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A column of the partition key.
    PartitionKey {
        /// The position in the partition key, from 0.
        position: usize,
    },
    /// A clustering column.
    Clustering {
        /// The position in the clustering key, from 0.
        position: usize,
        /// Whether rows are sorted by this column from the greatest value to the least.
        descending: bool,
    },
    /// A column with one value for all rows of a partition.
    Static,
    /// A column with a value for each row.
    Regular,
}

/// A column that was dropped, and may have come back under the same name and id.
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedColumn {
    /// The id under which the cells of the column are stored. A column that is added again under
    /// the name takes this id, and shows the cells that are newer than the drop. `None` if the
    /// column was dropped by a version of Annulus that stored no ids.
    pub id: Option<ColumnId>,
    /// The type that the column had.
    pub cql_type: CqlType,
    /// Whether the column was static.
    pub is_static: bool,
    /// Cells with this timestamp or a lower one stay hidden when the column comes back.
    /// Microseconds.
    pub dropped_at_micros: i64,
}

/// An index that index services build: on a column of vectors, or on a column of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchIndexMetadata {
    /// The name.
    pub name: String,
    /// The target as `options['target']` of `system_schema.indexes` holds it.
    pub target: String,
    /// The column that is indexed.
    pub column: String,
    /// The key columns of a local index, each of whose searches names their values; empty for a
    /// global index.
    pub local_key: Vec<String>,
    /// The further columns by which a search may be filtered, as the user named them.
    pub filter_columns: Vec<String>,
    /// The options that the user gave in `WITH OPTIONS`.
    pub options: BTreeMap<String, String>,
    /// The class of the index: `vector_index` or `fulltext_index`.
    pub class_name: String,
    /// A timeuuid that `CREATE INDEX` makes: an index made again under the same name gets another.
    pub version: Uuid,
}

impl SearchIndexMetadata {
    /// The class of the index.
    pub fn class(&self) -> SearchClass {
        SearchClass::of(&self.class_name).unwrap_or(SearchClass::Vector)
    }

    /// Whether it is a full-text index. It names rows by the words of its column, and serves no
    /// search for vectors.
    pub fn is_full_text(&self) -> bool {
        self.class() == SearchClass::FullText
    }
}

/// The table option `cdc = {...}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdcOptions {
    /// Whether changes are written to the log.
    pub enabled: bool,
    /// Whether log rows with the row before a write are added, and with which columns.
    pub preimage: ImageMode,
    /// Whether log rows with the row after a write are added.
    pub postimage: bool,
    /// The content of the log rows of a write itself.
    pub delta: DeltaMode,
    /// The time that log rows live. Seconds; 0 for ever.
    pub ttl_s: u32,
}

/// The content of pre-images: log rows with the row before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageMode {
    /// No pre-images.
    Off,
    /// Pre-images with the columns that the write touches. A deletion of a whole row touches all
    /// columns.
    On,
    /// Pre-images with all columns.
    Full,
}

/// The content of the log rows of a write itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaMode {
    /// The primary key, and the values that the write sets or deletes.
    Full,
    /// Only the primary key.
    Keys,
}

/// The CDC log of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct CdcLog {
    /// The table that holds the log rows.
    pub table: TableId,
    /// The options by which log rows are written: the user's, or only keys if only an index needs
    /// the log. No more log rows are written once `enabled` is false.
    pub options: CdcOptions,
    /// The log's own streams if its keyspace has tablets; else `None`, and the log uses
    /// [`Catalog::vnode_streams`].
    pub streams: Option<StreamGeneration>,
}

/// A set of CDC streams, with the time at which it came into force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamGeneration {
    /// The time at which the streams came into force. Milliseconds since the epoch.
    pub since_ms: i64,
    /// Stream ids of 16 bytes each, in token order. The token of a stream is the last token of its
    /// range.
    pub streams: Vec<Bytes>,
}

impl Catalog {
    /// Finds a keyspace by its name.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// Finds a table by its keyspace and its name.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.tables.get(name)
    }

    /// Finds a table by its id, in time linear in the number of tables. The hot path keeps the
    /// `Arc<Table>` instead.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.keyspaces
            .values()
            .flat_map(|keyspace| keyspace.tables.values())
            .find(|table| table.id == id)
    }

    /// Adds a table, or replaces the table of the same name. Its CDC log is adapted to
    /// [`Table::cdc`] and the indexes: `<table>_scylla_cdc_log` is created with its stream
    /// generation, its columns are adapted after ALTER TABLE, or it is dropped with the index that
    /// needed it. On a new log those who may grant the table's permissions get what they have on
    /// the table.
    ///
    /// This is the one way to change a table inside `storage::Storage::change_catalog`.
    ///
    /// # Panics
    /// If the keyspace does not exist, or if the log's name belongs to another table: the caller
    /// has checked. `storage::Storage::change_catalog` turns the panic into an error.
    pub fn put_table(&mut self, mut table: Table) {
        let keyspace = self
            .keyspaces
            .get_mut(&table.keyspace)
            .expect("the keyspace of a table exists");
        let keyspace = Arc::make_mut(keyspace);
        let log_before = table.log.as_ref().map(|log| log.table);
        log_table::adapt(keyspace, &mut table);
        let log_after = table.log.as_ref().map(|log| log.table);
        let names = (table.keyspace.clone(), table.name.clone());
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
        if log_before != log_after {
            self.adapt_grants_on_log(&names.0, &names.1, log_after.is_some());
        }
    }

    /// Removes a table, its CDC log and what roles may do with them.
    pub fn remove_table(&mut self, keyspace: &str, name: &str) {
        let table = |name: String| Resource::Table(keyspace.to_owned(), name);
        self.forget_grants(&table(name.to_owned()));
        self.forget_grants(&table(log_table_name(name)));
        if let Some(keyspace) = self.keyspaces.get_mut(keyspace) {
            let keyspace = Arc::make_mut(keyspace);
            if let Some(table) = keyspace.tables.remove(name) {
                log_table::remove(keyspace, &table);
            }
        }
    }

    /// The streams that a CDC log is written to.
    pub fn log_streams<'a>(&'a self, log: &'a CdcLog) -> &'a StreamGeneration {
        log.streams.as_ref().unwrap_or(&self.vnode_streams)
    }
}

impl Table {
    /// Finds a column by its name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The vector indexes on a column, in the order of their names.
    pub fn vector_indexes_on<'a>(
        &'a self,
        column: &'a str,
    ) -> impl Iterator<Item = &'a Arc<SearchIndexMetadata>> + Clone {
        self.search_indexes_on(SearchClass::Vector, column)
    }

    /// The full-text indexes on a column, in the order of their names.
    pub fn full_text_indexes_on<'a>(
        &'a self,
        column: &'a str,
    ) -> impl Iterator<Item = &'a Arc<SearchIndexMetadata>> + Clone {
        self.search_indexes_on(SearchClass::FullText, column)
    }

    fn search_indexes_on<'a>(
        &'a self,
        class: SearchClass,
        column: &'a str,
    ) -> impl Iterator<Item = &'a Arc<SearchIndexMetadata>> + Clone {
        let indexes = self.indexes.values();
        indexes.filter(move |index| index.class() == class && index.column == column)
    }

    /// Finds a column by its id.
    pub fn column_by_id(&self, id: ColumnId) -> Option<&Column> {
        self.columns.iter().find(|column| column.id == id)
    }

    /// Whether it is a table of counters: apart from the key it has no other columns. It stays one
    /// if its last counter is dropped.
    pub fn is_counter(&self) -> bool {
        let beside_key =
            |column: &&Column| matches!(column.kind, ColumnKind::Regular | ColumnKind::Static);
        match self.columns.iter().find(beside_key) {
            Some(column) => column.cql_type == CqlType::Counter,
            None => {
                let mut dropped = self.dropped_columns.values();
                dropped.any(|column| column.cql_type == CqlType::Counter)
            }
        }
    }

    /// Whether the rows are held in memory, as well as on the disk: the option `in_memory`, which
    /// is among [`Table::options`] and does not change.
    pub fn is_in_memory(&self) -> bool {
        self.options
            .get("in_memory")
            .is_some_and(|text| text == "true")
    }

    /// The partition key columns in their order.
    pub fn partition_key(&self) -> Vec<&Column> {
        self.key_columns(|kind| match kind {
            ColumnKind::PartitionKey { position } => Some(position),
            _ => None,
        })
    }

    /// The clustering columns in their order.
    pub fn clustering_key(&self) -> Vec<&Column> {
        self.key_columns(|kind| match kind {
            ColumnKind::Clustering { position, .. } => Some(position),
            _ => None,
        })
    }

    fn key_columns(&self, position: impl Fn(ColumnKind) -> Option<usize>) -> Vec<&Column> {
        let mut columns: Vec<_> = self
            .columns
            .iter()
            .filter_map(|column| Some((position(column.kind)?, column)))
            .collect();
        columns.sort_unstable_by_key(|(position, _)| *position);
        columns.into_iter().map(|(_, column)| column).collect()
    }

    /// The static columns in the order of definition.
    pub fn static_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(|column| column.kind == ColumnKind::Static)
    }

    /// The regular columns in the order of definition.
    pub fn regular_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(|column| column.kind == ColumnKind::Regular)
    }

    /// The columns in the order of `SELECT *`: partition key, clustering key, static columns by
    /// name, regular columns by name, as in Cassandra. There names that begin with a letter beyond
    /// ASCII come first, but those of collections last.
    pub fn columns_in_select_order(&self) -> Vec<&Column> {
        let mut columns = self.partition_key();
        columns.extend(self.clustering_key());
        columns.extend(by_name(self.static_columns()));
        columns.extend(by_name(self.regular_columns()));
        columns
    }
}

/// Columns of a kind in Cassandra's order of names: two lists are merged by the bytes of the names,
/// taken as signed numbers. One has the columns of several cells whose names begin with an ASCII
/// letter, the other first those of single values, then the other columns of several cells. Each is
/// in the order in which Cassandra stores columns.
fn by_name<'a>(columns: impl Iterator<Item = &'a Column>) -> Vec<&'a Column> {
    let (mut cells, mut values): (Vec<&Column>, Vec<&Column>) =
        columns.partition(|column| column.cql_type.is_multi_cell());
    cells.sort_unstable_by_key(|column| stored_order(&column.name));
    values.sort_unstable_by_key(|column| stored_order(&column.name));
    let ascii = cells.partition_point(|column| !column.name.starts_with(|c: char| c.is_ascii()));
    values.extend(cells.drain(..ascii));
    let mut merged = Vec::with_capacity(cells.len() + values.len());
    let (mut cells, mut values) = (cells.into_iter().peekable(), values.into_iter().peekable());
    loop {
        let next = match (cells.peek(), values.peek()) {
            (Some(cell), Some(value)) if signed(&cell.name).lt(signed(&value.name)) => cells.next(),
            (_, Some(_)) => values.next(),
            _ => cells.next(),
        };
        match next {
            Some(column) => merged.push(column),
            None => return merged,
        }
    }
}

fn signed(name: &str) -> impl Iterator<Item = i8> {
    name.bytes().map(u8::cast_signed)
}

/// The key by which Cassandra orders columns where it stores them: the first six bytes of the name
/// with the top bit of the first flipped, then all bytes.
fn stored_order(name: &str) -> ([u8; 6], &str) {
    let mut prefix = [0; 6];
    for (to, from) in prefix.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    prefix[0] ^= 0x80;
    (prefix, name)
}

/// The name of a table's CDC log.
pub fn log_table_name(table: &str) -> String {
    format!("{table}_scylla_cdc_log")
}
