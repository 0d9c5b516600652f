//! [`NeighbourIndex`]: its making, and the calls that insert, replace and remove vectors.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::answer::{IndexParts, RankedId};
use crate::calibration::{Calibration, RecallSamples};
use crate::codes::{CodeKind, Codebook, ORIGIN};
use crate::epoch::{Epochs, Participant};
use crate::form::{EncodedVector, VectorForm, first_not_finite};
use crate::graph::{Graph, NewSlot, RemovalOccasion, WalkWorkspace};
use crate::ids::{IdEntry, IdTable};
use crate::memory::RecordPlacement;
use crate::moves::SlotMoves;
use crate::plan::WalkPace;
use crate::renewal::VectorRenewal;
use crate::sharers::SharedSlots;
use crate::snapshot::SavedGeneration;
use crate::vectors::StoredVectors;
use crate::verification::Verification;
use crate::{IdSet, IndexError, NeighbourIndexOptions, VectorPlacement};

/// Number of vectors at which an index trains its codes and builds its graph. Below it, a search
/// measures every vector.
const TRAINED_AT: usize = 512;

/// Number of ids tried to find one that is held.
const HELD_TRIED: usize = 16;

/// Links of a slot for each of [`NeighbourIndexOptions::max_connections`], as on the lowest level
/// of HNSW.
const LINKS_PER_CONNECTION: usize = 2;

/// A concurrent index: every method takes `&self` and may be called from any thread.
///
/// Searches and changes run side by side and never wait for each other; only the change that brings
/// the 512th vector makes other changes wait while it builds the first graph. A search sees all
/// changes that had returned when it was called, and each vector as it was at some moment of the
/// search.
pub struct NeighbourIndex {
    pub(crate) options: NeighbourIndexOptions,
    pub(crate) form: VectorForm,
    pub(crate) kind: CodeKind,
    pub(crate) graph: Graph,
    pub(crate) ids: IdTable,
    /// The full vectors; None where codes are the vectors.
    pub(crate) vectors: Option<StoredVectors>,
    /// Ids of vectors without a direction where only directions are stored. Being as far from each
    /// other as from anything else they would only mislead walks, so they have no slots.
    pub(crate) undirected: RwLock<IdSet>,
    pub(crate) epochs: Epochs,
    /// Working memory that no one uses at the moment.
    workspaces: Mutex<Vec<Workspace>>,
    /// Changes hold this lock together. A change that trains holds it exclusively, and a save does
    /// so for a moment.
    pub(crate) gate: RwLock<()>,
    /// Whether the graph links all slots.
    pub(crate) linked: AtomicBool,
    pub(crate) len: AtomicUsize,
    pub(crate) moves: SlotMoves,
    pub(crate) pace: WalkPace,
    pub(crate) samples: RecallSamples,
    pub(crate) renewal: VectorRenewal,
    pub(crate) sharers: SharedSlots,
    /// The snapshot that was saved or opened last. The lock is held while the index is saved.
    pub(crate) generation: Mutex<Option<Arc<SavedGeneration>>>,
    pub(crate) verification: Verification,
}

/// The epoch's participant and the working memory of one call.
pub(crate) struct Workspace {
    pub participant: Participant,
    pub tools: ScratchBuffers,
}

/// Working memory that is reused from one call to the next.
#[derive(Default)]
pub(crate) struct ScratchBuffers {
    pub kept: EncodedVector,
    pub space: WalkWorkspace,
    pub slots: Vec<u32>,
    pub ranked: Vec<RankedId>,
}

impl NeighbourIndex {
    /// Makes an empty index. Fails if an option is out of range. With [`VectorPlacement::File`] the
    /// file of vectors is in the system's directory for temporary files.
    pub fn new(options: NeighbourIndexOptions) -> Result<NeighbourIndex, IndexError> {
        NeighbourIndex::new_in(options, &std::env::temp_dir())
    }

    /// Makes an empty index whose file of vectors is in `directory`. The file has no name and goes
    /// with the index, however the process ends.
    pub fn new_in(
        options: NeighbourIndexOptions,
        directory: &Path,
    ) -> Result<NeighbourIndex, IndexError> {
        options.validate()?;
        Ok(NeighbourIndex::empty(options.in_effect(), directory))
    }

