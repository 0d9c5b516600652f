//! Free memory that the allocator keeps, and how it goes back to the system.
//!
//! The allocator of glibc gives a large block back to the system as it is freed, but takes blocks for ever larger ones as small
//! as soon as one of their size was freed; what is between small blocks that are in use it keeps. After a peak the process
//! would stay as large as it ever was.

use std::time::Duration;

use client_memory::Budget;

/// Blocks of this many bytes and more are mapped for themselves, and go back to the system when they are freed.
const MAPPED_BYTES_MIN: i32 = 512 << 10;

/// How often it is looked at whether a peak is over.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A peak is one that was so much above what clients hold now.
const PEAK_BYTES_MIN: usize = 16 << 20;

/// Has large blocks go back to the system, whatever was freed before. To be called before there are threads.
pub fn set_up() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it changes a number within the allocator, and may be called at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    }
}

/// Gives memory back to the system after each peak of what clients held, for ever.
pub async fn keep_trimmed(budgets: Vec<Budget>) {
    // The highest since the last time.
    let mut peak = 0;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        peak = budgets
            .iter()
            .map(Budget::take_peak)
            .sum::<usize>()
            .max(peak);
        let used: usize = budgets.iter().map(Budget::used).sum();
        if peak > PEAK_BYTES_MIN + 2 * used {
            peak = used;
            // It takes some milliseconds for each GB.
            let _ = tokio::task::spawn_blocking(trim).await;
        }
    }
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it gives pages back that hold nothing, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 16 << 10;
    const BLOCKS: usize = 16 << 10;
    /// A block that stays in use at every so many bytes keeps all others from going back by themselves.
    const PINNED_EVERY: usize = 64;

    /// Memory of this process that the system can't take back, in bytes.
    fn anonymous_bytes() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<usize>().unwrap() << 10
    }

    #[tokio::test(start_paused = true)]
    async fn free_blocks_between_used_ones_go_back_after_a_peak() {
        let budget = Budget::new(1 << 30);
        let trimming = tokio::spawn(keep_trimmed(vec![budget.clone()]));
        let account = budget.client().unwrap();
        let mut charge = account.charge();
        charge.resize(BLOCKS * BLOCK_BYTES).unwrap();
        let mut blocks: Vec<Option<Vec<u8>>> =
            (0..BLOCKS).map(|_| Some(vec![1; BLOCK_BYTES])).collect();
        for (number, block) in blocks.iter_mut().enumerate() {
            if number % PINNED_EVERY > 0 {
                *block = None;
            }
        }
        drop(charge);
        let all = BLOCKS * BLOCK_BYTES;
        assert!(anonymous_bytes() > all / 2, "they go back by themselves");
        for _ in 0..600 {
            if anonymous_bytes() < all / 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(anonymous_bytes() < all / 2, "{}", anonymous_bytes());
        trimming.abort();
    }
}
