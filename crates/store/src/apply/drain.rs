//! Takes fresh changes into the structure, in the background.
//!
//! Changes come in blocks, which searches see at once ([`crate::indexes`]). Blocks that follow each
//! other make a *piece*, and several pieces are taken in at the same time. Of the changes of an id
//! only the newest is made, and never two of one id at the same time: a block waits while an older
//! change of one of its ids is being made. Blocks leave from the oldest on, so no search meets an
//! older change without the newer one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;

use crate::compute::{CpuExecutor, ServiceStopping};
use crate::indexes::{
    ChangeBlock, ChangeBlocks, FreshChange, FreshValue, IndexHandle, NewFilters, PreparedValue,
    RefusedChange,
};
use crate::items::{ChangeKind, StructureChange};
use crate::memory::{FreshCharge, ProcessMemory};

/// The number of bytes from which on a block or a piece takes no more. A piece holds a thread for
/// about ten milliseconds.
const BLOCK_BYTES: usize = 64 << 10;
/// The most changes of a block.
const BLOCK_CHANGES: usize = 64;

/// The fresh changes of an index, and the work of taking them in.
pub(super) struct ChangeDrain {
    index: Arc<IndexHandle>,
    compute: CpuExecutor,
    /// The blocks, oldest first.
    blocks: VecDeque<QueuedBlock>,
    /// The number of the first block. The others count on from there.
    first: u64,
    /// The number of the first block that is not being taken in yet.
    next: u64,
    charge: FreshCharge,
    ids: HashMap<u32, FreshId>,
    pieces: FuturesUnordered<BoxFuture<'static, Result<AppliedBlocks, ServiceStopping>>>,
}

struct QueuedBlock {
    block: Arc<ChangeBlock<PreparedValue>>,
    is_done: bool,
    /// Ids that the graph does not hold after the changes of this block, which are the last ones.
    gone: Vec<u32>,
}

/// An id with a fresh change.
struct FreshId {
    /// The number of the block with the newest change.
    newest: u64,
    /// Whether the graph holds the id, when no change is being made.
    is_held: bool,
    is_busy: bool,
}

/// Blocks that have been taken in.
pub(super) struct AppliedBlocks {
    blocks: std::ops::Range<u64>,
    made: Vec<AppliedChange>,
}

struct AppliedChange {
    block: u64,
    id: u32,
    /// The change of the graph; `None` if the graph did not have the id, and still has not.
    operation: Option<ChangeKind>,
    result: Result<(), RefusedChange>,
}

/// The results of taking in.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SettledChanges {
    /// The number of rows that came in. Those count, too, that were removed again before the graph
    /// had them.
    pub inserted: u64,
    /// The refused changes, unless a newer change of the id has come.
    pub refused: Vec<RefusedChange>,
    /// The ids that neither the graph nor a fresh change has any more.
    pub gone: Vec<u32>,
}

impl AppliedBlocks {
    /// The number of changes that were refused for want of room.
    pub(super) fn without_room(&self) -> usize {
        let refused = self
            .made
            .iter()
            .filter_map(|made| made.result.as_ref().err());
        refused.filter(|refused| refused.for_want_of_room()).count()
    }
}

impl ChangeDrain {
    /// Begins without changes. Pieces are taken in with turns of `compute`. Changes count among
    /// those of all indexes in `memory`.
    pub(super) fn new(
        index: Arc<IndexHandle>,
        compute: CpuExecutor,
        memory: Arc<ProcessMemory>,
    ) -> ChangeDrain {
        ChangeDrain {
            index,
            compute,
            blocks: VecDeque::new(),
            first: 0,
            next: 0,
            charge: FreshCharge::new(memory),
            ids: HashMap::new(),
            pieces: FuturesUnordered::new(),
        }
    }

    /// The bytes that the fresh changes take, and the room for them.
    pub(super) fn charge(&self) -> &FreshCharge {
        &self.charge
    }