    /// Makes an empty index of options that are valid and in effect.
    pub(crate) fn empty(options: NeighbourIndexOptions, directory: &Path) -> NeighbourIndex {
        let form = VectorForm::of(&options);
        let kind = options.codes.kind(form, options.dimensions);
        let place = match options.placement {
            VectorPlacement::File => RecordPlacement::File(directory.to_owned()),
            VectorPlacement::Memory => RecordPlacement::Memory,
        };
        let degree = LINKS_PER_CONNECTION * options.max_connections;
        let code_bytes = kind.code_bytes(options.dimensions);
        let graph = Graph::new(code_bytes, degree, options.build_beam_width);
        if !kind.is_trained() {
            let nothing = std::iter::empty();
            graph.train(Codebook::train(
                kind,
                options.metric,
                options.dimensions,
                nothing,
            ));
        }
        let codes_are_vectors = kind.is_exact(form);
        let vectors = || StoredVectors::new(form, options.dimensions, place);
        let vectors = (!codes_are_vectors).then(vectors);
        let faults = vectors.as_ref().map(|vectors| vectors.array().faults());
        let verification = faults.map(Verification::of_own);
        NeighbourIndex {
            options,
            form,
            kind,
            graph,
            ids: IdTable::new(),
            vectors,
            undirected: RwLock::default(),
            epochs: Epochs::new(),
            workspaces: Mutex::default(),
            gate: RwLock::default(),
            linked: AtomicBool::new(false),
            len: AtomicUsize::new(0),
            moves: SlotMoves::default(),
            pace: WalkPace::default(),
            samples: RecallSamples::default(),
            renewal: VectorRenewal::default(),
            sharers: SharedSlots::default(),
            generation: Mutex::default(),
            verification: verification.unwrap_or_default(),
        }
    }

    /// The options that the index was made with; the metric is [`crate::DistanceMetric::Hamming`]
    /// where that was forced.
    pub fn options(&self) -> &NeighbourIndexOptions {
        &self.options
    }

    /// The number of vectors held.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether no vector is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids that are held. Each one is looked up at some moment of the call.
    pub fn ids(&self) -> IdSet {
        let mut held = IdSet::default();
        for (id, _) in self.ids.iter() {
            held.insert(id);
        }
        held
    }

    /// Adds a vector under an id that the index does not hold. Fails with [`IndexError::Exists`] if
    /// it does.
    pub fn insert(&self, id: u32, vector: &[f32]) -> Result<(), IndexError> {
        self.check(vector)?;
        self.insert_kept(id, |kept| self.form.keep(vector, kept))
    }

    /// Adds the vector that `keep` brings into its form; see [`VectorForm::keep`].
    pub(crate) fn insert_kept(
        &self,
        id: u32,
        keep: impl FnOnce(&mut EncodedVector) -> bool,
    ) -> Result<(), IndexError> {
        self.change(|tools| {
            let directed = keep(&mut tools.kept);
            self.reserve(id)?;
            if directed {
                self.sample(|| tools.kept.floats.clone());
            }
            let entered = match directed {
                // SAFETY: changes run with the epoch pinned.
                true => unsafe { self.place(id, tools) }.map(IdEntry::Slot),
                false => Ok(IdEntry::Undirected),
            };
            match entered {
                Ok(entry) => {
                    // Counted first: once it is entered another thread may remove it.
                    self.len.fetch_add(1, Ordering::AcqRel);
                    self.enter(id, IdEntry::Reserved, entry).unwrap_or_default();
                }
                Err(error) => {
                    self.enter(id, IdEntry::Reserved, IdEntry::Vacant)
                        .unwrap_or_default();
                    return Err(error);
                }
            }
            Ok(())
        })?;
        if self.wants_training() {
            self.train();
        }
        Ok(())
    }

    /// Replaces the vector of an id that the index holds. Fails with [`IndexError::Missing`] if it
    /// does not hold the id. No search sees the id without a vector.
    pub fn replace(&self, id: u32, vector: &[f32]) -> Result<(), IndexError> {
        self.check(vector)?;
        self.replace_kept(id, |kept| self.form.keep(vector, kept))
    }

    /// Replaces a vector by the one that `keep` brings into its form; see [`VectorForm::keep`].
    pub(crate) fn replace_kept(
        &self,
        id: u32,
        keep: impl FnOnce(&mut EncodedVector) -> bool,
    ) -> Result<(), IndexError> {
        self.change(|tools| {
            let directed = keep(&mut tools.kept);
            let before = self.settled(id);
            if !before.is_held() {
                return Err(IndexError::Missing(id));
            }
            // SAFETY: changes run with the epoch pinned.
            if unsafe { self.holds(before, directed, &tools.kept) } {
                // Rows are often written again with the vector they had.
                return Ok(());
            }
            if directed {
                self.sample(|| tools.kept.floats.clone());
            }
            let _moving = self.moves.begin();
            let after = match directed {
                // SAFETY: as above.
                true => IdEntry::Slot(unsafe { self.place(id, tools) }?),
                false => IdEntry::Undirected,
            };
            let mut before = before;
            loop {
                match self.enter(id, before, after) {
                    Ok(()) => break,
                    Err(_) => before = self.settled(id),
                }
                if !before.is_held() {
                    // SAFETY: as above.
                    unsafe { self.abandon(id, after) };
                    return Err(IndexError::Missing(id));
                }
            }
            self.renewal.count_churned();
            // SAFETY: as above.
            unsafe { self.abandon(id, before) };
            Ok(())
        })
    }

