use proptest::prelude::*;

use super::*;
use crate::class::WorkClassOptions;

const TURN: Duration = Duration::from_millis(1);

/// Options without limits but the one for all classes together.
fn shared(at_once_max: usize, shares: [u32; 5]) -> SchedulerOptions {
    let [query, read, write, ingest, background] = shares.map(|share| WorkClassOptions {
        at_once_max: None,
        share,
    });
    SchedulerOptions {
        at_once_max: Some(at_once_max),
        query,
        read,
        write,
        ingest,
        background,
    }
}

/// One processor that is taken, and so many callers of each class that wait for it.
fn schedule_with_waiters(shares: [u32; 5], waiting: [usize; 5]) -> FairSchedule<()> {
    let mut schedule = FairSchedule::new(&shared(1, shares));
    assert!(schedule.try_give(WorkClass::Query));
    for class in WorkClass::ALL {
        for _ in 0..waiting[class as usize] {
            schedule.wait(class, ());
        }
    }
    schedule
}

/// Gives turns one after the other, the first to a query, and returns whose they were. A turn of
/// each class takes so long.
fn turns(schedule: &mut FairSchedule<()>, took: [Duration; 5], count: usize) -> Vec<WorkClass> {
    let mut class = WorkClass::Query;
    let mut given = vec![class];
    while given.len() < count {
        let Some((next, ())) = schedule.give_back(class, took[class as usize]) else {
            break;
        };
        class = next;
        given.push(class);
    }
    given
}

fn count(given: &[WorkClass], class: WorkClass) -> usize {
    given.iter().filter(|given| **given == class).count()
}

#[test]
fn two_classes_get_their_shares_within_one_turn() {
    for share in [1, 2, 3, 7, 50] {
        let mut schedule = schedule_with_waiters([share, 1, 1, 1, 1], [2000, 0, 0, 2000, 0]);
        let given = turns(&mut schedule, [TURN; 5], 1000);
        for n in 1..=given.len() {
            let queries = count(&given[..n], WorkClass::Query) as f64;
            let due = n as f64 * f64::from(share) / f64::from(share + 1);
            assert!((queries - due).abs() <= 1.0, "{queries} of {n}, {due} due");
        }
    }
}

#[test]
fn no_two_of_many_classes_are_further_apart_than_a_turn_of_each() {
    let shares = [5, 4, 3, 2, 1];
    let mut schedule = schedule_with_waiters(shares, [2000; 5]);
    let given = turns(&mut schedule, [TURN; 5], 1000);
    for n in 1..=given.len() {
        let ratio = |class: WorkClass| {
            let share = f64::from(shares[class as usize]);
            (count(&given[..n], class) as f64 / share, 1.0 / share)
        };
        for one in WorkClass::ALL {
            for other in WorkClass::ALL {
                let ((one, turn), (other, turn_of_other)) = (ratio(one), ratio(other));
                assert!(
                    (one - other).abs() <= turn + turn_of_other + 1e-9,
                    "after {n}"
                );
            }
        }
    }
}

#[test]
fn no_class_starves_however_small_its_share() {
    let mut schedule =
        schedule_with_waiters([1000, 1, 1000, 1, 1000], [10_000, 0, 10_000, 3, 10_000]);
    let given = turns(&mut schedule, [TURN; 5], 10_000);
    // One turn of 3001 is its share.
    let places = (0..given.len()).filter(|place| given[*place] == WorkClass::Ingest);
    let places: Vec<usize> = places.collect();
    assert_eq!(places.len(), 3);
    assert!(places[0] <= 4);
    for pair in places.windows(2) {
        assert!(pair[1] - pair[0] <= 3001 + 1, "{places:?}");
    }
}

#[test]
fn a_class_of_long_turns_gets_fewer_of_them() {
    let mut schedule = schedule_with_waiters([1; 5], [3000, 0, 0, 3000, 0]);
    let long = 10 * TURN;
    let given = turns(&mut schedule, [TURN, TURN, TURN, long, TURN], 1100);
    let ingest = count(&given, WorkClass::Ingest);
    assert!((99..=102).contains(&ingest), "{ingest} of 1100");
}

#[test]
fn an_unused_share_is_divided_among_the_waiting_classes() {
    let mut schedule = schedule_with_waiters([1, 1, 1, 1, 1000], [100, 0, 100, 0, 0]);
    let given = turns(&mut schedule, [TURN; 5], 100);
    assert_eq!(count(&given, WorkClass::Query), 50);
    assert_eq!(count(&given, WorkClass::Write), 50);
}

#[test]
fn a_class_gains_nothing_by_its_absence() {
    let mut schedule = schedule_with_waiters([1; 5], [1000, 0, 0, 0, 0]);
    let alone = turns(&mut schedule, [TURN; 5], 500);
    assert_eq!(count(&alone, WorkClass::Query), 500);
    for _ in 0..500 {
        schedule.wait(WorkClass::Ingest, ());
    }
    let both = turns(&mut schedule, [TURN; 5], 101);
    let queries = count(&both, WorkClass::Query);
    assert!((50..=52).contains(&queries), "{queries} of 101");
}

