//! The epochs on the threads and primitives of the index.

#[path = "../src/sync.rs"]
mod sync;

#[path = "../src/epoch.rs"]
mod epoch;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use epoch::{Epochs, Mark};

#[test]
fn marks_pass_in_order_and_wait_for_the_pinned_alone() {
    let epochs = Epochs::new();
    let (early, late, idle) = (epochs.register(), epochs.register(), epochs.register());
    let early_pin = early.pin();
    let first = epochs.advance();
    let late_pin = late.pin();
    let second = epochs.advance();
    assert!(first < second);
    assert_eq!(
        [first, second].map(|mark| epochs.passed(mark)),
        [false, false]
    );
    drop(early_pin);
    assert_eq!(
        [first, second].map(|mark| epochs.passed(mark)),
        [true, false]
    );
    let early_pin = early.pin();
    assert!(!epochs.passed(second));
    drop(late_pin);
    assert!(
        epochs.passed(second),
        "the early one has pinned again, later"
    );
    drop((early_pin, idle));
    let third = epochs.advance();
    assert!(epochs.passed(third));
}

#[test]
fn a_participant_that_is_gone_holds_nothing_back() {
    let epochs = Epochs::new();
    let participant = epochs.register();
    let _pinned = std::mem::ManuallyDrop::new(participant.pin());
    let mark = epochs.advance();
    assert!(!epochs.passed(mark));
    drop(participant);
    assert!(epochs.passed(mark));
}

#[test]
#[should_panic(expected = "pinned once at a time")]
fn pinning_twice_is_a_bug() {
    let participant = Epochs::new().register();
    let _pin = participant.pin();
    let _second = participant.pin();
}

/// Two readers follow a link to one of a few slots, whose two halves a writer writes one after
/// the other, and only while the slot is neither linked nor held.
#[test]
fn readers_never_see_a_slot_change() {
    const SLOTS: usize = 4;
    const DURATION: Duration = Duration::from_millis(300);
    let slots: [[AtomicU64; 2]; SLOTS] = Default::default();
    let link = AtomicUsize::new(0);
    let epochs = Epochs::new();
    let end = Instant::now() + DURATION;
    let mut reuses = 0u64;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let participant = epochs.register();
            let (slots, link) = (&slots, &link);
            scope.spawn(move || {
                while Instant::now() < end {
                    let _pin = participant.pin();
                    let [first, second] = &slots[link.load(Ordering::Acquire)];
                    let before = first.load(Ordering::Relaxed);
                    for _ in 0..50 {
                        assert_eq!(second.load(Ordering::Relaxed), before);
                        assert_eq!(first.load(Ordering::Relaxed), before);
                    }
                }
            });
        }
        let mut free: Vec<(usize, Option<Mark>)> = (1..SLOTS).map(|slot| (slot, None)).collect();
        while Instant::now() < end {
            let (slot, mark) = free.remove(0);
            while mark.is_some_and(|mark| !epochs.passed(mark)) {
                std::thread::yield_now();
            }
            reuses += u64::from(mark.is_some());
            for half in &slots[slot] {
                half.store(reuses, Ordering::Relaxed);
                std::hint::spin_loop();
            }
            let unlinked = link.swap(slot, Ordering::AcqRel);
            free.push((unlinked, Some(epochs.advance())));
        }
    });
    assert!(reuses > 100, "only {reuses} slots were reused");
}