    /// Removes an id, which may then be used again. Fails with [`IndexError::Missing`] if the index
    /// does not hold it.
    pub fn remove(&self, id: u32) -> Result<(), IndexError> {
        self.change(|_| {
            let _moving = self.moves.begin();
            loop {
                let before = self.settled(id);
                if !before.is_held() {
                    return Err(IndexError::Missing(id));
                }
                if self.enter(id, before, IdEntry::Vacant).is_ok() {
                    self.len.fetch_sub(1, Ordering::AcqRel);
                    self.renewal.count_churned();
                    // SAFETY: changes run with the epoch pinned.
                    unsafe {
                        self.abandon(id, before);
                        if let IdEntry::Slot(slot) = before {
                            self.sample(|| self.coded(slot));
                        }
                    }
                    return Ok(());
                }
            }
        })
    }

    /// Refuses a vector of another length than the index's, or with an element that is not finite.
    pub(crate) fn check(&self, vector: &[f32]) -> Result<(), IndexError> {
        let (expected, actual) = (self.options.dimensions, vector.len());
        if actual != expected {
            return Err(IndexError::Dimensions { expected, actual });
        }
        match first_not_finite(vector) {
            Some(position) => Err(IndexError::NotFinite { position }),
            None => Ok(()),
        }
    }

    /// The width that walks for `k` neighbours need, as samples have found it.
    pub fn calibration(&self, k: usize) -> Calibration {
        self.samples.calibration(k)
    }

    /// Takes a sample, if it is time for one: of the vector of a change, which is not held, or of
    /// one that is held.
    fn sample(&self, changed: impl FnOnce() -> Vec<f32>) {
        if !self.linked.load(Ordering::Acquire) {
            return;
        }
        let Some(sample) = self.samples.count(self.len()) else {
            return;
        };
        let vector = match sample.is_held {
            false => changed(),
            true => match self.any_held() {
                Some(vector) => vector,
                None => return,
            },
        };
        self.with_workspace(|workspace| {
            let k = sample.k();
            let nearest = self.scan_for_sample(&vector, k, workspace);
            let Some(farthest) = nearest.last().map(|last| last.distance) else {
                return;
            };
            sample.take(|width| {
                let found = self.walk_for_sample(&vector, k, width, workspace);
                let near = found.iter().filter(|found| found.distance <= farthest);
                near.count().min(k) as f32 / k as f32
            });
        });
    }

