//! The guardrails: their names, the values that they look at and their thresholds by default.

/// A guardrail, which looks at one kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Guardrail {
    /// Bytes of a batch over several partitions.
    BatchSize,
    /// Partitions of a batch that is not logged.
    UnloggedBatchPartitions,
    /// Bytes of one row in one write.
    RowSize,
    /// Bytes of a partition.
    PartitionSize,
    /// Rows of a partition.
    PartitionRows,
    /// Tombstones of a partition.
    PartitionTombstones,
    /// Bytes of one value.
    ColumnValueSize,
    /// Bytes of a collection in one write.
    CollectionSize,
    /// Elements of a collection in one write.
    ItemsPerCollection,
    /// Tombstones that a page of a SELECT passes.
    Tombstones,
    /// Bytes of a page of a SELECT.
    ReadSize,
    /// Rows that a client requests in a page.
    PageSize,
    /// Partitions that a SELECT names by `IN`.
    PartitionKeysInSelect,
    /// Keys that several `IN` of a SELECT make together.
    InSelectCartesianProduct,
    /// Keyspaces of users.
    Keyspaces,
    /// Tables of users.
    Tables,
    /// Columns of a table.
    ColumnsPerTable,
    /// Indexes of a table.
    SecondaryIndexesPerTable,
    /// Fields of a user type.
    FieldsPerUdt,
    /// Dimensions of a vector.
    VectorDimensions,
}

/// The number of guardrails.
pub(crate) const COUNT: usize = Guardrail::ALL.len();

impl Guardrail {
    /// All guardrails, in the order of their numbers.
    pub const ALL: [Guardrail; 20] = [
        Guardrail::BatchSize,
        Guardrail::UnloggedBatchPartitions,
        Guardrail::RowSize,
        Guardrail::PartitionSize,
        Guardrail::PartitionRows,
        Guardrail::PartitionTombstones,
        Guardrail::ColumnValueSize,
        Guardrail::CollectionSize,
        Guardrail::ItemsPerCollection,
        Guardrail::Tombstones,
        Guardrail::ReadSize,
        Guardrail::PageSize,
        Guardrail::PartitionKeysInSelect,
        Guardrail::InSelectCartesianProduct,
        Guardrail::Keyspaces,
        Guardrail::Tables,
        Guardrail::ColumnsPerTable,
        Guardrail::SecondaryIndexesPerTable,
        Guardrail::FieldsPerUdt,
        Guardrail::VectorDimensions,
    ];

    /// The name, which the messages of Cassandra give.
    pub fn name(self) -> &'static str {
        match self {
            Guardrail::BatchSize => "batch_size",
            Guardrail::UnloggedBatchPartitions => "unlogged_batch_across_partitions",
            Guardrail::RowSize => "row_size",
            Guardrail::PartitionSize => "partition_size",
            Guardrail::PartitionRows => "partition_rows",
            Guardrail::PartitionTombstones => "partition_tombstones",
            Guardrail::ColumnValueSize => "column_value_size",
            Guardrail::CollectionSize => "collection_size",
            Guardrail::ItemsPerCollection => "items_per_collection",
            Guardrail::Tombstones => "tombstone",
            Guardrail::ReadSize => "coordinator_read_size",
            Guardrail::PageSize => "page_size",
            Guardrail::PartitionKeysInSelect => "partition_keys_in_select",
            Guardrail::InSelectCartesianProduct => "in_select_cartesian_product",
            Guardrail::Keyspaces => "keyspaces",
            Guardrail::Tables => "tables",
            Guardrail::ColumnsPerTable => "columns_per_table",
            Guardrail::SecondaryIndexesPerTable => "secondary_indexes_per_table",
            Guardrail::FieldsPerUdt => "fields_per_udt",
            Guardrail::VectorDimensions => "vector_dimensions",
        }
    }

    /// The name of the setting of the threshold above which clients are warned.
    pub fn warn_setting(self) -> String {
        format!("{}_warn_threshold", self.name())
    }

    /// The name of the setting of the threshold above which requests are refused; `None` for a
    /// guardrail that only warns.
    pub fn fail_setting(self) -> Option<String> {
        match self {
            Guardrail::UnloggedBatchPartitions => None,
            Guardrail::Tombstones => Some("tombstone_failure_threshold".to_owned()),
            _ => Some(format!("{}_fail_threshold", self.name())),
        }
    }

    /// Whether a request is refused above the second threshold. Data that is stored already is only
    /// logged.
    pub fn refuses(self) -> bool {
        !matches!(
            self,
            Guardrail::PartitionSize | Guardrail::PartitionRows | Guardrail::PartitionTombstones
        )
    }

    /// Whether the values are bytes.
    pub fn is_of_bytes(self) -> bool {
        matches!(
            self,
            Guardrail::BatchSize
                | Guardrail::RowSize
                | Guardrail::PartitionSize
                | Guardrail::ColumnValueSize
                | Guardrail::CollectionSize
                | Guardrail::ReadSize
        )
    }

    /// The thresholds by default.
    pub fn default_limits(self) -> GuardrailLimits {
        match self {
            Guardrail::BatchSize => GuardrailLimits::new(Some(5 << 10), None),
            Guardrail::UnloggedBatchPartitions => GuardrailLimits::new(Some(10), None),
            Guardrail::Tombstones => GuardrailLimits::new(Some(1_000), Some(100_000)),
            _ => GuardrailLimits::default(),
        }
    }
}

/// The thresholds of a guardrail; `None` for none. A value above one of them violates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardrailLimits {
    /// The threshold above which the client is warned.
    pub warn: Option<u64>,
    /// The threshold above which the request is refused.
    pub fail: Option<u64>,
}

impl GuardrailLimits {
    /// Thresholds for warnings and for refusals.
    pub const fn new(warn: Option<u64>, fail: Option<u64>) -> GuardrailLimits {
        GuardrailLimits { warn, fail }
    }

    /// Whether there is a threshold.
    pub fn is_set(self) -> bool {
        self.warn.is_some() || self.fail.is_some()
    }
}
