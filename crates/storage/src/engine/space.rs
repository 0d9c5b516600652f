//! The names of spaces.

use schema::TableId;
use uuid::Uuid;

/// The space that holds the rows of a table. TRUNCATE gives the table a space of a new generation,
/// which begins empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpaceId {
    table: TableId,
    generation: u64,
}

impl SpaceId {
    /// The space of the catalog and of everything else that belongs to no table.
    pub(crate) const META: SpaceId = SpaceId {
        table: TableId(Uuid::nil()),
        generation: 0,
    };

    pub(crate) fn new(table: TableId, generation: u64) -> SpaceId {
        SpaceId { table, generation }
    }

    pub(crate) fn table(self) -> TableId {
        self.table
    }

    pub(crate) fn generation(self) -> u64 {
        self.generation
    }

    /// `meta`, or the table's id and the generation: `0189...c3.0`.
    pub(super) fn name(self) -> String {
        if self == SpaceId::META {
            "meta".to_owned()
        } else {
            format!("{}.{}", self.table.0.simple(), self.generation)
        }
    }

    pub(crate) fn parse(name: &str) -> Option<SpaceId> {
        if name == "meta" {
            return Some(SpaceId::META);
        }
        let (table, generation) = name.split_once('.')?;
        Some(SpaceId {
            table: TableId(Uuid::try_parse(table).ok()?),
            generation: generation.parse().ok()?,
        })
    }
}
