//! The slots that are free to take.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::pool::SLOTS_MAX;

/// Slots from 0 up to `end` have been given out at some time; those given back are in `free`.
#[derive(Debug, Default)]
pub(crate) struct SlotAllocator {
    end: AtomicU32,
    free: Mutex<Vec<u32>>,
}

impl SlotAllocator {
    /// One above the largest slot that was ever given out.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    /// Gives out a slot that no one has; None if there is none left.
    pub(crate) fn take(&self) -> Option<u32> {
        if let Some(slot) = self.free.lock().pop() {
            return Some(slot);
        }
        let next = |end: u32| (end < SLOTS_MAX).then(|| end + 1);
        self.end
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .ok()
    }

    /// Takes back slots that no one can reach any more.
    pub(crate) fn give_back(&self, slots: impl IntoIterator<Item = u32>) {
        self.free.lock().extend(slots);
    }

    /// Takes over the slots of a snapshot: those up to `end`, of which some are free.
    pub(crate) fn restore(&mut self, end: u32, free: Vec<u32>) {
        *self.end.get_mut() = end;
        *self.free.get_mut() = free;
    }

    #[cfg(test)]
    fn free(&self) -> usize {
        self.free.lock().len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.free.lock().capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_given_back_are_taken_before_new_ones() {
        let slots = SlotAllocator::default();
        assert_eq!([slots.take(), slots.take()], [Some(0), Some(1)]);
        slots.give_back([0]);
        assert_eq!([slots.take(), slots.take()], [Some(0), Some(2)]);
        assert_eq!((slots.end(), slots.free()), (3, 0));
    }

    #[test]
    fn the_number_of_slots_is_limited() {
        let slots = SlotAllocator {
            end: AtomicU32::new(SLOTS_MAX),
            free: Mutex::new(vec![5]),
        };
        assert_eq!([slots.take(), slots.take()], [Some(5), None]);
        assert_eq!(slots.end(), SLOTS_MAX);
    }
}
