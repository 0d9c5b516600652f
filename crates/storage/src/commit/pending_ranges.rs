//! Range deletions that a batch has changed so far.

use std::collections::{BTreeMap, HashMap};

use crate::StorageError;
use crate::engine::{EntryBatch, ResidentChange, SpaceId};
use crate::key::{self, RANGE};
use crate::ranges::RangeTombstone;

/// Changed intervals by their beginning; `None` where one was removed.
pub(super) type TombstoneLayer = BTreeMap<Vec<u8>, Option<RangeTombstone>>;

#[derive(Default)]
pub(super) struct PendingRanges {
    /// The layers by space and partition.
    layers: HashMap<SpaceId, HashMap<Vec<u8>, TombstoneLayer>>,
}

impl PendingRanges {
    /// The layer of a partition, to be changed.
    pub(super) fn layer_mut(&mut self, space: SpaceId, partition: &[u8]) -> &mut TombstoneLayer {
        let partitions = self.layers.entry(space).or_default();
        partitions.entry(partition.to_vec()).or_default()
    }

    /// Takes in the changes of a write.
    pub(super) fn absorb(&mut self, write: PendingRanges) {
        for (space, partitions) in write.layers {
            let known = self.layers.entry(space).or_default();
            for (partition, layer) in partitions {
                known.entry(partition).or_default().extend(layer);
            }
        }
    }

    pub(super) fn write_to(self, batch: &mut EntryBatch) -> Result<(), StorageError> {
        for (space, partitions) in self.layers {
            for (partition, layer) in partitions {
                for (start, interval) in layer {
                    let key = key::join(&partition, RANGE, &start)?;
                    batch.push((space, key.into(), interval.map(|it| it.encode())));
                }
            }
        }
        Ok(())
    }

    /// The changes of the tables that `is_resident` picks, after those of a batch if there is one.
    pub(super) fn changed(
        &self,
        is_resident: impl Fn(SpaceId) -> bool,
        batch: Option<&PendingRanges>,
    ) -> Result<Vec<ResidentChange<'static>>, StorageError> {
        let length =
            |interval: &Option<RangeTombstone>| interval.as_ref().map(|it| it.encode().len());
        let mut changes = Vec::new();
        for (space, partitions) in &self.layers {
            if !is_resident(*space) {
                continue;
            }
            for (partition, layer) in partitions {
                let before = batch.and_then(|batch| batch.layer(*space, partition));
                for (start, interval) in layer {
                    changes.push(ResidentChange {
                        space: *space,
                        key: key::join(partition, RANGE, start)?.into(),
                        before: before.and_then(|layer| layer.get(start)).map(length),
                        value: length(interval),
                    });
                }
            }
        }
        Ok(changes)
    }

    pub(super) fn layer(&self, space: SpaceId, partition: &[u8]) -> Option<&TombstoneLayer> {
        self.layers.get(&space)?.get(partition)
    }
}
