//! The block of a slot, one piece of memory: its code, a header, its links.
//!
//! ```text
//! 0            code_bytes       +32
//! | code ...   | header         | links: u32 x capacity |        stride, a multiple of 64
//! ```
//!
//! A search touches the code and the header of every slot that it measures, and the links of the
//! few that it expands, so the header is right after the code, on the line that a kernel fetches
//! with it. Code, id and meta are written before a slot can be reached and stay as they are until
//! no one can reach it any more; everything else is atomic.

mod stored;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::codes::CodeMeta;

/// Bytes of a cache line; blocks start on one, and codes fill whole ones.
pub(crate) const LINE: usize = 64;

/// The lowest bits of [`SlotHeader::state`]: the number of links.
const DEGREE: u32 = 0xffff;
/// The bit that is set while somebody changes the links.
const LOCKED: u32 = 1 << 31;
/// The bit of a slot without a vector: walks pass through it, and nothing may link to it any more.
const DEAD: u32 = 1 << 30;
/// The bit of a slot that more ids than that of the header may have.
const SHARED: u32 = 1 << 29;

/// Number of tries to take a lock before the thread lets others run.
const SPINS: usize = 64;

/// The places of the parts of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotLayout {
    /// Bytes of a code, a multiple of [`LINE`].
    pub code_bytes: usize,
    /// Number of links that a block has room for.
    pub capacity: usize,
    /// Bytes from one block to the next, a multiple of [`LINE`].
    pub stride: usize,
}

impl SlotLayout {
    /// Lays out a block with room for a quarter more links than `degree`, which a slot keeps when
    /// it has to choose. So it does not have to choose each time one is added. More links fill the
    /// last line.
    pub(crate) fn new(code_bytes: usize, degree: usize) -> SlotLayout {
        debug_assert_eq!(code_bytes % LINE, 0);
        let links = code_bytes + size_of::<SlotHeader>();
        let least = links + (degree + degree.div_ceil(4)) * size_of::<u32>();
        let stride = least.next_multiple_of(LINE);
        SlotLayout {
            code_bytes,
            capacity: (stride - links) / size_of::<u32>(),
            stride,
        }
    }

    /// Number of bytes that a search reads of a slot that it measures.
    pub(crate) fn measured_bytes(&self) -> usize {
        self.code_bytes + size_of::<SlotHeader>()
    }
}

/// The header of a block, after its code. Its layout is part of the snapshot's format.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct SlotHeader {
    state: AtomicU32,
    id: AtomicU32,
    meta: CodeMeta,
    /// Number of links from other slots to this one. It keeps the last one from being taken away.
    in_degree: AtomicU32,
}

/// Estimates find the meta of a code here: [`SlotHeader::meta`], after the state and the id.
const _: () = assert!(std::mem::offset_of!(SlotHeader, meta) == 8 && size_of::<SlotHeader>() == 32);

/// The block of one slot.
#[derive(Clone, Copy)]
pub(crate) struct SlotBlock<'a> {
    start: *mut u8,
    layout: SlotLayout,
    owner: PhantomData<&'a ()>,
}