    /// The vector of some id that is held, another one with each call; None if none was found.
    fn any_held(&self) -> Option<Vec<f32>> {
        let end = self.ids.end();
        (0..HELD_TRIED).find_map(|_| {
            let turn = self.samples.turn();
            let id = ((turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * end) >> 32;
            match self.ids.get(id as u32) {
                // SAFETY: changes run with the epoch pinned.
                IdEntry::Slot(slot) => Some(unsafe { self.coded(slot) }),
                _ => None,
            }
        })
    }

    /// Lends working memory for one call.
    pub(crate) fn with_workspace<R>(&self, work: impl FnOnce(&mut Workspace) -> R) -> R {
        let idle = self.workspaces.lock().pop();
        let mut workspace = idle.unwrap_or_else(|| Workspace {
            participant: self.epochs.register(),
            tools: ScratchBuffers::default(),
        });
        let result = work(&mut workspace);
        self.workspaces.lock().push(workspace);
        result
    }

    /// Working memory retained for later calls, in bytes.
    pub(crate) fn workspaces_bytes(&self) -> usize {
        let workspaces = self.workspaces.lock();
        let spaces = workspaces
            .iter()
            .map(|idle| idle.tools.space.memory_bytes());
        spaces.sum()
    }

    /// Makes a change with the epoch pinned, and then a share of the mending that changes leave to
    /// do.
    fn change<R>(&self, change: impl FnOnce(&mut ScratchBuffers) -> R) -> R {
        self.change_in(RemovalOccasion::Change, change)
    }

    /// Makes a change, and does a share of what is left to do.
    pub(crate) fn change_in<R>(
        &self,
        haste: RemovalOccasion,
        change: impl FnOnce(&mut ScratchBuffers) -> R,
    ) -> R {
        self.with_workspace(|Workspace { participant, tools }| {
            let _gate = self.gate.read();
            let _pin = participant.pin();
            let result = change(tools);
            // SAFETY: the epoch is pinned.
            unsafe {
                self.graph.repair(haste, &self.epochs, &mut tools.space);
                self.renew_some(haste, tools);
            }
            result
        })
    }

    /// Waits until no other change has the id reserved, and returns its entry.
    fn settled(&self, id: u32) -> IdEntry {
        loop {
            match self.ids.get(id) {
                IdEntry::Reserved => std::thread::yield_now(),
                entry => return entry,
            }
        }
    }

    /// Reserves an id that is not in use.
    fn reserve(&self, id: u32) -> Result<(), IndexError> {
        if self.settled(id).is_held() {
            return Err(IndexError::Exists(id));
        }
        self.ids.ensure(id)?;
        loop {
            match self.ids.change(id, IdEntry::Vacant, IdEntry::Reserved) {
                Ok(()) => return Ok(()),
                Err(_) if self.settled(id).is_held() => return Err(IndexError::Exists(id)),
                Err(_) => {}
            }
        }
    }

    /// Changes the entry of an id, and with it the set of ids without direction. Fails with the
    /// entry found if that is not `before`.
    pub(crate) fn enter(&self, id: u32, before: IdEntry, after: IdEntry) -> Result<(), IdEntry> {
        let (was, is) = (before == IdEntry::Undirected, after == IdEntry::Undirected);
        if was == is {
            return self.ids.change(id, before, after);
        }
        let mut undirected = self.undirected.write();
        self.ids.change(id, before, after)?;
        match is {
            true => undirected.insert(id),
            false => undirected.remove(id),
        };
        Ok(())
    }

    /// Puts `tools.kept` into a slot and links it, or joins a slot that has the same vector
    /// already. Returns the slot.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn place(
        &self,
        id: u32,
        tools: &mut ScratchBuffers,
    ) -> Result<u32, IndexError> {
        let slots = self.graph.slots();
        let slot = slots.take().ok_or(IndexError::Full)?;
        let vectors = self.vectors.as_ref();
        let room = self.graph.ensure(slot);
        let room = room
            .and_then(|()| vectors.map_or(Ok(()), |vectors| vectors.ensure(slot, &self.epochs)));
        if let Err(error) = room {
            slots.give_back([slot]);
            return Err(error.into());
        }
        let ScratchBuffers { kept, space, .. } = tools;
        // SAFETY: only we have the slot until it is linked, and there is room for it.
        unsafe {
            if let Some(vectors) = vectors {
                vectors.write(slot, &kept.bytes);
            }
            match self.graph.codebook() {
                Some(codebook) if self.linked.load(Ordering::Acquire) => {
                    let new = self.new_slot(slot, id, kept);
                    if let Some(other) = self.graph.link(codebook, new, space) {
                        slots.give_back([slot]);
                        return Ok(other);
                    }
                }
                _ => self.graph.fill(slot, id, (&kept.floats, ORIGIN), space),
            }
        }
        Ok(slot)
    }

