//! Marks of the segments of full vectors that were written to since the last snapshot.

use parking_lot::Mutex;

/// A mark for each segment.
#[derive(Debug)]
pub(crate) struct DirtySegments {
    /// Number of slots in a segment.
    segment_slots: u32,
    /// The marks by number of segment. Segments beyond the end have none.
    marks: Mutex<Vec<bool>>,
}

impl DirtySegments {
    pub(crate) fn new(segment_slots: u32) -> DirtySegments {
        DirtySegments {
            segment_slots,
            marks: Mutex::default(),
        }
    }

    /// Marks the segment of a slot. It is called before the slot's vector can be found.
    pub(crate) fn mark(&self, slot: u32) {
        let segment = (slot / self.segment_slots) as usize;
        let mut marks = self.marks.lock();
        if marks.len() <= segment {
            marks.resize(segment + 1, false);
        }
        marks[segment] = true;
    }

    /// Removes and returns all marks.
    pub(crate) fn take(&self) -> Vec<bool> {
        std::mem::take(&mut self.marks.lock())
    }

    /// Sets marks again that were taken for a save which failed.
    pub(crate) fn put_back(&self, taken: Vec<bool>) {
        let mut marks = self.marks.lock();
        let since = std::mem::replace(&mut *marks, taken);
        if marks.len() < since.len() {
            marks.resize(since.len(), false);
        }
        for (mark, since) in marks.iter_mut().zip(since) {
            *mark |= since;
        }
    }

    pub(crate) fn is_marked(&self, segment: usize) -> bool {
        self.marks.lock().get(segment).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::DirtySegments;

    #[test]
    fn marks_that_are_put_back_join_those_made_since() {
        let written = DirtySegments::new(64);
        written.mark(63);
        written.mark(200);
        let taken = written.take();
        assert_eq!(taken, [true, false, false, true]);
        assert!(!written.is_marked(0));
        written.mark(64);
        written.put_back(taken);
        let marks = [0, 1, 2, 3, 4].map(|segment| written.is_marked(segment));
        assert_eq!(marks, [true, true, false, true, false]);
        written.take();
        written.mark(300);
        written.put_back(vec![true]);
        assert_eq!(written.take(), [true, false, false, false, true]);
    }
}
