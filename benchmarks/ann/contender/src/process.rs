//! Reads the memory of this process.

use std::fs;

use anyhow::{Context, anyhow};

/// The bytes that cannot be dropped and read again from a file, which an index costs in RAM. Linux
/// counts them as `RssAnon`, which is the pages that were touched.
pub fn anonymous_bytes() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("the status of the process")?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or_else(|| anyhow!("the status of the process has no line RssAnon"))?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_counts() {
        const BYTES: usize = 64 << 20;
        let before = anonymous_bytes().unwrap();
        let touched = std::hint::black_box(vec![1u8; BYTES]);
        let grown = anonymous_bytes().unwrap() - before;
        assert!(grown >= BYTES as u64 * 9 / 10, "{grown}");
        drop(touched);
    }
}
