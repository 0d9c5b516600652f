//! Reclamation by epochs: memory that was unlinked is used again once no one can read it.
//!
//! A search reads links and records without locks, so a search may still read a slot that a change
//! has just unlinked. A thread that unlinks therefore ends the current epoch ([`Epochs::advance`])
//! and reuses the slot only when every search of that and of earlier epochs is over
//! ([`Epochs::passed`]). A search announces the epoch it runs in ([`Participant::pin`]): a store
//! and a fence at its start, a store at its end, nothing between. The method is that of Fraser,
//! "Practical lock-freedom", 2004, section 5.2.3, with one epoch word for each index, none for the
//! process.
//!
//! A search that never ends holds back all reuse, never other searches or changes.
//!
//! # Why it is right
//!
//! Let a change unlink a record `r`, make a mark `m`, and find `m` passed. A reader that is pinned
//! while the record is reused cannot hold `r`:
//!
//! - Its word was not seen by the scan (or an older value of it was). Both sides have a `SeqCst`
//!   fence between their store and their loads (reader: word, fence, links; change: unlink, fence,
//!   words), so one of the two sees the other's store; it is the reader, which sees the unlink.
//! - Its word was seen, and is `m` or later. The reader took it from the epoch word with acquire
//!   after `advance` had put it there with release, so it sees the unlink.
//!
//! A reader that has unpinned did so with release, and the scan acquires: its reads come before the
//! reuse.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::PoisonError;

use super::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, fence};

/// The word of a participant that is not pinned; epochs begin above it.
const IDLE: u64 = 0;
const FIRST_EPOCH: u64 = 1;

/// The end of an epoch. Marks are ordered as they were made, and pass in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

/// The epochs of one index.
pub(crate) struct Epochs {
    shared: Arc<SharedEpochs>,
}

struct SharedEpochs {
    /// The current epoch.
    epoch: AtomicU64,
    /// Every mark up to this one is known to have passed; only ever rises.
    passed: AtomicU64,
    /// The words of all participants.
    words: Mutex<Vec<Arc<PinWord>>>,
}

/// The epoch in which a participant was pinned, or [`IDLE`]. The word has cache lines of its own
/// (two, as processors fetch them in pairs), since its owner writes it twice in every search.
#[repr(align(128))]
struct PinWord(AtomicU64);

/// A reader of what others may unlink. It is part of the working memory of a search or a change, is
/// used by one thread at a time, and is reused. An idle one holds nothing back.
pub(crate) struct Participant {
    shared: Arc<SharedEpochs>,
    word: Arc<PinWord>,
    /// Pinning by two threads at once would lose one pin, so a participant is not `Sync`.
    not_sync: PhantomData<Cell<()>>,
}

/// Keeps what its participant can reach from being reused, until it is dropped.
#[must_use = "what is read is only safe while the pin lives"]
pub(crate) struct PinGuard<'a> {
    word: &'a PinWord,
    /// A pin belongs to the thread that made it, as its participant does.
    not_send: PhantomData<&'a Participant>,
}

impl Epochs {
    /// The first epoch, without participants.
    pub(crate) fn new() -> Epochs {
        Epochs {
            shared: Arc::new(SharedEpochs {
                epoch: AtomicU64::new(FIRST_EPOCH),
                passed: AtomicU64::new(FIRST_EPOCH),
                words: Mutex::new(Vec::new()),
            }),
        }
    }

    /// Makes a participant, which is idle. This takes a lock: make participants once and keep them.
    pub(crate) fn register(&self) -> Participant {
        let word = Arc::new(PinWord(AtomicU64::new(IDLE)));
        self.shared.words().push(Arc::clone(&word));
        Participant {
            shared: Arc::clone(&self.shared),
            word,
            not_sync: PhantomData,
        }
    }

    /// Ends the current epoch. What the caller has unlinked before is out of reach for all who pin
    /// afterwards.
    pub(crate) fn advance(&self) -> Mark {
        Mark(self.shared.epoch.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Whether all who were pinned when `mark` was made have unpinned since. What was unlinked
    /// before the mark may then be reused. This takes one load if it is known already, else a look
    /// at every participant.
    pub(crate) fn passed(&self, mark: Mark) -> bool {
        if mark.0 <= self.shared.passed.load(Ordering::Acquire) {
            return true;
        }
        mark.0 <= self.shared.scan()
    }
}

impl SharedEpochs {
    /// Locks the words of all participants. Nothing panics under this lock.
    fn words(&self) -> MutexGuard<'_, Vec<Arc<PinWord>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest mark that has passed, from the words of all participants.
    fn scan(&self) -> u64 {
        // Marks made up to here are judged: those who made them had unlinked before.
        let mut passed = self.epoch.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        for word in self.words().iter() {
            match word.0.load(Ordering::Acquire) {
                IDLE => {}
                pinned => passed = passed.min(pinned),
            }
        }
        self.passed.fetch_max(passed, Ordering::AcqRel).max(passed)
    }
}

impl Participant {
    /// Pins the current epoch. Until the pin is dropped, nothing is reused that this thread can
    /// find by the links it reads.
    ///
    /// # Panics
    /// If the participant is pinned already.
    pub(crate) fn pin(&self) -> PinGuard<'_> {
        let word = &self.word.0;
        assert_eq!(
            word.load(Ordering::Relaxed),
            IDLE,
            "a participant is pinned once at a time"
        );
        // An epoch that ends before the store only makes this pin hold back more than it must.
        // Release, because a scan that sees this word must also have the reads of earlier pins
        // happen before it.
        word.store(self.shared.epoch.load(Ordering::Acquire), Ordering::Release);
        fence(Ordering::SeqCst);
        PinGuard {
            word: &self.word,
            not_send: PhantomData,
        }
    }
}

impl Drop for PinGuard<'_> {
    fn drop(&mut self) {
        self.word.0.store(IDLE, Ordering::Release);
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // A pin that was leaked goes with its participant.
        let mut words = self.shared.words();
        words.retain(|word| !Arc::ptr_eq(word, &self.word));
    }
}
