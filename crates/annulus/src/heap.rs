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
