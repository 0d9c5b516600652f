//! The record that is written with each batch, so that the batches around it can be judged.
//!
//! The record is the first item of a batch, in the meta space. No key of a row is as short.
//!
//! ```text
//! key     "journal"
//! value   version (1 byte: 1), number (8), number through which all was synced (8), the
//!         engine's next sequence number before the batch was written (8), microseconds since the
//!         epoch (8)
//! ```
//!
//! All numbers are little-endian.

/// The key of the record in the meta space.
pub(crate) const RECORD_KEY: &[u8] = b"journal";
const VERSION: u8 = 1;
/// The most by which a batch's sequence number may be above the record's. fjall's own threads take
/// sequence numbers too, but only a few meanwhile.
const SEQUENCES_BETWEEN: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchRecord {
    /// The number of the batch: one more than that of the batch before it.
    pub number: u64,
    /// The number of a batch up to which all batches were on the disk when this one was written.
    pub synced_through: u64,
    /// The engine's next sequence number just before the batch was written.
    pub sequence_floor: u64,
    /// The time of the batch, in microseconds since the epoch.
    pub time_micros: i64,
}

impl BatchRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.number.to_le_bytes());
        out.extend(self.synced_through.to_le_bytes());
        out.extend(self.sequence_floor.to_le_bytes());
        out.extend(self.time_micros.to_le_bytes());
        out
    }

    pub(in crate::engine) fn decode(bytes: &[u8]) -> Option<BatchRecord> {
        let (&VERSION, rest) = bytes.split_first()? else {
            return None;
        };
        let (parts, _) = rest.as_chunks::<8>();
        let [number, synced_through, sequence_floor, time] = *parts.first_chunk()?;
        Some(BatchRecord {
            number: u64::from_le_bytes(number),
            synced_through: u64::from_le_bytes(synced_through),
            sequence_floor: u64::from_le_bytes(sequence_floor),
            time_micros: i64::from_le_bytes(time),
        })
    }

    /// Whether a batch with this record can have this sequence number.
    pub(super) fn allows(&self, sequence: u64) -> bool {
        sequence
            .checked_sub(self.sequence_floor)
            .is_some_and(|above| above < SEQUENCES_BETWEEN)
    }
}
