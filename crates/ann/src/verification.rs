//! Whether the full vectors of an index that was opened are those that were saved.
//!
//! Graph and codes are verified before anything is answered. Full vectors are many times more, and
//! are searched where they lie in the snapshot's files, so they are verified afterwards, piece by
//! piece, by whoever calls [`Index::verify_vectors`].

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::memory::Faults;
use crate::snapshot::Source;
use crate::{Error, Index, SnapshotError};

/// What is known of the full vectors of an index.
///
/// While they are being verified, answers are as they always are if the files are sound, and that
/// they have the right lengths and belong to this index is known. If a file is damaged, ids and order
/// of an answer may be wrong where it was measured from damaged vectors: its candidates come from
/// verified codes, the distances do not.
#[derive(Clone, Debug)]
pub enum VectorsState {
    /// They are what was inserted.
    Verified,
    /// They come from a snapshot, and so far there was nothing wrong.
    Verifying {
        /// Bytes that were verified.
        done: u64,
        /// Bytes of all files of vectors.
        total: u64,
    },
    /// A file is not what was written, or cannot be read. The index answers, but some distances may
    /// be wrong; it should be built anew. It can't be saved. Where a file was cut short while it was in
    /// use, or its disk fails, searches are refused ([`Error::Unreadable`]).
    Damaged(Arc<SnapshotError>),
}

/// How far the verification is.
#[derive(Default)]
pub(crate) struct Verification {
    total: u64,
    done: AtomicU64,
    damage: OnceLock<Arc<SnapshotError>>,
    /// Files that the verification cannot know of, as they can no longer be read since.
    faults: Arc<Faults>,
    /// None if there is nothing more to verify.
    progress: Mutex<Option<Progress>>,
}

struct Progress {
    source: Arc<Source>,
    segment: usize,
    /// The piece of the segment that is next.
    piece: usize,
    buffer: Vec<u8>,
}

impl Verification {
    /// Of vectors that don't come from a snapshot.
    pub(crate) fn of_own(faults: &Arc<Faults>) -> Verification {
        Verification {
            faults: Arc::clone(faults),
            ..Verification::default()
        }
    }

    /// Of vectors that are used where they lie.
    pub(crate) fn of(source: Source, faults: &Arc<Faults>) -> Verification {
        let total = source.bytes();
        let progress = Progress {
            source: Arc::new(source),
            segment: 0,
            piece: 0,
            buffer: Vec::new(),
        };
        Verification {
            total,
            progress: Mutex::new((total > 0).then_some(progress)),
            ..Verification::of_own(faults)
        }
    }

    fn state(&self) -> VectorsState {
        if let Some(damage) = self.damage() {
            return VectorsState::Damaged(Arc::clone(damage));
        }
        match self.done.load(Ordering::Acquire) {
            done if done == self.total => VectorsState::Verified,
            done => VectorsState::Verifying {
                done,
                total: self.total,
            },
        }
    }

    /// The fault that is known.
    fn damage(&self) -> Option<&Arc<SnapshotError>> {
        if self.damage.get().is_none()
            && let Some(file) = self.faults.unreadable()
        {
            self.damage
                .get_or_init(|| Arc::new(SnapshotError::Unreadable { file }));
        }
        self.damage.get()
    }

    /// Refuses if a file could not be read, so that zeros may have been taken for vectors: to be asked
    /// after they were read, before an answer leaves.
    pub(crate) fn require_readable(&self) -> Result<(), Error> {
        match self.faults.unreadable() {
            None => Ok(()),
            Some(file) => {
                let error = SnapshotError::Unreadable { file };
                Err(Error::Unreadable(error.to_string()))
            }
        }
    }

    /// Verifies the next piece.
    fn step(&self) {
        let mut progress = self.progress.lock();
        let Some(next) = &mut *progress else { return };
        let (segment, piece) = (next.segment, next.piece);
        match next.source.verify_piece(segment, piece, &mut next.buffer) {
            Ok(bytes) => {
                next.piece += 1;
                if next.piece == next.source.pieces(segment) {
                    (next.segment, next.piece) = (segment + 1, 0);
                }
                if next.segment == next.source.segments() {
                    // What is still in use stays mapped, the rest goes.
                    *progress = None;
                }
                self.done.fetch_add(bytes, Ordering::AcqRel);
            }
            Err(error) => {
                *progress = None;
                self.damage.get_or_init(|| Arc::new(error));
            }
        }
    }

    /// Refuses if damage is known, or a segment turns out to be damaged: it is not to be copied and
    /// given new checksums.
    pub(crate) fn require(&self, segment: usize) -> Result<(), SnapshotError> {
        let source = match &*self.progress.lock() {
            Some(next) if (next.segment..next.source.segments()).contains(&segment) => {
                Some(Arc::clone(&next.source))
            }
            _ => None,
        };
        if let Some(source) = source {
            let mut buffer = Vec::new();
            for piece in 0..source.pieces(segment) {
                if let Err(error) = source.verify_piece(segment, piece, &mut buffer) {
                    self.damage.get_or_init(|| Arc::new(error));
                    break;
                }
            }
        }
        self.require_no_damage()
    }

    /// Refuses if damage is known.
    pub(crate) fn require_no_damage(&self) -> Result<(), SnapshotError> {
        match self.damage() {
            Some(damage) => Err(SnapshotError::Source(Arc::clone(damage))),
            None => Ok(()),
        }
    }
}

impl Index {
    /// What is known of the full vectors. Without waiting.
    pub fn vectors_state(&self) -> VectorsState {
        self.verification.state()
    }

    /// Verifies the full vectors of an index that was [opened](Index::open), a MiB at a time, for as
    /// long as `keep_going` says so after each, and goes on from there when it is called again. For a
    /// thread in the background, which may pause in `keep_going`.
    pub fn verify_vectors(&self, mut keep_going: impl FnMut() -> bool) -> VectorsState {
        loop {
            self.verification.step();
            let state = self.vectors_state();
            if !matches!(state, VectorsState::Verifying { .. }) || !keep_going() {
                return state;
            }
        }
    }
}

impl fmt::Display for VectorsState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VectorsState::Verified => f.write_str("verified"),
            VectorsState::Verifying { done, total } => {
                write!(f, "verifying: {done} of {total} bytes done")
            }
            VectorsState::Damaged(error) => write!(f, "damaged: {error}"),
        }
    }
}
