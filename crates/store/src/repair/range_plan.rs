//! Chooses the ranges that are compared at the same time.
//!
//! The ranges of a ring belong to sets of replicas. All ranges of one set are one job. Jobs run at
//! the same time only if they share no node, so no node ever works for two of them. At most as many
//! jobs run as there are nodes divided by the replicas of a range.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uuid::Uuid;

use super::ComparisonSpeed;
use crate::identity::TokenRange;

/// The ranges of one set of replicas.
#[derive(Clone, Debug)]
struct ReplicaSetRanges {
    nodes: BTreeSet<Uuid>,
    waiting: VecDeque<TokenRange>,
    in_flight: usize,
    /// Whether the job occupies its nodes.
    active: bool,
    /// The most ranges at a time that the nodes of the job allow.
    fastest: usize,
}

/// A range that was handed out, and the job that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AssignedRange {
    /// The range to compare.
    pub range: TokenRange,
    job: usize,
}

/// Hands out the ranges of a repair.
#[derive(Clone, Debug)]
pub(super) struct RangePlan {
    jobs: Vec<ReplicaSetRanges>,
    parallel_max: usize,
}

impl RangePlan {
    /// A plan for `ranges`, each with its replicas. `fastest` gives the number of ranges at a time
    /// that a set of nodes can take.
    pub(super) fn new(
        ranges: impl IntoIterator<Item = (TokenRange, BTreeSet<Uuid>)>,
        fastest: impl Fn(&BTreeSet<Uuid>) -> usize,
    ) -> RangePlan {
        let mut sets: BTreeMap<BTreeSet<Uuid>, VecDeque<TokenRange>> = BTreeMap::new();
        for (range, nodes) in ranges {
            sets.entry(nodes).or_default().push_back(range);
        }
        let nodes: BTreeSet<Uuid> = sets.keys().flatten().copied().collect();
        let replicas = sets.keys().map(BTreeSet::len).max().unwrap_or(0);
        let mut jobs: Vec<ReplicaSetRanges> = sets
            .into_iter()
            .map(|(nodes, waiting)| ReplicaSetRanges {
                fastest: fastest(&nodes).max(1),
                nodes,
                waiting,
                in_flight: 0,
                active: false,
            })
            .collect();
        // The longest job comes first, so that it isn't left over at the end.
        jobs.sort_by_key(|job| std::cmp::Reverse(job.waiting.len()));
        RangePlan {
            jobs,
            parallel_max: nodes.len().checked_div(replicas).unwrap_or(1).max(1),
        }
    }

    /// The number of ranges that have not been handed out.
    pub(super) fn waiting(&self) -> usize {
        self.jobs.iter().map(|job| job.waiting.len()).sum()
    }

    /// Hands out the next range, if one may be compared in addition to those in flight.
    pub(super) fn next(&mut self, speed: ComparisonSpeed) -> Option<AssignedRange> {
        let parallel = match speed.parallel {
            0 => self.parallel_max,
            parallel => parallel.min(self.parallel_max),
        };
        let ended = |job: &ReplicaSetRanges| job.in_flight == 0 && job.waiting.is_empty();
        for job in &mut self.jobs {
            job.active &= !ended(job);
        }
        self.slow_down(parallel);
        self.speed_up(parallel);
        let mut active = 0;
        for (at, job) in self.jobs.iter_mut().enumerate() {
            if !job.active {
                continue;
            }
            active += 1;
            // Jobs beyond the present limit get no more ranges, and end with those in flight.
            if active > parallel {
                break;
            }
            let intensity = match speed.intensity {
                0 => job.fastest,
                intensity => intensity.min(job.fastest),
            };
            if job.in_flight < intensity
                && let Some(range) = job.waiting.pop_front()
            {
                job.in_flight += 1;
                return Some(AssignedRange { range, job: at });
            }
        }
        None
    }

    /// Notes that a range is no longer in flight.
    pub(super) fn ended(&mut self, ticket: AssignedRange) {
        self.jobs[ticket.job].in_flight -= 1;
    }

    /// Frees the nodes of jobs that are beyond the limit and have no range in flight.
    fn slow_down(&mut self, parallel: usize) {
        let active = self.jobs.iter_mut().filter(|job| job.active);
        for job in active.skip(parallel) {
            job.active = job.in_flight > 0;
        }
    }

    /// Begins jobs whose nodes are free.
    fn speed_up(&mut self, parallel: usize) {
        let active = self.jobs.iter().filter(|job| job.active);
        let mut count = active.clone().count();
        let mut taken: BTreeSet<Uuid> = active.flat_map(|job| &job.nodes).copied().collect();
        for job in &mut self.jobs {
            if count >= parallel {
                return;
            }
            if !job.active && !job.waiting.is_empty() && job.nodes.is_disjoint(&taken) {
                job.active = true;
                taken.extend(&job.nodes);
                count += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
