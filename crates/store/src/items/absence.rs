//! Keys known to be absent, for as long as an older read may contradict that.

use std::collections::HashMap;

use crate::keys::{PartitionKey, PrimaryKey};

/// The number of remembered absences from which on a search for those to forget pays.
const FORGET_FROM: usize = 1024;

/// Absent rows and partitions, each with the number of the read that found nothing.
#[derive(Debug, Default)]
pub(super) struct KnownAbsences {
    rows: HashMap<Box<[u8]>, u64>,
    partitions: HashMap<PartitionKey, u64>,
    key_bytes: usize,
    /// The number of remembered absences at which the next search pays.
    look_from: usize,
    /// The oldest read in flight at the last search.
    looked_at: u64,
}

impl KnownAbsences {
    /// The number of the read that found a row absent; 0 if none did.
    pub(super) fn row(&self, key: &[u8]) -> u64 {
        self.rows.get(key).copied().unwrap_or(0)
    }

    /// The number of the read that saw the whole partition; 0 if none did.
    pub(super) fn partition(&self, partition: &[u8]) -> u64 {
        if self.partitions.is_empty() {
            return 0;
        }
        self.partitions.get(partition).copied().unwrap_or(0)
    }

    /// Remembers that the read numbered `sequence` found no row under the key.
    pub(super) fn remember_row(&mut self, key: PrimaryKey, sequence: u64) {
        self.key_bytes += key.as_bytes().len();
        if let Some(before) = self.rows.insert(key.into_bytes(), sequence) {
            debug_assert!(before <= sequence);
        }
    }

    /// Remembers that the read numbered `sequence` saw the whole partition.
    pub(super) fn remember_partition(&mut self, partition: PartitionKey, sequence: u64) {
        let stands = self.partitions.entry(partition).or_default();
        *stands = sequence.max(*stands);
    }

    /// Forgets that a row is absent.
    pub(super) fn forget_row(&mut self, key: &[u8]) {
        self.rows.remove(key);
    }

    /// Forgets the absences that no read numbered `oldest_in_flight` or above can contradict.
    pub(super) fn forget(&mut self, oldest_in_flight: u64) {
        let count = self.rows.len() + self.partitions.len();
        let small = count <= FORGET_FROM;
        if count == 0 || oldest_in_flight == self.looked_at || (!small && count < self.look_from) {
            return;
        }
        self.looked_at = oldest_in_flight;
        self.rows
            .retain(|_, sequence| *sequence >= oldest_in_flight);
        self.partitions
            .retain(|_, sequence| *sequence >= oldest_in_flight);
        self.look_from = 2 * (self.rows.len() + self.partitions.len());
        self.key_bytes = self.rows.keys().map(|key| key.len()).sum();
    }

    /// The bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.key_bytes
            + self.rows.capacity() * size_of::<(Box<[u8]>, u64)>()
            + self.partitions.capacity() * size_of::<(PartitionKey, u64)>()
    }
}