    /// The ids with fresh changes.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.ids.keys().copied()
    }

    /// Adds changes. When this returns, searches find them. Returns those whose value is none of
    /// this index; their rows are not found.
    pub(super) fn put(&mut self, changes: Vec<StructureChange>) -> Vec<RefusedChange> {
        let mut refused = Vec::new();
        let mut filters = Vec::new();
        let mut block = Vec::new();
        let mut bytes = 0;
        for mut change in changes {
            let (id, operation) = (change.id(), change.operation());
            if let StructureChange::Replace { filters: new, .. } = &mut change
                && !new.is_empty()
            {
                filters.push((id, std::mem::take(new)));
            }
            let value = match change {
                StructureChange::Insert { value, .. } | StructureChange::Replace { value, .. } => {
                    let prepared = self.index.content.prepare(&value);
                    let prepared = prepared.map_err(|error| RefusedChange {
                        id,
                        operation,
                        error,
                    });
                    prepared.map_err(|error| refused.push(error)).ok()
                }
                StructureChange::Remove { .. } => None,
            };
            let newest = |of: &FreshId| of.newest;
            // The ids of a block differ, so a second change of an id begins another block.
            let is_full = bytes >= BLOCK_BYTES || block.len() == BLOCK_CHANGES;
            if is_full || self.ids.get(&id).map(newest) == Some(self.end()) {
                self.push(std::mem::take(&mut block));
                bytes = 0;
            }
            let number = self.end();
            // An id without a fresh change is in the graph, unless it is a new one.
            let of_id = self.ids.entry(id).or_insert(FreshId {
                newest: number,
                is_held: operation != ChangeKind::Insert,
                is_busy: false,
            });
            of_id.newest = number;
            bytes += value.as_ref().map_or(0, FreshValue::memory_bytes);
            block.push(FreshChange { id, value });
        }
        if !block.is_empty() {
            self.push(block);
        }
        self.publish(&filters);
        self.begin();
        refused
    }

    /// Waits for a piece that has been taken in; `None` if there are no fresh changes.
    pub(super) async fn next(&mut self) -> Option<Result<AppliedBlocks, ServiceStopping>> {
        self.pieces.next().await
    }

    /// Takes the piece out of the fresh changes.
    pub(super) fn settle(&mut self, piece: AppliedBlocks) -> SettledChanges {
        let mut settled = SettledChanges::default();
        for made in piece.made {
            let Some(of_id) = self.ids.get_mut(&made.id) else {
                continue;
            };
            of_id.is_busy = false;
            let value_is_in = matches!(
                made.operation,
                Some(ChangeKind::Insert | ChangeKind::Replace)
            );
            of_id.is_held = value_is_in && made.result.is_ok();
            if made.result.is_ok() && matches!(made.operation, None | Some(ChangeKind::Insert)) {
                settled.inserted += 1;
            }
            // A newer change of the id decides about it.
            if of_id.newest != made.block {
                continue;
            }
            settled.refused.extend(made.result.err());
            let is_held = of_id.is_held;
            self.ids.remove(&made.id);
            if !is_held {
                self.queued(made.block).gone.push(made.id);
            }
        }
        for number in piece.blocks {
            self.queued(number).is_done = true;
        }
        let before = self.first;
        while let Some(done) = self.blocks.pop_front_if(|queued| queued.is_done) {
            self.first += 1;
            self.charge.subtract(done.block.bytes);
            // Ids become free with their block, in which searches see them until then.
            settled.gone.extend(done.gone);
        }
        if self.first > before {
            self.publish(&[]);
        }
        self.begin();
        settled
    }

    /// The number of the block that comes next.
    fn end(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }

    fn push(&mut self, changes: Vec<FreshChange<PreparedValue>>) {
        let block = Arc::new(ChangeBlock::new(changes));
        self.charge.add(block.bytes);
        self.blocks.push_back(QueuedBlock {
            block,
            is_done: false,
            gone: Vec::new(),
        });
    }

    fn queued(&mut self, number: u64) -> &mut QueuedBlock {
        &mut self.blocks[(number - self.first) as usize]
    }

    fn publish(&self, filters: &[NewFilters]) {
        let blocks = self.blocks.iter().map(|queued| queued.block.clone());
        let blocks = ChangeBlocks {
            first: self.first,
            blocks: blocks.collect(),
        };
        self.index.content.publish(blocks, filters);
    }

    /// Begins as many pieces as there are threads for.
    fn begin(&mut self) {
        while self.pieces.len() < self.compute.threads() {
            let Some(piece) = self.take_piece() else {
                return;
            };
            self.pieces.push(Box::pin(piece));
        }
    }

    /// The work of the next blocks, if they can be taken in now.
    fn take_piece(
        &mut self,
    ) -> Option<impl Future<Output = Result<AppliedBlocks, ServiceStopping>> + use<>> {
        let from = self.next;
        let mut work = Vec::new();
        let mut bytes = 0;
        while self.next < self.end() {
            let number = self.next;
            let block = self.queued(number).block.clone();
            let is_busy =
                |change: &FreshChange<_>| self.ids.get(&change.id).is_some_and(|id| id.is_busy);
            let is_full = number > from && bytes + block.bytes > BLOCK_BYTES;
            if is_full || block.changes.iter().any(is_busy) {
                break;
            }
            bytes += block.bytes;
            for (at, change) in block.changes.iter().enumerate() {
                let of_id = self.ids.get_mut(&change.id);
                // The change of a newer block is made instead.
                let Some(of_id) = of_id.filter(|of_id| of_id.newest == number) else {
                    continue;
                };
                of_id.is_busy = true;
                let operation = match (of_id.is_held, &change.value) {
                    (false, Some(_)) => Some(ChangeKind::Insert),
                    (true, Some(_)) => Some(ChangeKind::Replace),
                    (true, None) => Some(ChangeKind::Remove),
                    (false, None) => None,
                };
                work.push((number, block.clone(), at, operation));
            }
            self.next += 1;
        }
        if self.next == from {
            return None;
        }
        let (blocks, index) = (from..self.next, self.index.content.clone());
        let compute = self.compute.clone();
        Some(async move {
            let made = compute.build(move || {
                let make = |(number, block, at, operation): (
                    u64,
                    Arc<ChangeBlock<PreparedValue>>,
                    usize,
                    Option<ChangeKind>,
                )| {
                    let FreshChange { id, value } = &block.changes[at];
                    let change = |operation| index.change(*id, operation, value.as_ref());
                    AppliedChange {
                        block: number,
                        id: *id,
                        operation,
                        result: operation.map_or(Ok(()), change),
                    }
                };
                work.into_iter().map(make).collect()
            });
            Ok(AppliedBlocks {
                blocks,
                made: made.await?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cpu_scheduler::{CpuScheduler, WorkClass};
    use futures::FutureExt;

    use super::*;
    use crate::compute::INLINE_WITHIN;
    use crate::indexes::IndexSearch;
    use crate::indexes::tests::{identity, in_memory};
    use crate::metrics::ServiceMetrics;
    use crate::observed::IndexableValue;

    struct World {
        turns: CpuScheduler,
        drain: ChangeDrain,
        index: Arc<IndexHandle>,
        /// The first element of the vector of each id.
        model: BTreeMap<u32, f32>,
    }

    impl World {
        fn new(threads: usize) -> World {
            let identity = identity("idx");
            let metrics = ServiceMetrics::new().index(&identity.name);
            let index = Arc::new(IndexHandle::new(identity, &in_memory(), metrics).unwrap());
            let turns = CpuScheduler::of_threads(threads);
            let compute = CpuExecutor::new(turns.clone(), INLINE_WITHIN);
            World {
                drain: ChangeDrain::new(index.clone(), compute, Arc::default()),
                turns,
                index,
                model: BTreeMap::new(),
            }
        }

        /// Gives an id a vector, or removes it, as the rows of an index do.
        fn change(&mut self, id: u32, x: Option<f32>) -> StructureChange {
            let mut keys = self.index.content.keys_mut();
            let Some(x) = x else {
                keys.remove(id);
                self.model.remove(&id);
                return StructureChange::Remove { id };
            };
            let value = IndexableValue::Vector(vec![x, 0.0]);
            if self.model.insert(id, x).is_some() {
                return StructureChange::Replace {
                    id,
                    value,
                    filters: Vec::new(),
                };
            }
            let key = self.index.identity.keys.encode([id.to_string().as_bytes()]);
            keys.insert(id, key);
            StructureChange::Insert { id, value }
        }

        fn put(&mut self, changes: Vec<StructureChange>) {
            assert_eq!(self.drain.put(changes), []);
            self.check();
        }

        fn settle(&mut self, piece: AppliedBlocks) -> SettledChanges {
            let settled = self.drain.settle(piece);
            assert_eq!(settled.refused, []);
            self.check();
            settled
        }

        async fn drain(&mut self) -> SettledChanges {
            let mut all = SettledChanges::default();
            while let Some(piece) = self.drain.next().await {
                let settled = self.settle(piece.unwrap());
                all.inserted += settled.inserted;
                all.gone.extend(settled.gone);
            }
            let bytes = self.drain.charge().bytes();
            assert_eq!((bytes, self.drain.ids().count()), (0, 0));
            all
        }

        /// Checks that searches find what the changes have made.
        fn check(&self) {
            let found = self
                .index
                .content
                .search(&IndexSearch::new(&[0.0, 0.0], 1000))
                .unwrap();
            let rows = store_api::binary::AnswerRows::read(found.binary()).unwrap();
            let ids = rows.columns[0].values.iter();
            let ids = ids.map(|id| std::str::from_utf8(id).unwrap().parse().unwrap());
            let found: Vec<(u32, f32)> = ids.zip(rows.distances).collect();
            let found_by_id: BTreeMap<u32, f32> = found.iter().copied().collect();
            assert_eq!(found.len(), found_by_id.len(), "{found:?}");
            let expected = self.model.iter().map(|(id, x)| (*id, x * x));
            assert_eq!(found_by_id, expected.collect());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn searches_find_each_change_at_once_and_ever_after() {
        let mut world = World::new(3);
        let mut random = 7u64;
        let mut below = |end: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % end
        };
        // Ids whose last change is a removal are given out again when they come back.
        let mut free: Vec<u32> = (0..60).collect();
        for _ in 0..600 {
            let mut changes = Vec::new();
            for _ in 0..below(40) {
                let used: Vec<u32> = world.model.keys().copied().collect();
                let (id, x) = match below(3) {
                    0 if !free.is_empty() => (free.swap_remove(0), Some(below(1000) as f32)),
                    1 if !used.is_empty() => {
                        let at = below(used.len() as u64) as usize;
                        (used[at], Some(below(1000) as f32))
                    }
                    _ if !used.is_empty() => (used[below(used.len() as u64) as usize], None),
                    _ => continue,
                };
                changes.push(world.change(id, x));
            }
            world.put(changes);
            while let Some(Some(piece)) = world.drain.next().now_or_never() {
                free.extend(world.settle(piece.unwrap()).gone);
            }
        }
        free.extend(world.drain().await.gone);
        free.sort_unstable();
        let unused = (0..60).filter(|id| !world.model.contains_key(id));
        assert_eq!(free, unused.collect::<Vec<_>>());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_the_newest_change_of_an_id_is_applied() {
        let mut world = World::new(2);
        let held = [WorkClass::Ingest; 2].map(|class| world.turns.try_acquire(class).unwrap());
        for x in 0..5 {
            let changes = vec![world.change(1, Some(x as f32)), world.change(2, Some(9.0))];
            world.put(changes);
        }
        let changes = vec![world.change(2, None), world.change(3, Some(3.0))];
        world.put(changes);
        drop(held);
        let settled = world.drain().await;
        // The first piece was on its way when the others came.
        assert_eq!((settled.inserted, settled.gone), (3, vec![2]));
        assert_eq!(world.model.len(), 2);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn bytes_are_counted_until_the_graph_has_them() {
        let mut world = World::new(1);
        let turn = world.turns.try_acquire(WorkClass::Ingest).unwrap();
        let changes = (0..500).map(|id| world.change(id, Some(1.0))).collect();
        world.put(changes);
        let bytes = world.drain.charge().bytes();
        assert_eq!(bytes, world.index.content.fresh_bytes());
        assert!((500 * 8..500 * 200).contains(&bytes), "{bytes}");
        assert!(
            world.drain.next().now_or_never().is_none(),
            "none is taken in"
        );
        drop(turn);
        let settled = world.drain().await;
        assert_eq!((settled.inserted, settled.gone), (500, vec![]));
        assert_eq!(world.index.content.fresh_bytes(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_vector_of_another_length_is_refused_at_once() {
        let mut world = World::new(1);
        let changes = vec![world.change(1, Some(1.0))];
        world.put(changes);
        world.drain().await;
        let value = IndexableValue::Vector(vec![1.0; 3]);
        let refused = world.drain.put(vec![StructureChange::Replace {
            id: 1,
            value,
            filters: Vec::new(),
        }]);
        assert_eq!((refused.len(), refused[0].id), (1, 1));
        world.model.clear();
        world.check();
        assert_eq!(world.drain().await.gone, [1]);
    }
}
