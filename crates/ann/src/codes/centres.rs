//! Centres that codes are taken from, in addition to the mean of all.
//!
//! The error of an estimate is the product of two distances: from the query to the centre of a
//! code, and from the vector to that centre. Where vectors form clusters, copies of one another, or
//! a thread through space, the distances between neighbours are far smaller than those from the
//! mean, and codes taken from the mean can't tell neighbours apart. A code taken from a centre
//! within the cluster can: its error falls with the square of the cluster's width.
//!
//! With a vector `x = c + r`, and `r'` as the code of `r` has it, the squared distance of a query
//! is
//!
//! ```text
//! |q - x|^2 = |q - c|^2 + |r|^2 - 2 (q - c).r
//!           ~ |q - c|^2 + (|r|^2 + 2 c.r') - 2 q.r'
//! ```
//!
//! The term in brackets belongs to the code ([`Meta::norm`](super::CodeMeta)), and the first one is
//! computed once for each query and centre that a search meets. So all codes are compared with the
//! same levels of the query, and the error is still that of `(q - c).(r - r')`.
//!
//! Centres are only ever added. A code stays as it was made; a vector whose code is worse than one
//! from a newer centre gets another slot ([`crate::graph`]).

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::memory::{GrowError, RecordArray, RecordPlacement};

/// The number of the origin of the codebook's space, the mean of a sample. It has no point.
pub(crate) const ORIGIN: u32 = 0;

/// Bytes after a point for the example of its centre; points are whole cache lines.
const SLOT_BYTES: usize = 64;

/// The centres of a codebook, by number. [`ORIGIN`] is always there.
pub(crate) struct CentreTable {
    /// Point `i` is that of centre `i + 1`. The centre's example follows the point.
    points: RecordArray,
    /// Number of elements of a point, a multiple of 16.
    elements: usize,
    /// Number of points.
    count: AtomicU32,
    example_of_origin: AtomicU32,
    adding: Mutex<()>,
}

impl CentreTable {
    /// No centres but the origin, for points of so many elements.
    pub(super) fn new(elements: usize) -> CentreTable {
        CentreTable {
            points: RecordArray::new(
                elements * size_of::<f32>() + SLOT_BYTES,
                RecordPlacement::Memory,
            ),
            elements,
            count: AtomicU32::new(0),
            example_of_origin: AtomicU32::new(0),
            adding: Mutex::default(),
        }
    }

    /// Number of centres without the origin.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) as usize
    }

    /// The point of a centre; `None` for the origin, and for a centre that there isn't.
    pub(crate) fn point(&self, centre: u32) -> Option<&[f32]> {
        let at = centre.checked_sub(1)?;
        if at >= self.count.load(Ordering::Acquire) {
            return None;
        }
        let start = self.points.get(at)?;
        // SAFETY: the point was written before it was counted, and is never written again. Records
        // have this many floats, and begin at multiples of 64 bytes or of their own length.
        Some(unsafe { std::slice::from_raw_parts(start.cast(), self.elements) })
    }

    /// Sets the example of a centre: a slot whose code is taken from it.
    pub(crate) fn set_example(&self, centre: u32, slot: u32) {
        if let Some(example) = self.example_of(centre) {
            example.store(slot + 1, Ordering::Relaxed);
        }
    }

    /// The example of a centre; the slot may hold something else by now.
    pub(crate) fn example(&self, centre: u32) -> Option<u32> {
        let example = self.example_of(centre)?;
        example.load(Ordering::Relaxed).checked_sub(1)
    }

    /// One above the example of a centre; 0 if it has none.
    fn example_of(&self, centre: u32) -> Option<&AtomicU32> {
        if centre == ORIGIN {
            return Some(&self.example_of_origin);
        }
        let point = self.point(centre)?;
        // SAFETY: each record has room for a word after its point, which is only used as an atomic.
        Some(unsafe { &*point.as_ptr().add(self.elements).cast::<AtomicU32>() })
    }

    /// Adds a centre if there are fewer than `max`, and returns its number. There is none if there
    /// is no memory for it.
    pub(crate) fn add(&self, point: &[f32], max: usize) -> Option<u32> {
        assert_eq!(point.len(), self.elements);
        let _adding = self.adding.lock();
        let at = self.count.load(Ordering::Relaxed);
        if at as usize >= max || self.points.ensure(at).is_err() {
            return None;
        }
        let start = self.points.get(at)?;
        // SAFETY: there is room for the point, and no one reads it before it is counted.
        unsafe {
            start
                .cast::<f32>()
                .copy_from_nonoverlapping(point.as_ptr(), self.elements);
        }
        self.count.store(at + 1, Ordering::Release);
        Some(at + 1)
    }

    /// Makes sure that there is memory for another centre.
    pub(super) fn ensure_another(&self) -> Result<(), GrowError> {
        self.points.ensure(self.count.load(Ordering::Relaxed))
    }

    /// Bytes of all points.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.len() * self.elements * size_of::<f32>()
    }
}
