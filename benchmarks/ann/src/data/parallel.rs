//! Makes or measures rows on all cores.

use std::sync::Mutex;
use std::thread;

/// The number of rows that a thread takes at a time.
const BATCH: usize = 32;

/// Fills `rows` of `width` elements each on all cores. `fill` gets the number of the first of some
/// rows, and these rows.
pub fn fill_rows<T: Send>(rows: &mut [T], width: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    let batches = Mutex::new(rows.chunks_mut(BATCH * width).enumerate());
    let next = || batches.lock().expect("no filler panics").next();
    let work = || {
        while let Some((batch, rows)) = next() {
            fill(batch * BATCH, rows);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_filled_once() {
        let mut rows = vec![0usize; 3 * 1_001];
        fill_rows(&mut rows, 3, |first, rows| {
            for (offset, row) in rows.chunks_mut(3).enumerate() {
                row.iter_mut().for_each(|x| *x += first + offset + 1);
            }
        });
        let expected: Vec<usize> = (1..=1_001).flat_map(|x| [x; 3]).collect();
        assert_eq!(rows, expected);
    }
}
