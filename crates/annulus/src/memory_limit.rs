//! The limit for the memory of the process.

use client_memory::MemoryShares;

use crate::exit::ProcessFailure;
use crate::size::ByteSize;

/// The smallest limit. With less the process does not get far.
const LIMIT_BYTES_MIN: u64 = 64 << 20;

/// The size of the cache for blocks of rows, which takes at most one part in `CACHE_PART` of the
/// limit.
const CACHE_BYTES: u64 = 256 << 20;
const CACHE_PART: u64 = 8;

/// The memory that the process may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit in bytes, without mapped files; `None` if the system does not tell its memory.
    pub bytes: Option<u64>,
}

/// The memory of tables with `in_memory = true`, which is at most one part in `RESIDENT_PART` of
/// the limit.
const RESIDENT_BYTES: u64 = 64 << 20;
const RESIDENT_PART: u64 = 16;

/// The memory of rows that wait to be written out, of all tables together. It is at most one part
/// in `WRITE_BUFFER_PART` of the limit.
const WRITE_BUFFER_BYTES: u64 = 256 << 20;
const WRITE_BUFFER_PART: u64 = 8;

/// The rows that a batch of writes takes along, which are at most one part in `BATCH_PART` of the
/// limit.
const BATCH_BYTES: u64 = 64 << 20;
const BATCH_PART: u64 = 16;

/// The stored rows that one write may look at, which are at most one part in `WRITE_ROWS_PART` of
/// the limit.
const WRITE_ROWS_BYTES: u64 = 256 << 20;
const WRITE_ROWS_PART: u64 = 8;

impl MemoryLimit {
    /// Takes the limit that was set, or half of the memory of the machine or the control group.
    pub fn resolve(set: Option<ByteSize>) -> Result<MemoryLimit, ProcessFailure> {
        match set {
            Some(ByteSize(bytes)) if bytes < LIMIT_BYTES_MIN => {
                Err(ProcessFailure::Configuration(format!(
                    "memory-limit must be at least {} MiB",
                    LIMIT_BYTES_MIN >> 20
                )))
            }
            Some(ByteSize(bytes)) => Ok(MemoryLimit { bytes: Some(bytes) }),
            None => Ok(MemoryLimit {
                bytes: store::half_of_machine_bytes(),
            }),
        }
    }

    /// The shares of the limit that clients may pin.
    pub fn shares(self) -> MemoryShares {
        self.bytes
            .map_or_else(MemoryShares::default, MemoryShares::of_limit)
    }

    /// The bytes for cached blocks of rows, if no setting gives them.
    pub fn cache_bytes(self) -> u64 {
        let part = self.bytes.map_or(u64::MAX, |bytes| bytes / CACHE_PART);
        CACHE_BYTES.min(part)
    }

    /// The bytes for rows that wait to be written out.
    pub fn write_buffer_bytes(self) -> u64 {
        let part = self
            .bytes
            .map_or(u64::MAX, |bytes| bytes / WRITE_BUFFER_PART);
        WRITE_BUFFER_BYTES.min(part)
    }

    /// The bytes of rows that a batch of writes takes along.
    pub fn batch_bytes(self) -> usize {
        part(self.bytes, BATCH_PART, BATCH_BYTES)
    }

    /// The bytes of stored rows that one write may look at.
    pub fn write_rows_bytes(self) -> usize {
        part(self.bytes, WRITE_ROWS_PART, WRITE_ROWS_BYTES)
    }

    /// The bytes for tables in memory, if no setting gives them.
    pub fn resident_bytes(self) -> u64 {
        let part = self.bytes.map_or(u64::MAX, |bytes| bytes / RESIDENT_PART);
        RESIDENT_BYTES.min(part)
    }
}

/// So many bytes, or a part of the limit if that is less.
fn part(limit: Option<u64>, part: u64, bytes: u64) -> usize {
    let bytes = limit.map_or(bytes, |limit| bytes.min(limit / part));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_process_has_small_shares() {
        let limit = |text: &str| MemoryLimit::resolve(Some(text.parse().unwrap()));
        let large = limit("8GiB").unwrap();
        assert_eq!(large.shares(), MemoryShares::default());
        assert_eq!(large.cache_bytes(), 256 << 20);
        assert_eq!(large.write_buffer_bytes(), 256 << 20);
        assert_eq!(limit("128MiB").unwrap().write_buffer_bytes(), 16 << 20);
        let small = limit("1GiB").unwrap();
        assert_eq!(small.shares(), MemoryShares::of_limit(1 << 30));
        assert_eq!(small.cache_bytes(), 128 << 20);
        assert_eq!(limit("512MiB").unwrap().resident_bytes(), 32 << 20);
        assert_eq!(large.resident_bytes(), 64 << 20);
        assert_eq!(large.batch_bytes(), 64 << 20);
        assert_eq!(limit("512MiB").unwrap().batch_bytes(), 32 << 20);
        assert_eq!(small.write_rows_bytes(), 128 << 20);
        assert!(limit("1MiB").is_err());
        let default = MemoryLimit::resolve(None).unwrap();
        assert_eq!(default.bytes, store::half_of_machine_bytes());
    }
}
