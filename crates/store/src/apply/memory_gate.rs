//! The gate that keeps rows out while there is no memory for them.

use std::sync::Arc;

use crate::indexes::{RefusalReason, RefusedChange};
use crate::items::{ChangeKind, StructureChange};
use crate::memory::ProcessMemory;
use crate::observed::IndexableValue;

/// About the bytes that a row takes in addition to its value: links of the structure, and its key
/// twice.
const ROW_BYTES: u64 = 512;

/// The gate between changes and the index.
///
/// At the limit as many rows may come in as have been removed since it was reached, as the index
/// uses their places again. A row that changes takes no more room than before.
#[derive(Debug)]
pub(super) struct MemoryGate {
    memory: Arc<ProcessMemory>,
    /// The number of rows that have been removed since the limit was reached, less those that have
    /// come in.
    places: u64,
}

impl MemoryGate {
    /// Makes a gate that has seen no change.
    pub(super) fn new(memory: Arc<ProcessMemory>) -> MemoryGate {
        MemoryGate { memory, places: 0 }
    }

    /// Splits changes into those that may be made and refusals of the others.
    pub(super) fn sift(
        &mut self,
        changes: Vec<StructureChange>,
    ) -> (Vec<StructureChange>, Vec<RefusedChange>) {
        if !self.memory.is_full() {
            self.places = 0;
        }
        let mut refused = Vec::new();
        let mut pass = changes;
        pass.retain(|change| {
            let stays = match change {
                StructureChange::Insert { value, .. } => {
                    let has_place = self.places > 0;
                    self.places -= u64::from(has_place);
                    has_place || self.memory.take(bytes_of(value))
                }
                StructureChange::Replace { .. } | StructureChange::Remove { .. } => true,
            };
            if !stays {
                let mib = self.memory.limit_bytes() >> 20;
                refused.push(RefusedChange {
                    id: change.id(),
                    operation: ChangeKind::Insert,
                    error: RefusalReason::NoRoom(format!(
                        "the index cannot grow: the process has reached its memory limit of {mib} MiB"
                    )),
                });
            }
            stays
        });
        (pass, refused)
    }

    /// Notes the number of rows that the index has removed.
    pub(super) fn gone(&mut self, rows: u64) {
        if self.memory.is_full() {
            self.places += rows;
        }
    }
}

/// About the bytes that a row takes in an index.
fn bytes_of(value: &IndexableValue) -> u64 {
    ROW_BYTES + value.index_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(id: u32) -> StructureChange {
        let value = IndexableValue::Vector(vec![0.0]);
        StructureChange::Insert { id, value }
    }

    fn ids(changes: Vec<StructureChange>) -> Vec<u32> {
        changes.iter().map(StructureChange::id).collect()
    }

    #[test]
    fn at_the_limit_only_as_many_come_as_have_gone() {
        let memory = Arc::new(ProcessMemory::default());
        let mut gate = MemoryGate::new(memory.clone());
        memory.note(1, 1 << 20);
        gate.gone(5);
        let (pass, refused) = gate.sift(vec![insert(0), insert(1)]);
        assert_eq!((ids(pass), refused), (vec![0, 1], vec![]));

        memory.note(2 << 20, 1 << 20);
        let value = IndexableValue::Vector(vec![0.0]);
        let replace = StructureChange::Replace {
            id: 9,
            value,
            filters: Vec::new(),
        };
        let remove = StructureChange::Remove { id: 8 };
        let (pass, refused) = gate.sift(vec![insert(2), replace, remove]);
        assert_eq!(
            ids(pass),
            [9, 8],
            "rows that went before the limit don't count"
        );
        assert_eq!(refused[0].id, 2);
        assert!(refused[0].for_want_of_room());
        let error = refused[0].error.to_string();
        assert!(error.contains("memory limit of 1 MiB"), "{error}");

        gate.gone(1);
        let (pass, refused) = gate.sift(vec![insert(3), insert(4)]);
        assert_eq!((ids(pass), refused[0].id), (vec![3], 4));
        memory.note(1, 1 << 20);
        let (pass, _) = gate.sift(vec![insert(5)]);
        assert_eq!(ids(pass), [5]);
    }

    #[test]
    fn rows_between_two_measurements_do_not_overstep_the_limit() {
        const ROOM_BYTES: u64 = 100_000;
        let memory = Arc::new(ProcessMemory::default());
        let mut gates = [(); 2].map(|()| MemoryGate::new(memory.clone()));
        memory.note(1 << 20, (1 << 20) + ROOM_BYTES);
        let value = IndexableValue::Vector(vec![0.0; 2_000]);
        let mut came = 0;
        for id in 0..100 {
            let value = value.clone();
            let changes = vec![StructureChange::Insert { id, value }];
            came += gates[id as usize % 2].sift(changes).0.len() as u64;
        }
        assert!(came > 0 && came * 8_000 <= ROOM_BYTES, "{came}");
        memory.note(1 << 20, (1 << 20) + ROOM_BYTES);
        assert_eq!(ids(gates[0].sift(vec![insert(7)]).0), [7], "measured again");
    }
}
