//! The way of the kernels through the codes of a hop: in batches, prefetching ahead.

/// Number of codes compared at a time. Four keep the multipliers busy, and their sums fold into one
/// register.
pub(super) const BATCH: usize = 4;

/// Number of codes on their way from memory while a batch is compared: most hops whole. On an EPYC
/// of AMD, with codes for 96 to 1,536 dimensions, 16 take up to 8 in a hundred longer for the
/// shorter ones, and 64 take as long. (With prefetching into the first level, on a Sapphire Rapids
/// Xeon, 8 to 32 differed by a few hundredths, and one batch ahead cost a quarter more.)
const AHEAD: usize = 32;

/// Bytes of a cache line; codes are whole lines.
const LINE: usize = 64;

/// The codes of a hop in batches, each with the place for its results.
pub(super) struct CodeBatches<'a, T> {
    codes: &'a [*const u8],
    out: &'a mut [T],
    /// The codes that are not prefetched yet.
    ahead: &'a [*const u8],
    code_bytes: usize,
}

/// Splits a hop into batches, and prefetches the first codes.
///
/// # Panics
///
/// If there are not as many results as codes.
#[inline(always)]
pub(super) fn batches<'a, T>(
    codes: &'a [*const u8],
    code_bytes: usize,
    out: &'a mut [T],
) -> CodeBatches<'a, T> {
    assert_eq!(codes.len(), out.len(), "one result for each code");
    let mut batches = CodeBatches {
        codes,
        out,
        ahead: codes,
        code_bytes,
    };
    batches.prefetch(AHEAD);
    batches
}

impl<T> CodeBatches<'_, T> {
    /// Prefetches the next `count` codes.
    #[inline(always)]
    fn prefetch(&mut self, count: usize) {
        let (now, later) = self.ahead.split_at(count.min(self.ahead.len()));
        self.ahead = later;
        for code in now {
            // One line more than the code has: the block's header is read right after it.
            for_each_line(*code, self.code_bytes + LINE, prefetch::<SECOND_LEVEL>);
        }
    }
}

impl<'a, T> Iterator for CodeBatches<'a, T> {
    /// The last batch is filled up by repeating its last code; then it has fewer results than
    /// codes.
    type Item = ([*const u8; BATCH], &'a mut [T]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let &last = self.codes.last()?;
        self.prefetch(BATCH);
        let count = self.codes.len().min(BATCH);
        let batch = match self.codes.first_chunk() {
            Some(batch) => *batch,
            None => std::array::from_fn(|i| self.codes.get(i).copied().unwrap_or(last)),
        };
        self.codes = &self.codes[count..];
        let (out, rest) = std::mem::take(&mut self.out).split_at_mut(count);
        self.out = rest;
        Some((batch, out))
    }
}

/// Writes the results of a batch, as many as `out` has place for.
#[inline(always)]
pub(super) fn put<T: Copy>(out: &mut [T], results: [T; BATCH]) {
    if let Ok(out) = <&mut [T; BATCH]>::try_from(&mut *out) {
        *out = results;
    } else {
        for (out, result) in out.iter_mut().zip(results) {
            *out = result;
        }
    }
}

/// Prefetches a few bytes that are read next.
#[inline(always)]
pub(crate) fn prefetch_bytes(start: *const u8, bytes: usize) {
    for_each_line(start, bytes, prefetch::<FIRST_LEVEL>);
}

#[inline(always)]
fn for_each_line(start: *const u8, bytes: usize, show: impl Fn(*const u8)) {
    for line in 0..bytes.div_ceil(LINE) {
        show(start.wrapping_add(line * LINE));
    }
}

/// Prefetching goes into the first-level cache, which waits for some twenty lines at a time.
const FIRST_LEVEL: bool = true;

/// Prefetching goes into the second-level cache, which waits for more: the codes of a hop are some
/// hundred lines. On the EPYC a search takes 0.5 to 0.9 of the time where codes come from memory,
/// and as long where they are in a cache (`docs/benchmarks/engine.md`).
const SECOND_LEVEL: bool = false;

/// Prefetches a cache line, without waiting for it. Any address will do: it is a hint, not a read.
#[inline(always)]
fn prefetch<const NEAR: bool>(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on the caches, and never faults.
        unsafe {
            match NEAR {
                true => _mm_prefetch::<_MM_HINT_T0>(address.cast()),
                false => _mm_prefetch::<_MM_HINT_T1>(address.cast()),
            }
        }
    }
    // Here it is always the first level, as nothing else has been measured.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch has no effect but on the caches, and never faults.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_once_and_the_last_batch_repeats_its_last() {
        for count in 0..=3 * AHEAD {
            let memory = vec![0u8; count];
            let codes: Vec<_> = memory.iter().map(std::ptr::from_ref).collect();
            let mut out = vec![std::ptr::null(); count];
            let mut longest = 0;
            for (batch, out) in batches(&codes, LINE, &mut out) {
                assert!(
                    batch[out.len()..]
                        .iter()
                        .all(|&code| code == batch[out.len() - 1])
                );
                longest = longest.max(out.len());
                put(out, batch);
            }
            assert_eq!(out, codes);
            assert_eq!(longest, count.min(BATCH));
        }
    }

    #[test]
    #[should_panic(expected = "one result for each code")]
    fn fewer_results_than_codes_are_a_bug() {
        batches(&[std::ptr::null()], LINE, &mut [0; 0]);
    }
}
