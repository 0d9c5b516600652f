//! The sizes of tables, for the operator.

use schema::TableId;

use crate::Storage;

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredTableSize {
    /// The table.
    pub table: TableId,
    /// The bytes of its files, compressed. Rows that are not written out yet have none.
    pub disk_bytes: u64,
    /// The number of its entries on the disk and in memory. A row is one entry; overwritten and
    /// deleted rows count until files are merged.
    pub entries: u64,
    /// The bytes of the files of its secondary indexes.
    pub index_disk_bytes: u64,
}

impl Storage {
    /// The sizes of all tables, CDC logs included, in no order. Reads no files.
    #[must_use]
    pub fn table_sizes(&self) -> Vec<StoredTableSize> {
        let shared = self.shared();
        let schema = shared.schema();
        let tables = schema.by_id().values().map(|of| {
            let size = shared.engine.space_size(of.space);
            let indexes = of.indexes.iter().map(|index| index.space);
            let indexes = indexes.map(|space| shared.engine.space_size(space).disk_bytes);
            StoredTableSize {
                table: of.table.id,
                disk_bytes: size.disk_bytes,
                entries: size.entries,
                index_disk_bytes: indexes.sum(),
            }
        });
        tables.collect()
    }
}
