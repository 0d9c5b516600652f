use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::poll;

use super::*;

/// One turn for all classes together.
fn one() -> Turns {
    Turns::new(TurnsOptions {
        at_once_max: Some(1),
        ..TurnsOptions::of_threads(4)
    })
}

#[tokio::test]
async fn a_turn_that_is_given_back_goes_to_the_next() {
    let turns = Turns::of_threads(1);
    let first = turns.take(Class::Query).await;
    assert!(turns.try_take(Class::Query).is_none());
    let mut second = pin!(turns.take(Class::Query));
    assert!(poll!(&mut second).is_pending());
    assert_eq!(
        turns.counts(Class::Query),
        Counts {
            running: 1,
            waiting: 1,
            given: 1,
            held: Duration::ZERO,
        }
    );
    drop(first);
    assert!(
        turns.try_take(Class::Query).is_none(),
        "it is given already"
    );
    drop(second.await);
    assert_eq!(
        turns.counts(Class::Query),
        Counts {
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
    let held = turns.take(Class::Write).await;
    let mut stays = Box::pin(turns.take(Class::Query));
    let mut leaves = Box::pin(turns.take(Class::Query));
    assert!(poll!(&mut leaves).is_pending());
    assert!(poll!(&mut stays).is_pending());
    drop(leaves);
    assert_eq!(turns.counts(Class::Query).waiting, 1);
    drop(held);
    assert!(poll!(&mut stays).is_ready());
}

#[tokio::test]
async fn a_turn_given_to_a_caller_that_stops_waiting_goes_on() {
    let turns = one();
    let held = turns.take(Class::Write).await;
    let mut first = Box::pin(turns.take(Class::Query));
    let mut second = Box::pin(turns.take(Class::Ingest));
    assert!(poll!(&mut first).is_pending());
    assert!(poll!(&mut second).is_pending());
    drop(held);
    assert_eq!(turns.counts(Class::Query).running, 1);
    drop(first);
    assert!(poll!(&mut second).is_ready());
    drop(second);
    for class in Class::ALL {
        let counts = turns.counts(class);
        assert_eq!((counts.running, counts.waiting), (0, 0), "{class:?}");
    }
    assert!(turns.try_take(Class::Background).is_some());
}

#[test]
fn a_turn_comes_back_after_a_panic() {
    let turns = one();
    let of_thread = turns.clone();
    let panicked = std::thread::spawn(move || {
        let _turn = of_thread.take_blocking(Class::Ingest);
        panic!("a bug");
    });
    assert!(panicked.join().is_err());
    assert!(turns.try_take(Class::Query).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_and_tasks_wait_in_one_queue() {
    const ROUNDS: usize = 200;
    let turns = Turns::new(TurnsOptions {
        at_once_max: Some(2),
        ..TurnsOptions::of_threads(4)
    });
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = {
        let (running, most) = (running.clone(), most.clone());
        move |turn: Turn| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            drop(turn);
        }
    };
    let mut all = Vec::new();
    for class in Class::ALL {
        let (of_task, of_thread) = (turns.clone(), turns.clone());
        let (work, blocking_work) = (work.clone(), work.clone());
        all.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                work(of_task.take(class).await);
            }
        }));
        all.push(tokio::task::spawn_blocking(move || {
            for _ in 0..ROUNDS {
                blocking_work(of_thread.take_blocking(class));
            }
        }));
    }
    for ended in all {
        ended.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
    for class in Class::ALL {
        let counts = turns.counts(class);
        assert_eq!((counts.running, counts.waiting), (0, 0), "{class:?}");
        assert_eq!(counts.given, 2 * ROUNDS as u64, "{class:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn classes_share_the_time_of_two_processors() {
    let turns = Turns::new(TurnsOptions {
        at_once_max: Some(2),
        ..TurnsOptions::of_threads(2)
    });
    // More callers than turns, and turns of one class take five times as long.
    for (class, turn_ms) in [(Class::Query, 2), (Class::Ingest, 10)] {
        for _ in 0..4 {
            let turns = turns.clone();
            tokio::spawn(async move {
                loop {
                    let _turn = turns.take(class).await;
                    tokio::time::sleep(Duration::from_millis(turn_ms)).await;
                }
            });
        }
    }
    // Time is simulated here and in the tests below, so that a sleep takes none.
    tokio::time::sleep(Duration::from_secs(10)).await;
    // Each class has one of two processors: 5,000 turns of 2 ms, and 1,000 of 10 ms.
    let (query, ingest) = (turns.counts(Class::Query), turns.counts(Class::Ingest));
    assert!(query.given.abs_diff(5000) <= 100, "{query:?} {ingest:?}");
    assert!(ingest.given.abs_diff(1000) <= 20, "{query:?} {ingest:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_until_a_caller_comes_back_is_not_charged() {
    let turns = one();
    let held = turns.take(Class::Write).await;
    let mut waits = pin!(turns.take(Class::Query));
    assert!(poll!(&mut waits).is_pending());
    drop(held);
    assert_eq!(turns.counts(Class::Query).running, 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let turn = waits.await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(turn);
    assert_eq!(turns.counts(Class::Query).held, Duration::from_secs(1));
}

#[test]
fn limits_tell_how_far_work_is_worth_splitting() {
    let turns = Turns::of_threads(3);
    assert_eq!(turns.at_once(Class::Ingest), 3);
    assert_eq!(turns.at_once(Class::Read), 3);
    assert_eq!(turns.at_once(Class::Write), 1);
    assert_eq!(turns.at_once(Class::Background), class::cores());
    assert_eq!(one().at_once(Class::Ingest), 1);
}

#[tokio::test(start_paused = true)]
async fn many_searches_leave_ingest_its_share_and_the_other_way_round() {
    const SHARES: Shares = Shares {
        search: 1,
        ingest: 3,
    };
    // (callers that search, callers that take in)
    for (searching, ingesting) in [(256, 1), (2, 16), (256, 16)] {
        let turns = Turns::new(TurnsOptions {
            at_once_max: Some(2),
            ..TurnsOptions::of_shares(2, SHARES)
        });
        let callers = [(Class::Query, searching, 2), (Class::Ingest, ingesting, 20)];
        for (class, count, turn_ms) in callers {
            for _ in 0..count {
                let turns = turns.clone();
                tokio::spawn(async move {
                    loop {
                        let turn = turns.take(class).await;
                        tokio::time::sleep(Duration::from_millis(turn_ms)).await;
                        drop(turn);
                        tokio::task::yield_now().await;
                    }
                });
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let held = |class| turns.counts(class).held.as_secs_f64() / 120.0;
        let (search, ingest) = (held(Class::Query), held(Class::Ingest));
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
    let shares = Shares {
        search: 3,
        ingest: 2,
    };
    let options = TurnsOptions::of_shares(2, shares);
    assert_eq!(options.of(Class::Read), options.of(Class::Query));
    assert_eq!(options.of(Class::Read).share, 12);
    assert_eq!(options.of(Class::Write).share, 8);
}

#[test]
fn each_class_has_its_own_place_and_name() {
    for (at, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, at);
    }
    let names = Class::ALL.map(Class::name);
    assert_eq!(names, ["query", "read", "write", "ingest", "background"]);
}
