//! Tests that a write that was handed over is carried out, even if its caller no longer waits.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::support::*;

#[test]
fn a_dropped_future_does_not_undo_the_write() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    for c in 0..20 {
        let row = insert(vec![int(c)], vec![], 1);
        let future = pin!(storage.write(write_of(&table, vec![int(1)], vec![row])));
        let polled = future.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending | Poll::Ready(Ok(_))));
    }
    eventually("all are carried out", || {
        read_all(&storage, &table).len() == 20
    });
}
