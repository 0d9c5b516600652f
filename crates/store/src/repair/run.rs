//! Runs one repair of one index.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tasks::Task;
use tokio::sync::{mpsc, watch};

use super::compare::{BothSides, SuspectRow};
use super::index_side::{IndexDropped, IndexSide};
use super::range_plan::{AssignedRange, RangePlan};
use super::settle::{SUSPECTS_MAX, SuspectSettler};
use super::table_side::TableSide;
use super::{ComparisonSpeed, IndexAccess, report};
use crate::long_work;
use crate::options::RepairOptions;
use crate::present::TimeSource;

/// The least number of ranges into which the ring is split, but for small tables.
const RANGES_MIN: usize = 16;

/// The number of ranges at a time for each shard at the full speed of the nodes, as in a scan.
const RANGES_A_SHARD: usize = 3;

/// A repair.
pub(super) struct IndexRepair {
    /// The index and its table.
    pub access: Arc<IndexAccess>,
    /// The task that shows the repair.
    pub task: Task,
    /// The speed, which may change while the repair runs.
    pub speed: watch::Receiver<ComparisonSpeed>,
    /// The options, which don't change while the repair runs.
    pub options: RepairOptions,
}

impl IndexRepair {
    /// Repairs until everything is compared and mended. After a request to stop it ends once the
    /// ranges in flight have ended, or are cut off as they take too long.
    pub(super) async fn run(self) {
        let name = &self.access.index.identity.name;
        tracing::info!(index = %name, task = %self.task.id(), "repair begins");
        let ended = tokio::select! {
            ended = self.work() => Some(ended),
            () = self.patience_ends() => None,
        };
        let task = self.task;
        let count = |name| task.counter(name);
        let left = count(report::ROWS_LEFT);
        tracing::info!(
            index = %name,
            task = %task.id(),
            ranges_compared = count(report::RANGES_COMPARED),
            ranges_differed = count(report::RANGES_DIFFERED),
            rows_added = count(report::ROWS_ADDED),
            rows_mended = count(report::ROWS_MENDED),
            rows_removed = count(report::ROWS_REMOVED),
            rows_left = left,
            "repair ends"
        );
        match ended {
            Some(Err(IndexDropped)) => task.failed("the index is gone"),
            _ if task.abort_requested() => task.stopped(),
            _ if left > 0 => task.failed(format!(
                "{left} rows still differ: the index has no room for them or refuses them, and the log says why"
            )),
            _ => task.done(),
        }
    }

    /// Waits for a request to stop, and then for the grace period.
    async fn patience_ends(&self) {
        self.task.aborted().await;
        tokio::time::sleep(self.options.grace).await;
    }

    async fn work(&self) -> Result<(), IndexDropped> {
        let access = &self.access;
        let index = IndexSide::new(access.index.clone(), access.items.clone()).await?;
        let hashing = index.hashing();
        let required = access.index.identity.local_filters();
        let reader = (&access.reader, required);
        let table = TableSide::new(&*access.database, reader, hashing);
        let sides = BothSides {
            present: TimeSource::of(self.access.database.clock()),
            table,
            index,
        };
        let (suspects, suspected) = mpsc::channel(SUSPECTS_MAX);
        let settler = SuspectSettler {
            sides: &sides,
            task: &self.task,
            index: access.index.clone(),
            items: access.items.clone(),
            hints: access.hints.clone(),
            readers: access.readers.clone(),
            settle_max: self.options.settle_max,
        };
        let (compared, settled) =
            tokio::join!(self.compare(&sides, suspects), settler.run(suspected));
        compared.and(settled)
    }

    /// Compares all ranges, as many at a time as the present speed allows.
    async fn compare(
        &self,
        sides: &BothSides,
        suspects: mpsc::Sender<SuspectRow>,
    ) -> Result<(), IndexDropped> {
        let mut plan = self.range_plan().await;
        self.task.set_total(plan.waiting() as u64);
        let mut speed = self.speed.clone();
        let mut in_flight = FuturesUnordered::new();
        loop {
            let now = *speed.borrow_and_update();
            while !self.task.abort_requested()
                && let Some(ticket) = plan.next(now)
            {
                in_flight.push(self.compare_range(sides, ticket, &suspects));
            }
            tokio::select! {
                ended = in_flight.next() => match ended {
                    Some(ended) => plan.ended(ended?),
                    None => return Ok(()),
                },
                // The sender of the speed exists as long as the repair is known.
                Ok(()) = speed.changed() => {}
            }
        }
    }

    async fn compare_range(
        &self,
        sides: &BothSides,
        ticket: AssignedRange,
        suspects: &mpsc::Sender<SuspectRow>,
    ) -> Result<AssignedRange, IndexDropped> {
        let identity = &self.access.index.identity;
        let task = self
            .task
            .child(long_work::repair_of_range(identity, ticket.range));
        sides.compare(ticket.range, &task, suspects).await?;
        let rows = task.status().progress_completed;
        self.task.count(report::ROWS_COMPARED, rows);
        self.task.count(report::RANGES_COMPARED, 1);
        self.task.add(1);
        task.done();
        Ok(ticket)
    }

    /// Splits the ring into ranges, and finds the nodes that hold each.
    async fn range_plan(&self) -> RangePlan {
        let identity = &self.access.index.identity;
        let database = &self.access.database;
        let rows = self.access.index.content.len();
        let shards = database.shards().await;
        if rows <= self.options.small_table_rows {
            let all = shards.keys().copied().collect();
            return RangePlan::new([(identity.range, all)], |_| 1);
        }
        let pieces = rows
            .div_ceil(self.options.range_rows.max(1))
            .max(RANGES_MIN);
        let with_replicas = database.pieces(&identity.table, identity.range, pieces);
        // The number of ranges at a time follows from the node with the fewest shards.
        RangePlan::new(with_replicas.await, |nodes| {
            let shards = nodes.iter().filter_map(|node| shards.get(node));
            RANGES_A_SHARD * shards.min().copied().unwrap_or(1)
        })
    }
}
