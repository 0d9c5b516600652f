use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::poll;

use super::*;

/// One turn for all classes together.
fn one() -> CpuScheduler {
    CpuScheduler::new(SchedulerOptions {
        at_once_max: Some(1),
        ..SchedulerOptions::of_threads(4)
    })
}

#[tokio::test]
async fn a_turn_that_is_given_back_goes_to_the_next() {
    let turns = CpuScheduler::of_threads(1);
    let first = turns.acquire(WorkClass::Query).await;
    assert!(turns.try_acquire(WorkClass::Query).is_none());
    let mut second = pin!(turns.acquire(WorkClass::Query));
    assert!(poll!(&mut second).is_pending());
    assert_eq!(
        turns.counts(WorkClass::Query),
        PermitCounts {
            running: 1,
            waiting: 1,
            given: 1,
            held: Duration::ZERO,
        }
    );
    drop(first);
    assert!(
        turns.try_acquire(WorkClass::Query).is_none(),
        "it is given already"
    );
    drop(second.await);
    assert_eq!(
        turns.counts(WorkClass::Query),
        PermitCounts {
            running: 0,
            waiting: 0,
            given: 2,
            held: Duration::ZERO,
        }
    );
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_the_queue() {
    let turns = one();
    let held = turns.acquire(WorkClass::Write).await;
    let mut stays = Box::pin(turns.acquire(WorkClass::Query));
    let mut leaves = Box::pin(turns.acquire(WorkClass::Query));
    assert!(poll!(&mut leaves).is_pending());
    assert!(poll!(&mut stays).is_pending());
    drop(leaves);
    assert_eq!(turns.counts(WorkClass::Query).waiting, 1);
    drop(held);
    assert!(poll!(&mut stays).is_ready());
}

#[tokio::test]
async fn a_turn_given_to_a_caller_that_stops_waiting_goes_on() {
    let turns = one();
    let held = turns.acquire(WorkClass::Write).await;
    let mut first = Box::pin(turns.acquire(WorkClass::Query));
    let mut second = Box::pin(turns.acquire(WorkClass::Ingest));
    assert!(poll!(&mut first).is_pending());
    assert!(poll!(&mut second).is_pending());
    drop(held);
    assert_eq!(turns.counts(WorkClass::Query).running, 1);
    drop(first);
    assert!(poll!(&mut second).is_ready());
    drop(second);
    for class in WorkClass::ALL {
        let counts = turns.counts(class);
        assert_eq!((counts.running, counts.waiting), (0, 0), "{class:?}");
    }
    assert!(turns.try_acquire(WorkClass::Background).is_some());
}

#[test]
fn a_turn_comes_back_after_a_panic() {
    let turns = one();
    let of_thread = turns.clone();
    let panicked = std::thread::spawn(move || {
        let _turn = of_thread.acquire_blocking(WorkClass::Ingest);
        panic!("a bug");
    });
    assert!(panicked.join().is_err());
    assert!(turns.try_acquire(WorkClass::Query).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_and_tasks_wait_in_one_queue() {
    const ROUNDS: usize = 200;
    let turns = CpuScheduler::new(SchedulerOptions {
        at_once_max: Some(2),
        ..SchedulerOptions::of_threads(4)
    });
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = {
        let (running, most) = (running.clone(), most.clone());
        move |turn: Permit| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            drop(turn);
        }
    };
    let mut all = Vec::new();
    for class in WorkClass::ALL {
        let (of_task, of_thread) = (turns.clone(), turns.clone());
        let (work, blocking_work) = (work.clone(), work.clone());
        all.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                work(of_task.acquire(class).await);
            }
        }));
        all.push(tokio::task::spawn_blocking(move || {
            for _ in 0..ROUNDS {
                blocking_work(of_thread.acquire_blocking(class));
            }
        }));
    }
    for ended in all {
        ended.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
    for class in WorkClass::ALL {
        let counts = turns.counts(class);
        assert_eq!((counts.running, counts.waiting), (0, 0), "{class:?}");
        assert_eq!(counts.given, 2 * ROUNDS as u64, "{class:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn classes_share_the_time_of_two_processors() {
    let turns = CpuScheduler::new(SchedulerOptions {
        at_once_max: Some(2),
        ..SchedulerOptions::of_threads(2)
    });
    // More callers than turns, and turns of one class take five times as long.
    for (class, turn_ms) in [(WorkClass::Query, 2), (WorkClass::Ingest, 10)] {
        for _ in 0..4 {
            let turns = turns.clone();
            tokio::spawn(async move {
                loop {
                    let _turn = turns.acquire(class).await;
                    tokio::time::sleep(Duration::from_millis(turn_ms)).await;
                }
            });
        }
    }
    // Time is simulated here and in the tests below, so that a sleep takes none.
    tokio::time::sleep(Duration::from_secs(10)).await;
    // Each class has one of two processors: 5,000 turns of 2 ms, and 1,000 of 10 ms.
    let (query, ingest) = (
        turns.counts(WorkClass::Query),
        turns.counts(WorkClass::Ingest),
    );
    assert!(query.given.abs_diff(5000) <= 100, "{query:?} {ingest:?}");
    assert!(ingest.given.abs_diff(1000) <= 20, "{query:?} {ingest:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_until_a_caller_comes_back_is_not_charged() {
    let turns = one();
    let held = turns.acquire(WorkClass::Write).await;
    let mut waits = pin!(turns.acquire(WorkClass::Query));
    assert!(poll!(&mut waits).is_pending());
    drop(held);
    assert_eq!(turns.counts(WorkClass::Query).running, 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let turn = waits.await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(turn);
    assert_eq!(turns.counts(WorkClass::Query).held, Duration::from_secs(1));
}

#[test]
fn limits_bound_into_how_many_pieces_work_is_split() {
    let turns = CpuScheduler::of_threads(3);
    assert_eq!(turns.concurrency_limit(WorkClass::Ingest), 3);
    assert_eq!(turns.concurrency_limit(WorkClass::Read), 3);
    assert_eq!(turns.concurrency_limit(WorkClass::Write), 1);
    assert_eq!(
        turns.concurrency_limit(WorkClass::Background),
        class::cores()
    );
    assert_eq!(one().concurrency_limit(WorkClass::Ingest), 1);
}

#[tokio::test(start_paused = true)]
async fn many_searches_leave_ingest_its_share_and_the_other_way_round() {
    const SHARES: SchedulingWeights = SchedulingWeights {
        search: 1,
        ingest: 3,
    };
    // (callers that search, callers that take in)
    for (searching, ingesting) in [(256, 1), (2, 16), (256, 16)] {
        let turns = CpuScheduler::new(SchedulerOptions {
            at_once_max: Some(2),
            ..SchedulerOptions::of_shares(2, SHARES)
        });
        let callers = [
            (WorkClass::Query, searching, 2),
            (WorkClass::Ingest, ingesting, 20),
        ];
        for (class, count, turn_ms) in callers {
            for _ in 0..count {
                let turns = turns.clone();
                tokio::spawn(async move {
                    loop {
                        let turn = turns.acquire(class).await;
                        tokio::time::sleep(Duration::from_millis(turn_ms)).await;
                        drop(turn);
                        tokio::task::yield_now().await;
                    }
                });
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let held = |class| turns.counts(class).held.as_secs_f64() / 120.0;
        let (search, ingest) = (held(WorkClass::Query), held(WorkClass::Ingest));
        // Each side is given turns as long as it wants them, and no more than its share where the
        // other wants them, too. One caller can't hold more than one of two turns, and two that
        // search leave theirs to ingest in between.
        let (least_search, least_ingest) = match (searching, ingesting) {
            (_, 1) => (0.48, 0.45),
            (2, _) => (0.1, 0.73),
            _ => (0.23, 0.73),
        };
        assert!(search >= least_search, "{search} {ingest}");
        assert!(ingest >= least_ingest, "{search} {ingest}");
    }
}

#[test]
fn reads_weigh_as_much_as_searches() {
    let shares = SchedulingWeights {
        search: 3,
        ingest: 2,
    };
    let options = SchedulerOptions::of_shares(2, shares);
    assert_eq!(options.of(WorkClass::Read), options.of(WorkClass::Query));
    assert_eq!(options.of(WorkClass::Read).share, 12);
    assert_eq!(options.of(WorkClass::Write).share, 8);
}

#[test]
fn each_class_has_its_own_place_and_name() {
    for (at, class) in WorkClass::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, at);
    }
    let names = WorkClass::ALL.map(WorkClass::name);
    assert_eq!(names, ["query", "read", "write", "ingest", "background"]);
}
