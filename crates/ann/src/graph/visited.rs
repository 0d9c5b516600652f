//! The slots that a walk has seen.

/// A tag for each slot: the slot has been seen if its tag is that of the walk. The tags are cleared
/// only every 255 walks.
#[derive(Debug, Default)]
pub(crate) struct SlotVisits {
    tags: Vec<u8>,
    current: u8,
}

impl SlotVisits {
    /// Begins a walk over this many slots.
    pub(crate) fn reset(&mut self, slots: usize) {
        if self.tags.len() < slots {
            self.tags.resize(slots, 0);
        }
        if self.current == u8::MAX {
            self.tags.fill(0);
            self.current = 0;
        }
        self.current += 1;
    }

    /// Marks a slot as seen; true the first time. Slots that the index did not have when the walk
    /// began count as seen.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        // Whether a slot has been seen can't be predicted, so nothing here branches on it.
        match self.tags.get_mut(slot as usize) {
            Some(tag) => std::mem::replace(tag, self.current) != self.current,
            None => false,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.tags.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::SlotVisits;

    #[test]
    fn each_walk_sees_each_slot_once() {
        let mut visited = SlotVisits::default();
        for slots in 1..600 {
            visited.reset(slots);
            let last = slots as u32 - 1;
            assert!(visited.insert(0));
            assert!(!visited.insert(0));
            assert_eq!(visited.insert(last), last != 0);
            assert!(!visited.insert(600));
        }
    }
}
