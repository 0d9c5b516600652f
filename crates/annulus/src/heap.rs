//! Returning free memory from the allocator to the system.
//!
//! The allocator of glibc returns a large block to the system when it is freed. But once a block of
//! some size was freed, it treats blocks up to that size as small, and keeps free memory between
//! small blocks in use. So after a peak the process would keep its size.

use std::time::Duration;

use client_memory::Budget;

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
pub async fn keep_trimmed(budgets: Vec<Budget>) {
    // The peak since the last trim.
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
            // A trim takes some milliseconds for each GB.
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
