//! How long an operation on an object is tried.

use std::time::Duration;

/// Bytes a second below which a transfer counts as broken.
const SLOWEST_BYTES_PER_SECOND: u64 = 64 << 10;

/// How operations on objects are tried again.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The longest time of one attempt, besides the time that its bytes take at 64 KiB a second.
    pub attempt: Duration,
    /// The pause after the first attempt that failed. Each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// The time after which no further attempt begins.
    pub deadline: Duration,
    /// That time for a location that has not answered yet: its name or its address may be wrong.
    pub first_deadline: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempt: Duration::from_secs(60),
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(20),
            deadline: Duration::from_secs(5 * 60),
            first_deadline: Duration::from_secs(20),
        }
    }
}

impl RetryPolicy {
    /// The time after which no further attempt begins, of a location that has answered or not.
    pub(crate) fn deadline_of(&self, has_answered: bool) -> Duration {
        match has_answered {
            true => self.deadline,
            false => self.first_deadline.min(self.deadline),
        }
    }

    /// The longest time of one attempt to move so many bytes.
    pub(crate) fn attempt_of(&self, bytes: u64) -> Duration {
        self.attempt + Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND)
    }

    /// The pause after so many attempts, at random between half of it and all of it, so that
    /// servers that failed together don't come back together.
    pub(crate) fn pause_after(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(16);
        let pause = self.first_pause.saturating_mul(1 << doublings);
        pause
            .min(self.longest_pause)
            .mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let policy = RetryPolicy::default();
        assert!(policy.pause_after(1) <= policy.first_pause);
        assert!(policy.pause_after(1) >= policy.first_pause / 2);
        assert!(policy.pause_after(3) >= policy.first_pause * 2);
        for attempts in [20, 1_000] {
            let pause = policy.pause_after(attempts);
            assert!(pause <= policy.longest_pause && pause >= policy.longest_pause / 2);
        }
    }

    #[test]
    fn attempts_of_many_bytes_may_take_longer() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.attempt_of(0), policy.attempt);
        let of_8_mib = policy.attempt_of(8 << 20);
        assert_eq!(of_8_mib, policy.attempt + Duration::from_secs(128));
    }
}
