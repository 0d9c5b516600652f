//! Returning free memory from the allocator to the system.
//!
//! The allocator of glibc returns a large block to the system when it is freed. But once a block of
//! some size was freed, it treats blocks up to that size as small, and keeps free memory between
//! small blocks in use. So after a peak the process would keep its size.

use std::time::Duration;

use client_memory::MemoryBudget;

/// The size from which on a block is mapped by itself, and returns to the system when it is freed.
const MAPPED_BYTES_MIN: i32 = 512 << 10;

/// The interval of checks whether a peak is over.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The smallest distance of a peak above twice the bytes that clients hold now.
const PEAK_BYTES_MIN: usize = 16 << 20;

/// Makes large blocks return to the system, whatever was freed before. Call it before there are
/// threads.
pub fn set_up() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it changes a number within the allocator, and may be called at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    }
}

/// Returns memory to the system after each peak of the bytes that clients held, without end.
pub async fn keep_trimmed(budgets: Vec<MemoryBudget>) {
    // The peak since the last trim.
    let mut peak = 0;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        peak = budgets
            .iter()
            .map(MemoryBudget::take_peak)
            .sum::<usize>()
            .max(peak);
        let used: usize = budgets.iter().map(MemoryBudget::used).sum();
        if peak > PEAK_BYTES_MIN + 2 * used {
            peak = used;
            // A trim takes some milliseconds for each GB.
            let _ = tokio::task::spawn_blocking(give_back).await;
        }
    }
}

/// Returns memory that is free within the process to the system.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it gives pages back that hold nothing, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 16 << 10;
    const BLOCKS: usize = 16 << 10;
    /// One block in this many stays in use, which keeps the others from going back by themselves.
    const PINNED_EVERY: usize = 64;

    /// The memory of this process that the system can't take back, in bytes.
    fn anonymous_bytes() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<usize>().unwrap() << 10
    }

    #[tokio::test(start_paused = true)]
    async fn free_blocks_between_used_ones_go_back_after_a_peak() {
        let budget = MemoryBudget::new(1 << 30);
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
