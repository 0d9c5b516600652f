//! Verification that the full vectors of an opened index are those that were saved.
//!
//! Graph and codes are verified before anything is answered. Full vectors are many times more, and
//! are searched in place in the snapshot's files, so they are verified afterwards, piece by piece,
//! by the caller of [`NeighbourIndex::verify_vectors`].

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::memory::FileFaults;
use crate::snapshot::MappedVectors;
use crate::{IndexError, NeighbourIndex, SnapshotError};

/// The state of the full vectors of an index.
///
/// While they are being verified, answers are right if the files are sound. It is already known
/// that the files have the right lengths and belong to this index. If a file is damaged, ids and
/// order of an answer may be wrong where it was measured from damaged vectors: its candidates come
/// from verified codes, the distances do not.
#[derive(Clone, Debug)]
pub enum VectorsState {
    /// The full vectors are those that were inserted.
    Verified,
    /// The full vectors come from a snapshot, and no damage has been found so far.
    Verifying {
        /// Number of bytes that were verified.
        done: u64,
        /// Number of bytes of all files of vectors.
        total: u64,
    },
    /// A file is not what was written, or cannot be read. The index answers, but some distances may
    /// be wrong; it should be rebuilt. It can't be saved. If a file was cut short while it was in
    /// use, or its disk fails, searches are refused ([`IndexError::Unreadable`]).
    Damaged(Arc<SnapshotError>),
}

/// The progress of the verification, and the damage that is known.
#[derive(Default)]
pub(crate) struct Verification {
    total: u64,
    done: AtomicU64,
    damage: OnceLock<Arc<SnapshotError>>,
    /// Faults of mapped files, which become unreadable without the verification's knowing.
    faults: Arc<FileFaults>,
    /// The next piece to verify; None if nothing is left.
    progress: Mutex<Option<PieceCursor>>,
}

struct PieceCursor {
    source: Arc<MappedVectors>,
    segment: usize,
    /// The next piece of the segment.
    piece: usize,
    buffer: Vec<u8>,
}

impl Verification {
    /// A verification for vectors that don't come from a snapshot.
    pub(crate) fn of_own(faults: &Arc<FileFaults>) -> Verification {
        Verification {
            faults: Arc::clone(faults),
            ..Verification::default()
        }
    }

    /// A verification for vectors that are used in place in a snapshot.
    pub(crate) fn of(source: MappedVectors, faults: &Arc<FileFaults>) -> Verification {
        let total = source.bytes();
        let progress = PieceCursor {
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

    /// The damage that is known, if any.
    fn damage(&self) -> Option<&Arc<SnapshotError>> {
        if self.damage.get().is_none()
            && let Some(file) = self.faults.unreadable()
        {
            self.damage
                .get_or_init(|| Arc::new(SnapshotError::Unreadable { file }));
        }
        self.damage.get()
    }

    /// Refuses if a file could not be read, as zeros may then have been taken for vectors. It is
    /// called after vectors were read, and before an answer leaves.
    pub(crate) fn require_readable(&self) -> Result<(), IndexError> {
        match self.faults.unreadable() {
            None => Ok(()),
            Some(file) => {
                let error = SnapshotError::Unreadable { file };
                Err(IndexError::Unreadable(error.to_string()))
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
                    // Chunks that are still in use stay mapped, the rest goes.
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

    /// Refuses if damage is known, or if the segment turns out to be damaged. Damaged bytes must
    /// not be copied and given new checksums.
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

impl NeighbourIndex {
    /// The state of the full vectors. It is returned without waiting.
    pub fn vectors_state(&self) -> VectorsState {
        self.verification.state()
    }

    /// Verifies the full vectors of an index that was [opened](NeighbourIndex::open), a MiB at a
    /// time. `keep_going` is called after each; when it returns false this ends, and another call
    /// goes on from there. It is meant for a thread in the background, which may pause in
    /// `keep_going`.
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
