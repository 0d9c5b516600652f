//! Claims of memory for indexes from snapshots, made before they are read.
//!
//! A measurement of the process shows the memory in use, but not what is about to be used. So each
//! of the indexes that are opened at the same time claims what it will need. All claims count from
//! the measurement before the first of them.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::ProcessMemory;

/// The part of the limit, one in this many, by which claims may overstep it. An index at the limit
/// is a little beyond it, by the rows between two measurements, and its need after a restart is an
/// estimate. The tolerance lets it be opened again nevertheless.
const TOLERANCE: u64 = 16;

/// The claims that were made lately.
#[derive(Debug, Default)]
pub(super) struct RecentClaims {
    /// The number of claims whose memory is still being taken.
    open: usize,
    /// The bytes in use when the first of the claims was made.
    base_bytes: u64,
    /// The bytes of all claims since the first, including those that have ended.
    claimed_bytes: u64,
}

/// A grant of memory. Keep it until the memory has been taken.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    memory: &'a ProcessMemory,
}

/// The error for a claim of more memory than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "about {} MiB of memory are needed and {} MiB are in use, but the limit is {} MiB: give the process more memory, or drop an index",
    needed_bytes >> 20, used_bytes >> 20, limit_bytes >> 20
)]
pub(crate) struct NoMemory {
    /// The bytes that were requested.
    pub needed_bytes: u64,
    /// The bytes in use or promised to other claims.
    pub used_bytes: u64,
    /// The limit of the process in bytes.
    pub limit_bytes: u64,
}

impl ProcessMemory {
    /// Claims memory. Every claim is granted if no limit is known.
    ///
    /// # Errors
    /// If the claim oversteps the limit by more than the tolerance.
    pub(crate) fn claim(&self, bytes: u64) -> Result<Claim<'_>, NoMemory> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.open == 0 {
            *claims = RecentClaims {
                base_bytes: self.used_now(),
                ..RecentClaims::default()
            };
        }
        let limit_bytes = self.limit_bytes();
        let used_bytes = claims.base_bytes.saturating_add(claims.claimed_bytes);
        let allowed_bytes = limit_bytes.saturating_add(limit_bytes / TOLERANCE);
        let is_known = self.is_known.load(Ordering::Relaxed);
        if is_known && used_bytes.saturating_add(bytes) > allowed_bytes {
            return Err(NoMemory {
                needed_bytes: bytes,
                used_bytes,
                limit_bytes,
            });
        }
        claims.open += 1;
        claims.claimed_bytes = claims.claimed_bytes.saturating_add(bytes);
        Ok(Claim { memory: self })
    }

    /// The bytes in use now. If that can't be read, the bytes at the last measurement.
    fn used_now(&self) -> u64 {
        let now = self.used_bytes_now();
        now.unwrap_or_else(|| self.used_bytes.load(Ordering::Relaxed))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let claims = self.memory.claims.lock();
        claims.unwrap_or_else(PoisonError::into_inner).open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_count_together_until_all_are_taken() {
        let memory = ProcessMemory::default();
        let first = memory.claim(1 << 60);
        drop(first.expect("no limit is known"));
        memory.note(200, 1600);
        let first = memory.claim(600).unwrap();
        let second = memory.claim(800).unwrap();
        // The memory that the first has taken by now is in use, and was claimed. It counts once.
        drop(first);
        memory.note(800, 1600);
        let refused = memory.claim(101).unwrap_err();
        let expected = NoMemory {
            needed_bytes: 101,
            used_bytes: 1600,
            limit_bytes: 1600,
        };
        assert_eq!(refused, expected);
        drop(memory.claim(100).expect("a little beyond the limit"));
        drop(second);
        // The next claim begins with a new measurement.
        drop(memory.claim(900).unwrap());
        memory.note(1600, 1600);
        assert!(memory.claim(101).is_err());
        let error = memory.claim(10 << 20).unwrap_err().to_string();
        assert!(error.starts_with("about 10 MiB"), "{error}");
    }
}