impl<'a> SlotBlock<'a> {
    /// The block at `start`.
    ///
    /// # Safety
    /// At `start` are `layout.stride` bytes, zeroed or written as a block, aligned to [`LINE`],
    /// which stay mapped for `'a`, and of which only blocks are made.
    pub(crate) unsafe fn new(start: *mut u8, layout: SlotLayout) -> SlotBlock<'a> {
        debug_assert_eq!(start as usize % align_of::<SlotHeader>(), 0);
        SlotBlock {
            start,
            layout,
            owner: PhantomData,
        }
    }

    /// The address of the block, and of its code.
    pub(crate) fn start(&self) -> *const u8 {
        self.start
    }

    fn header(&self) -> &'a SlotHeader {
        // SAFETY: `new` promises a header after the code. Its meta is plain memory, which is only
        // written while no one else can reach the slot (`write`); the rest is atomic.
        unsafe { &*self.start.add(self.layout.code_bytes).cast::<SlotHeader>() }
    }

    /// The words for links. Those past the degree are left over from former links.
    fn room(&self) -> &'a [AtomicU32] {
        let at = self.layout.code_bytes + size_of::<SlotHeader>();
        // SAFETY: `new` promises the stride, of which the layout leaves `capacity` words after the
        // header, and these are only ever used as atomics.
        unsafe { std::slice::from_raw_parts(self.start.add(at).cast(), self.layout.capacity) }
    }

    /// The code of the slot.
    ///
    /// # Safety
    /// The slot has been filled, and cannot be given away while the slice is in use.
    pub(crate) unsafe fn code(&self) -> &'a [u8] {
        // SAFETY: `new` promises the bytes, and the caller that no one writes them.
        unsafe { std::slice::from_raw_parts(self.start, self.layout.code_bytes) }
    }

    /// The meta of the code.
    ///
    /// # Safety
    /// As for [`SlotBlock::code`].
    pub(crate) unsafe fn meta(&self) -> CodeMeta {
        self.header().meta
    }

    /// Fills the block of a slot for the vector of `id`. `encode` writes the code and returns its
    /// meta.
    ///
    /// # Safety
    /// No one else has the slot.
    pub(crate) unsafe fn write(&self, id: u32, encode: impl FnOnce(&mut [u8]) -> CodeMeta) {
        // SAFETY: `new` promises the bytes, and the caller that only we have them.
        unsafe {
            let code = std::slice::from_raw_parts_mut(self.start, self.layout.code_bytes);
            let header = self.start.add(self.layout.code_bytes).cast::<SlotHeader>();
            (*header).meta = encode(code);
        }
        let header = self.header();
        header.id.store(id, Ordering::Relaxed);
        header.in_degree.store(0, Ordering::Relaxed);
        header.state.store(0, Ordering::Release);
    }

    /// The id that has the slot. Others may have it too if the slot [is
    /// shared](SlotBlock::is_shared).
    pub(crate) fn id(&self) -> u32 {
        self.header().id.load(Ordering::Relaxed)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.header().state.load(Ordering::Acquire) & DEAD != 0
    }

    /// Whether the slot links to others and is not dead. Such a slot has been filled. It stays so
    /// while the epoch is pinned, if it was pinned before this call: a slot is filled before it
    /// links to others, and one that has had a link is free again only when no one is left who may
    /// have seen it alive ([`repair`](super::repair)).
    pub(crate) fn is_linked(&self) -> bool {
        let state = self.header().state.load(Ordering::Acquire);
        state & DEAD == 0 && state & DEGREE != 0
    }

    /// Whether others than [`SlotBlock::id`] may have the slot.
    pub(crate) fn is_shared(&self) -> bool {
        self.header().state.load(Ordering::Acquire) & SHARED != 0
    }

    /// Shows each link, as it was at some moment during the call. What the linked slots hold may be
    /// read afterwards.
    #[inline(always)]
    pub(crate) fn for_each_link(&self, mut show: impl FnMut(u32)) {
        let degree = self.header().state.load(Ordering::Acquire) & DEGREE;
        for link in &self.room()[..degree as usize] {
            show(link.load(Ordering::Relaxed));
        }
        // Pairs with the release of each link that is stored.
        fence(Ordering::Acquire);
    }

    /// The address of the links and their length in bytes, for fetching ahead.
    pub(crate) fn links_at(&self) -> (*const u8, usize) {
        let at = self.layout.code_bytes + size_of::<SlotHeader>();
        (self.start.wrapping_add(at), self.layout.stride - at)
    }

    /// Counts a link from another slot to this one.
    pub(crate) fn gain_link(&self) {
        self.header().in_degree.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes one off the count of links to this slot; false, with nothing done, if one or none is
    /// left.
    pub(crate) fn lose_link(&self) -> bool {
        let spare_one = |links: u32| (links > 1).then(|| links - 1);
        let in_degree = &self.header().in_degree;
        in_degree
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, spare_one)
            .is_ok()
    }

    /// Takes one off the count of links to this slot in any case; true if none is left.
    pub(crate) fn lose_any_link(&self) -> bool {
        let one_less = |links: u32| links.checked_sub(1);
        let in_degree = &self.header().in_degree;
        let before = in_degree.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        before.is_ok_and(|links| links == 1)
    }

    /// Whether no slot links to this one.
    pub(crate) fn is_orphan(&self) -> bool {
        self.header().in_degree.load(Ordering::Acquire) == 0
    }

    /// Locks the links. Waits while somebody else changes them.
    pub(crate) fn lock(&self) -> LockedLinks<'a> {
        let state = &self.header().state;
        let mut spins = 0;
        loop {
            let free = state.load(Ordering::Relaxed) & !LOCKED;
            let taken = state.compare_exchange_weak(
                free,
                free | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return LockedLinks {
                    block: *self,
                    state: free,
                };
            }
            spins += 1;
            match spins % SPINS {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// The locked links of a slot. Others who change them wait for the lock, readers do not.
pub(crate) struct LockedLinks<'a> {
    block: SlotBlock<'a>,
    /// The value of `SlotHeader::state` at the end, without the lock.
    state: u32,
}

impl LockedLinks<'_> {
    pub(crate) fn degree(&self) -> usize {
        (self.state & DEGREE) as usize
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state & DEAD != 0
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.state & SHARED != 0
    }

    /// Marks that others than the header's id may have the slot.
    pub(crate) fn share(&mut self) {
        self.state |= SHARED;
    }

    /// Marks that only this id has the slot.
    pub(crate) fn unshare(&mut self, id: u32) {
        self.block.header().id.store(id, Ordering::Relaxed);
        self.state &= !SHARED;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.degree() == self.block.layout.capacity
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let links = &self.block.room()[..self.degree()];
        links.iter().map(|link| link.load(Ordering::Relaxed))
    }

    /// Adds a link. There must be room for it.
    pub(crate) fn push(&mut self, slot: u32) {
        self.block.room()[self.degree()].store(slot, Ordering::Release);
        self.state += 1;
    }

    /// Replaces all links. Readers may meanwhile see some of the old and some of the new.
    pub(crate) fn replace(&mut self, slots: impl Iterator<Item = u32>) {
        let mut degree = 0;
        for (link, slot) in self.block.room().iter().zip(slots) {
            link.store(slot, Ordering::Release);
            degree += 1;
        }
        self.state = self.state & !DEGREE | degree;
    }

    /// Marks that the slot holds no vector any more; false if it was marked already.
    pub(crate) fn kill(&mut self) -> bool {
        let was_dead = self.is_dead();
        self.state |= DEAD;
        !was_dead
    }
}

