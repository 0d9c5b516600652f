use proptest::prelude::*;

use super::*;

fn node(number: u8) -> Uuid {
    Uuid::from_u128(u128::from(number))
}

fn range(number: i64) -> TokenRange {
    TokenRange {
        start: number,
        end: number,
    }
}

/// The ranges of a ring on which each node is followed by the other replicas of its ranges.
fn ring(nodes: u8, replicas: u8, ranges: i64) -> Vec<(TokenRange, BTreeSet<Uuid>)> {
    let set = |at: i64| {
        let first = (at % i64::from(nodes)) as u8;
        (0..replicas)
            .map(|next| node((first + next) % nodes))
            .collect()
    };
    (0..ranges).map(|at| (range(at), set(at))).collect()
}

fn all(plan: &mut RangePlan, speed: ComparisonSpeed) -> Vec<AssignedRange> {
    std::iter::from_fn(|| plan.next(speed)).collect()
}

const FASTEST: ComparisonSpeed = ComparisonSpeed {
    parallel: 0,
    intensity: 0,
};

#[test]
fn as_many_jobs_as_nodes_divided_by_replicas() {
    for (nodes, replicas, jobs) in [(1, 1, 1), (3, 3, 1), (3, 1, 3), (6, 3, 2), (7, 3, 2)] {
        let mut plan = RangePlan::new(ring(nodes, replicas, 70), |_| 1);
        assert_eq!(plan.parallel_max, jobs, "{nodes} / {replicas}");
        let started = all(&mut plan, FASTEST).len();
        assert!((1..=jobs).contains(&started), "{started} of {jobs}");
        let limited = ComparisonSpeed {
            parallel: 1,
            intensity: 0,
        };
        let mut plan = RangePlan::new(ring(nodes, replicas, 70), |_| 1);
        assert_eq!(all(&mut plan, limited).len(), 1);
    }
}

#[test]
fn the_speed_changes_while_it_runs() {
    let mut plan = RangePlan::new(ring(3, 1, 300), |_| 2);
    let speed = |parallel, intensity| ComparisonSpeed {
        parallel,
        intensity,
    };
    let first = all(&mut plan, speed(1, 1));
    assert_eq!(first.len(), 1);
    let more = all(&mut plan, FASTEST);
    assert_eq!(more.len(), 5, "two on each of three nodes");
    let most = all(&mut plan, speed(0, usize::MAX)).len();
    assert_eq!(most, 0, "no more than the nodes allow");
    assert_eq!(all(&mut plan, speed(1, 1)).len(), 0);
    for ticket in first {
        plan.ended(ticket);
    }
    assert_eq!(
        all(&mut plan, speed(1, 1)).len(),
        0,
        "five are on their way"
    );
}

proptest! {
    /// However the speed changes, no node works for two jobs, no range is left out or handed out
    /// twice, and the limits hold.
    #[test]
    fn no_node_has_two_jobs(
        nodes in 1..8u8,
        replicas in 1..4u8,
        steps in proptest::collection::vec((any::<u8>(), 0..4usize, 0..4usize), 1..200),
    ) {
        let ranges = 60;
        let mut plan = RangePlan::new(ring(nodes, replicas.min(nodes), ranges), |_| 2);
        let sets: Vec<_> = ring(nodes, replicas.min(nodes), ranges);
        let mut in_flight: Vec<AssignedRange> = Vec::new();
        let mut handed_out = BTreeSet::new();
        let steps = steps.into_iter().chain(std::iter::repeat_n((0, 0, 0), 500));
        for (pick, parallel, intensity) in steps {
            let speed = ComparisonSpeed { parallel, intensity };
            if let Some(ticket) = plan.next(speed) {
                prop_assert!(handed_out.insert(ticket.range.start));
                in_flight.push(ticket);
                let jobs: BTreeSet<usize> = in_flight.iter().map(|ticket| ticket.job).collect();
                let limit = usize::from(nodes / replicas.min(nodes));
                prop_assert!(jobs.len() <= limit.max(1));
                for other in &in_flight {
                    let apart = sets[other.range.start as usize].1
                        .is_disjoint(&sets[ticket.range.start as usize].1);
                    prop_assert!(other.job == ticket.job || apart);
                }
                let of_job = in_flight.iter().filter(|other| other.job == ticket.job).count();
                let limit = if intensity == 0 { 2 } else { intensity.min(2) };
                prop_assert!(of_job <= limit);
            } else if in_flight.is_empty() {
                break;
            } else {
                plan.ended(in_flight.swap_remove(usize::from(pick) % in_flight.len()));
            }
        }
        prop_assert_eq!(plan.waiting(), 0);
        prop_assert_eq!(handed_out.len() as i64, ranges);
    }
}