    /// A slot on its way into the graph, for a vector of an id.
    ///
    /// # Safety
    /// The epoch is pinned as long as the result is in use, and the vector has been written.
    unsafe fn new_slot<'a>(
        &'a self,
        slot: u32,
        id: u32,
        kept: &'a EncodedVector,
    ) -> NewSlot<'a, impl Fn(u32) -> bool + 'a, impl Fn(u32) -> Vec<f32> + 'a> {
        NewSlot {
            slot,
            id,
            vector: &kept.floats,
            // SAFETY: the caller's promise; the graph requests slots that it has reached.
            joins: move |other| unsafe { self.joins(id, &kept.bytes, other) },
            // SAFETY: as above.
            read: move |other| unsafe { self.coded(other) },
        }
    }

    /// Lets an id share the slot `other` if that has the vector of these bytes; false if it does
    /// not.
    ///
    /// # Safety
    /// The slot is filled, and the epoch is pinned since it could be reached.
    unsafe fn joins(&self, id: u32, bytes: &[u8], other: u32) -> bool {
        if self.ids.get(id) == IdEntry::Slot(other) {
            // The vector is to have another slot than it has.
            return false;
        }
        // SAFETY: the caller's promise.
        let equal = unsafe { self.contents().kept(other) } == bytes;
        let joined = equal && self.sharers.join(&self.graph, other, id);
        if joined && let Some(vectors) = &self.vectors {
            // A save that has already read the ids of the other slot has left its vector out.
            vectors.written().mark(other);
        }
        joined
    }

    /// Takes the slot that an entry of `id` named out of the graph, unless other ids share the
    /// slot.
    ///
    /// # Safety
    /// The epoch is pinned since the entry was in the table, or in the making.
    pub(crate) unsafe fn abandon(&self, id: u32, entry: IdEntry) {
        if let IdEntry::Slot(slot) = entry {
            // SAFETY: the caller's promise.
            unsafe { self.sharers.leave(&self.graph, slot, id) };
        }
    }

    /// Whether an entry already exists for this vector.
    ///
    /// # Safety
    /// The epoch is pinned since the entry was in the table.
    unsafe fn holds(&self, entry: IdEntry, directed: bool, kept: &EncodedVector) -> bool {
        match entry {
            // SAFETY: the caller's promise.
            IdEntry::Slot(slot) => directed && unsafe { self.contents().kept(slot) } == kept.bytes,
            IdEntry::Undirected => !directed,
            IdEntry::Vacant | IdEntry::Reserved => false,
        }
    }

    pub(crate) fn contents(&self) -> IndexParts<'_> {
        IndexParts {
            graph: &self.graph,
            ids: &self.ids,
            sharers: &self.sharers,
            vectors: self.vectors.as_ref(),
            bytes: self.form.bytes(self.options.dimensions),
        }
    }

    fn wants_training(&self) -> bool {
        self.len() >= TRAINED_AT && !self.linked.load(Ordering::Acquire)
    }

    /// Trains the codes and builds the graph from the vectors held.
    fn train(&self) {
        let _gate = self.gate.write();
        if !self.wants_training() {
            return;
        }
        self.with_workspace(|Workspace { participant, tools }| {
            let _pin = participant.pin();
            let held: Vec<(u32, u32)> = self.ids.iter().filter_map(slot_of).collect();
            let vectors: Vec<Vec<f32>> = held
                .iter()
                // SAFETY: the epoch is pinned, and the table names filled slots.
                .map(|&(_, slot)| unsafe { self.coded(slot) })
                .collect();
            let untrained = self.graph.codebook().is_none();
            if untrained {
                let sample = vectors.iter().map(Vec::as_slice);
                let NeighbourIndexOptions {
                    metric, dimensions, ..
                } = self.options;
                let codebook = Codebook::train(self.kind, metric, dimensions, sample);
                self.graph.train(codebook);
            }
            let Some(codebook) = self.graph.codebook() else {
                return;
            };
            let space = &mut tools.space;
            let mut kept = EncodedVector::default();
            // SAFETY: the epoch is pinned; no one makes changes, and searches look at no code
            // before everything is linked.
            unsafe {
                for (&(id, slot), vector) in held.iter().zip(vectors) {
                    kept.bytes = self.contents().kept(slot).to_vec();
                    kept.floats = vector;
                    let new = self.new_slot(slot, id, &kept);
                    if let Some(other) = self.graph.link(codebook, new, space) {
                        let entered = self.enter(id, IdEntry::Slot(slot), IdEntry::Slot(other));
                        debug_assert_eq!(entered, Ok(()), "nobody makes changes");
                        // Searches may still read the slot.
                        self.graph.kill(slot);
                    }
                }
            }
            self.linked.store(true, Ordering::Release);
        });
    }

    /// The vector that the code of a slot is made of.
    ///
    /// # Safety
    /// The slot is filled, and the epoch is pinned since it could be reached.
    pub(crate) unsafe fn coded(&self, slot: u32) -> Vec<f32> {
        // SAFETY: the caller's promise.
        self.widened(unsafe { self.contents().kept(slot) })
    }

    /// The vector that stored bytes mean.
    pub(crate) fn widened(&self, bytes: &[u8]) -> Vec<f32> {
        let mut floats = Vec::new();
        self.form.widen(bytes, &mut floats);
        floats.truncate(self.options.dimensions);
        let mut kept = EncodedVector::default();
        match self.form {
            VectorForm::ByteDirection if self.form.keep(&floats, &mut kept) => kept.floats,
            _ => floats,
        }
    }
}

/// The id and the slot of an entry that has a slot.
fn slot_of((id, entry): (u32, IdEntry)) -> Option<(u32, u32)> {
    match entry {
        IdEntry::Slot(slot) => Some((id, slot)),
        _ => None,
    }
}

impl fmt::Debug for NeighbourIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("options", &self.options)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