impl Drop for LockedLinks<'_> {
    fn drop(&mut self) {
        let state = &self.block.header().state;
        state.store(self.state, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block on the heap.
    pub(super) fn with_block(test: impl FnOnce(SlotBlock<'_>)) {
        let layout = SlotLayout::new(64, 4);
        assert_eq!((layout.capacity, layout.stride), (8, 128));
        let mut memory = vec![[0u64; 8]; layout.stride / 64];
        // SAFETY: zeroed, as long as the stride, and aligned as a header needs it.
        test(unsafe { SlotBlock::new(memory.as_mut_ptr().cast(), layout) });
    }

    fn links(block: SlotBlock<'_>) -> Vec<u32> {
        let mut links = Vec::new();
        block.for_each_link(|link| links.push(link));
        links
    }

    #[test]
    fn a_written_block_is_read_back() {
        with_block(|block| {
            let meta = CodeMeta {
                scale: 1.0,
                norm: 2.0,
                raw_norm: 3.0,
                ..CodeMeta::default()
            };
            // SAFETY: only this test has the block.
            unsafe {
                block.write(7, |code| {
                    code.fill(9);
                    meta
                });
                assert_eq!(block.code(), [9; 64]);
                assert_eq!(block.meta().norm, 2.0);
            }
            assert_eq!(block.id(), 7);
            assert!(!block.is_dead() && block.is_orphan());
        });
    }

    #[test]
    fn links_are_added_replaced_and_killed() {
        with_block(|block| {
            let mut locked = block.lock();
            (1..=3).for_each(|slot| locked.push(slot));
            drop(locked);
            assert_eq!(links(block), [1, 2, 3]);
            let mut locked = block.lock();
            locked.replace([5, 6].into_iter());
            assert!(locked.kill() && !locked.kill());
            drop(locked);
            assert_eq!(links(block), [5, 6]);
            assert!(block.is_dead());
            let mut locked = block.lock();
            locked.replace(0..100);
            assert!(locked.is_full());
        });
    }

    #[test]
    fn the_last_link_to_a_slot_is_not_given_up() {
        with_block(|block| {
            block.gain_link();
            block.gain_link();
            assert!(block.lose_link());
            assert!(!block.lose_link());
            assert!(!block.is_orphan());
            assert!(block.lose_any_link());
            assert!(block.is_orphan() && !block.lose_any_link());
        });
    }
}
