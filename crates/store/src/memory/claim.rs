//! Memory for an index that comes out of a snapshot, asked for before it is taken.
//!
//! A look at the process tells what it takes, not what it is about to take. So of the indexes that are opened at
//! the same time each says what it will need, and all of that counts from when the first of them began.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{Memory, limits};

/// An index that has come to the limit is a little beyond it, by what came in between two looks, and what it will
/// take after a restart is estimated. So that it is opened again all the same, a claim may overstep the limit by
/// this part of it, one in so many.
const TOLERANCE: u64 = 16;

/// What has been asked for lately.
#[derive(Debug, Default)]
pub struct Claims {
    /// How many are still being taken.
    open: usize,
    /// What the process took when the first of them was made.
    base_bytes: u64,
    /// All since then, whether still open or not.
    claimed_bytes: u64,
}

/// Memory that may be taken. To be kept until it has been.
#[derive(Debug)]
pub struct Claim<'a> {
    memory: &'a Memory,
}

/// There is less memory than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "about {} MiB of memory are needed and {} MiB in use, of {} MiB that may be: give the process more memory, or drop an index",
    needed_bytes >> 20, used_bytes >> 20, limit_bytes >> 20
)]
pub struct NoMemory {
    /// Asked for.
    pub needed_bytes: u64,
    /// Taken already, or promised to others.
    pub used_bytes: u64,
    /// What the process may take.
    pub limit_bytes: u64,
}

impl Memory {
    /// Asks for memory. All that is asked for is granted where no limit is known.
    pub fn claim(&self, bytes: u64) -> Result<Claim<'_>, NoMemory> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.open == 0 {
            *claims = Claims {
                base_bytes: self.used_now(),
                ..Claims::default()
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

    /// What the process takes at this moment; if that can't be said, what it took at the last look.
    fn used_now(&self) -> u64 {
        let told = self.root.as_deref().and_then(limits::used_bytes);
        told.unwrap_or_else(|| self.used_bytes.load(Ordering::Relaxed))
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
        let memory = Memory::default();
        let first = memory.claim(1 << 60);
        drop(first.expect("no limit is known"));
        memory.note(200, 1600);
        let first = memory.claim(600).unwrap();
        let second = memory.claim(800).unwrap();
        // What the first has taken by now is in use, and was asked for: it counts once.
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
        // From here on another look counts.
        drop(memory.claim(900).unwrap());
        memory.note(1600, 1600);
        assert!(memory.claim(101).is_err());
        let error = memory.claim(10 << 20).unwrap_err().to_string();
        assert!(error.starts_with("about 10 MiB"), "{error}");
    }
}