#[test]
fn a_class_gains_nothing_by_its_own_limit() {
    let mut options = shared(2, [1, 1, 1, 1000, 1]);
    options.ingest.at_once_max = Some(1);
    let mut schedule = FairSchedule::new(&options);
    assert!(schedule.try_give(WorkClass::Ingest));
    assert!(schedule.try_give(WorkClass::Query));
    for class in [WorkClass::Ingest, WorkClass::Query] {
        for _ in 0..5000 {
            schedule.wait(class, ());
        }
    }
    // The class has one processor, and is due much more.
    for _ in 0..1000 {
        for class in [WorkClass::Query, WorkClass::Ingest] {
            let next = schedule.give_back(class, TURN).map(|(next, ())| next);
            assert_eq!(next, Some(class));
        }
    }
    let lag = schedule.position
        - schedule.queues[WorkClass::Ingest as usize]
            .position
            .min(schedule.position);
    assert!(lag <= TURN.as_nanos() * PARTS_OF_NS, "it saved up {lag}");
}

#[test]
fn the_callers_of_a_class_come_in_their_order() {
    let mut schedule = FairSchedule::new(&shared(1, [1; 5]));
    assert!(schedule.try_give(WorkClass::Query));
    let tickets: Vec<u64> = (0..5).map(|n| schedule.wait(WorkClass::Query, n)).collect();
    assert_eq!(schedule.leave(WorkClass::Query, tickets[2]), Some(2));
    assert!(!schedule.try_give(WorkClass::Query));
    let mut order = Vec::new();
    while let Some((_, caller)) = schedule.give_back(WorkClass::Query, TURN) {
        order.push(caller);
    }
    assert_eq!(order, [0, 1, 3, 4]);
    assert_eq!(schedule.leave(WorkClass::Query, tickets[0]), None);
}

#[test]
fn without_a_common_limit_classes_do_not_wait_for_each_other() {
    let mut schedule = FairSchedule::new(&SchedulerOptions::of_threads(2));
    for class in [WorkClass::Query, WorkClass::Ingest] {
        assert!(schedule.try_give(class));
        assert!(schedule.try_give(class));
        assert!(!schedule.try_give(class));
        schedule.wait(class, ());
    }
    assert!(schedule.try_give(WorkClass::Write));
    assert!(!schedule.try_give(WorkClass::Write));
    assert!((0..100).all(|_| schedule.try_give(WorkClass::Background)));
    // A turn of a class goes to those of the class.
    let next = schedule.give_back(WorkClass::Ingest, TURN);
    assert_eq!(next, Some((WorkClass::Ingest, ())));
    assert_eq!(schedule.give_back(WorkClass::Ingest, TURN), None);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(WorkClass),
    Leave(usize),
    GiveBack(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let class = prop::sample::select(&WorkClass::ALL[..]);
    let step = prop_oneof![
        3 => class.prop_map(Step::Take),
        1 => any::<usize>().prop_map(Step::Leave),
        3 => (any::<usize>(), 0..5_000_000u64).prop_map(|(at, ns)| Step::GiveBack(at, ns)),
    ];
    prop::collection::vec(step, 0..200)
}

fn options() -> impl Strategy<Value = SchedulerOptions> {
    let limit = || prop::option::of(1..4usize);
    let class = || {
        (limit(), 1..9u32).prop_map(|(at_once_max, share)| WorkClassOptions { at_once_max, share })
    };
    (limit(), class(), class(), class(), class(), class()).prop_map(
        |(at_once_max, query, read, write, ingest, background)| SchedulerOptions {
            at_once_max,
            query,
            read,
            write,
            ingest,
            background,
        },
    )
}

proptest! {
    /// Checks that limits hold, that no turn is left while somebody could have it, and that none is
    /// lost.
    #[test]
    fn turns_are_neither_lost_nor_left(options in options(), steps in steps()) {
        let mut schedule = FairSchedule::new(&options);
        let mut held: Vec<WorkClass> = Vec::new();
        let mut waiting: Vec<(WorkClass, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Take(class) if schedule.try_give(class) => held.push(class),
                Step::Take(class) => waiting.push((class, schedule.wait(class, ()))),
                Step::Leave(at) if !waiting.is_empty() => {
                    let (class, ticket) = waiting.swap_remove(at % waiting.len());
                    prop_assert!(schedule.leave(class, ticket).is_some());
                }
                Step::GiveBack(at, ns) if !held.is_empty() => {
                    let class = held.swap_remove(at % held.len());
                    if let Some((next, ())) = schedule.give_back(class, Duration::from_nanos(ns)) {
                        held.push(next);
                        let of_class = waiting.iter().filter(|(class, _)| *class == next);
                        let first = of_class.map(|(_, ticket)| *ticket).min();
                        waiting.retain(|(_, ticket)| Some(*ticket) != first);
                    }
                }
                Step::Leave(_) | Step::GiveBack(..) => {}
            }
            for class in WorkClass::ALL {
                let counts = schedule.counts(class);
                prop_assert_eq!(counts.running, count(&held, class));
                let waits = waiting.iter().filter(|(waits, _)| *waits == class).count();
                prop_assert_eq!(counts.waiting, waits);
                prop_assert!(options.of(class).at_once_max.is_none_or(|max| counts.running <= max));
                prop_assert!(waits == 0 || !schedule.has_room(class));
            }
            prop_assert!(options.at_once_max.is_none_or(|max| held.len() <= max));
        }
    }
}
