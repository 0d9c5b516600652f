//! Blocks in a snapshot: copied out while others change them, and checked when they come back.

use std::sync::atomic::Ordering;

use super::{DEAD, DEGREE, SlotBlock, SlotHeader, SlotLayout};
use crate::codes::{CodeMeta, ORIGIN};

/// The offsets of the fields of [`SlotHeader`] after the code, as `docs/snapshot-format.md` draws
/// them.
const STATE: usize = 0;
const ID: usize = 4;
const SCALE: usize = 8;
const NORM: usize = 12;
const RAW_NORM: usize = 16;
const CENTRE: usize = 20;
const ERROR: usize = 24;
const IN_DEGREE: usize = 28;

impl SlotBlock<'_> {
    /// Copies the block to `bytes`, a stride of zeros, with the links that `keeps` admits. The copy
    /// is dead if `dead`, whatever the block has become meanwhile.
    ///
    /// # Safety
    /// The slot has been filled, and cannot be given away during the call.
    pub(crate) unsafe fn store(&self, bytes: &mut [u8], dead: bool, keeps: impl Fn(u32) -> bool) {
        let (code, rest) = bytes.split_at_mut(self.layout.code_bytes);
        let (header, room) = rest.split_at_mut(size_of::<SlotHeader>());
        // SAFETY: the caller's promise.
        let meta = unsafe {
            code.copy_from_slice(self.code());
            self.meta()
        };
        let mut state = if dead { DEAD } else { 0 };
        {
            // The lock keeps a link from being met twice. Nothing is changed.
            let links = self.lock();
            let kept = links.iter().filter(|link| keeps(*link));
            for (place, link) in room.as_chunks_mut().0.iter_mut().zip(kept) {
                *place = link.to_le_bytes();
                state += 1;
            }
        }
        let in_degree = self.header().in_degree.load(Ordering::Acquire);
        let fields = [
            (STATE, state),
            (ID, self.id()),
            (SCALE, meta.scale.to_bits()),
            (NORM, meta.norm.to_bits()),
            (RAW_NORM, meta.raw_norm.to_bits()),
            (CENTRE, meta.centre),
            (ERROR, meta.error.to_bits()),
            (IN_DEGREE, in_degree),
        ];
        for (at, field) in fields {
            header[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
    }

    /// Makes a block of the format's version 1 one of today: it has no centre, its in-degree is in
    /// another place, and `error_of` finds the error of its code.
    ///
    /// # Safety
    /// No one else has the block.
    pub(crate) unsafe fn modernise(&self, error_of: impl FnOnce(&[u8], &CodeMeta) -> f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let header = self.start.add(self.layout.code_bytes).cast::<SlotHeader>();
            let mut meta = (*header).meta;
            // It was where the centre is now.
            let in_degree = meta.centre;
            meta.centre = ORIGIN;
            meta.error = error_of(self.code(), &meta);
            (*header).meta = meta;
            self.header().in_degree.store(in_degree, Ordering::Relaxed);
        }
    }

    /// Checks a block that comes from a snapshot of this many slots; the error names what is wrong.
    /// Slots that a sound block links to may be read.
    pub(crate) fn check(&self, slots: u32, centres: usize) -> Result<(), &'static str> {
        let state = self.header().state.load(Ordering::Relaxed);
        if state & !(DEAD | DEGREE) != 0 {
            return Err("the state of a block is unknown");
        }
        if (state & DEGREE) as usize > self.layout.capacity {
            return Err("a block has more links than there is room for");
        }
        if self.header().meta.centre as usize > centres {
            return Err("a code has a centre that there isn't");
        }
        let mut sound = true;
        self.for_each_link(|link| sound &= link < slots);
        match sound {
            true => Ok(()),
            false => Err("a link leads to a slot beyond the last"),
        }
    }

    /// Number of links in use.
    pub(crate) fn degree(&self) -> usize {
        (self.header().state.load(Ordering::Acquire) & DEGREE) as usize
    }

    /// Corrects the number of links to this slot. No one else may have the graph yet.
    pub(crate) fn correct_in_degree(&self, links: u32) {
        let in_degree = &self.header().in_degree;
        if in_degree.load(Ordering::Relaxed) != links {
            in_degree.store(links, Ordering::Relaxed);
        }
    }
}

impl SlotLayout {
    /// Turns a stride of zeros into the block of a free slot.
    pub(crate) fn store_free(&self, bytes: &mut [u8]) {
        let at = self.code_bytes + STATE;
        bytes[at..at + 4].copy_from_slice(&DEAD.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_block;
    use super::*;
    use crate::codes::CodeMeta;

    #[test]
    fn a_stored_block_is_restored_with_only_the_retained_links() {
        with_block(|block| {
            let meta = CodeMeta {
                scale: 0.5,
                norm: 2.0,
                raw_norm: 3.0,
                centre: 4,
                error: 5.0,
            };
            let mut bytes = vec![0; block.layout.stride];
            // SAFETY: only this test has the block.
            unsafe {
                block.write(7, |code| {
                    code.fill(9);
                    meta
                });
                block.lock().replace([5, 6, 8].into_iter());
                block.gain_link();
                block.store(&mut bytes, false, |link| link != 6);
            }
            with_block(|copy| {
                // SAFETY: as long as a block, and only this test has it.
                unsafe {
                    let start = copy.start().cast_mut();
                    start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                    assert_eq!((copy.code(), copy.meta()), (block.code(), meta));
                }
                assert_eq!((copy.id(), copy.degree(), copy.is_dead()), (7, 2, false));
                assert!(!copy.is_orphan());
                let mut links = Vec::new();
                copy.for_each_link(|link| links.push(link));
                assert_eq!(links, [5, 8]);
                assert_eq!(copy.check(9, 4), Ok(()));
                assert!(copy.check(8, 4).is_err());
            });
        });
    }

    #[test]
    fn a_block_with_a_state_that_is_none_is_refused() {
        with_block(|block| {
            for (state, sound) in [
                (0, true),
                (8, true),
                (9, false),
                (DEAD, true),
                (1 << 31, false),
            ] {
                block.header().state.store(state, Ordering::Relaxed);
                assert_eq!(block.check(1, 0).is_ok(), sound, "{state:x}");
            }
        });
    }
}
