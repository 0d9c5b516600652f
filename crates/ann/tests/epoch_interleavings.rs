//! The epochs on loom's primitives. A model is run under every interleaving of its threads, and
//! under every value that the memory model lets a load return.

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

#[path = "../src/epoch.rs"]
mod epoch;

use epoch::{Epochs, Participant};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// All interleavings of three threads take minutes; those in which a thread is interrupted at most
/// three times (it may wait as often as it likes) take seconds, and have every known kind of error.
fn bounded() -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder
}

/// Two records; `link` says which one readers find. Loom fails the model if a record is written
/// while it is read, or without an order between the two.
struct Graph {
    link: AtomicUsize,
    records: [UnsafeCell<u32>; 2],
}

impl Graph {
    fn new() -> Graph {
        Graph {
            link: AtomicUsize::new(0),
            records: [UnsafeCell::new(10), UnsafeCell::new(0)],
        }
    }

    /// Reads what the link leads to, as a search does.
    fn read(&self, participant: &Participant) -> u32 {
        let _pin = participant.pin();
        // Acquire, as the record behind the link must be complete.
        let record = self.link.load(Ordering::Acquire);
        self.records[record].with(|value| {
            // SAFETY: the model checks it: no one reuses the record under this pin.
            unsafe { *value }
        })
    }

    fn write(&self, record: usize, value: u32) {
        self.records[record].with_mut(|place| {
            // SAFETY: the model checks it: no one reads a record that is free.
            unsafe { *place = value }
        });
    }

    /// Moves the link from record 0 to record 1.
    fn relink(&self) {
        self.write(1, 11);
        self.link.store(1, Ordering::Release);
    }
}

#[test]
fn a_record_is_reused_when_no_reader_can_hold_it() {
    bounded().check(|| {
        let graph = Arc::new(Graph::new());
        let epochs = Epochs::new();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let graph = Arc::clone(&graph);
                let participant = epochs.register();
                thread::spawn(move || {
                    let value = graph.read(&participant);
                    assert!(value == 10 || value == 11, "{value}");
                })
            })
            .collect();
        graph.relink();
        let mark = epochs.advance();
        if epochs.passed(mark) {
            graph.write(0, 99);
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert!(epochs.passed(mark), "all have unpinned");
    });
}

#[test]
fn a_reader_that_pins_again_holds_nothing_of_its_first_pin() {
    loom::model(|| {
        let graph = Arc::new(Graph::new());
        let epochs = Epochs::new();
        let participant = epochs.register();
        let reader = {
            let graph = Arc::clone(&graph);
            thread::spawn(move || {
                for _ in 0..2 {
                    let value = graph.read(&participant);
                    assert!(value == 10 || value == 11, "{value}");
                }
            })
        };
        graph.relink();
        let mark = epochs.advance();
        // The second look may find the reader in its second pin, of a later epoch.
        if epochs.passed(mark) || epochs.passed(mark) {
            graph.write(0, 99);
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_mark_found_passed_by_one_thread_has_passed_for_another() {
    loom::model(|| {
        let graph = Arc::new(Graph::new());
        let epochs = Arc::new(Epochs::new());
        let made = Arc::new(Mutex::new(None));
        let reader = {
            let graph = Arc::clone(&graph);
            let epochs = Arc::clone(&epochs);
            let made = Arc::clone(&made);
            let participant = epochs.register();
            thread::spawn(move || {
                graph.read(&participant);
                if let Some(mark) = *made.lock().unwrap() {
                    epochs.passed(mark);
                }
            })
        };
        graph.relink();
        let mark = epochs.advance();
        *made.lock().unwrap() = Some(mark);
        if epochs.passed(mark) {
            graph.write(0, 99);
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_participant_may_join_while_a_change_waits() {
    loom::model(|| {
        let graph = Arc::new(Graph::new());
        let epochs = Arc::new(Epochs::new());
        let reader = {
            let graph = Arc::clone(&graph);
            let epochs = Arc::clone(&epochs);
            thread::spawn(move || {
                let participant = epochs.register();
                let value = graph.read(&participant);
                assert!(value == 10 || value == 11, "{value}");
            })
        };
        graph.relink();
        let mark = epochs.advance();
        if epochs.passed(mark) {
            graph.write(0, 99);
        }
        reader.join().unwrap();
    });
}
