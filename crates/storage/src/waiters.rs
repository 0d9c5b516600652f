//! Tasks that wait for something, and go on in the order in which they came.
//!
//! A `watch` of tokio wakes those that wait for it in a random order. Then writers could overtake
//! each other, and a simulation would go another way each time.

use std::pin::pin;

use tokio::sync::Notify;

/// The tasks that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingTasks(Notify);

impl WaitingTasks {
    /// Waits until the condition holds. A change of what it depends on calls
    /// [`WaitingTasks::wake`] afterwards.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        while !holds() {
            let mut woken = pin!(self.0.notified());
            // From here on no call is missed.
            woken.as_mut().enable();
            if holds() {
                return;
            }
            woken.await;
        }
    }

    /// Has all tasks look at their conditions.
    pub(crate) fn wake(&self) {
        self.0.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures::stream::{FuturesUnordered, StreamExt};

    use super::*;

    #[tokio::test]
    async fn tasks_continue_in_the_order_of_their_arrival() {
        let (waiters, is_open) = (WaitingTasks::default(), AtomicBool::new(false));
        let order = Mutex::new(Vec::new());
        let mut tasks: FuturesUnordered<_> = (0..100)
            .map(|number| {
                let (waiters, is_open, order) = (&waiters, &is_open, &order);
                async move {
                    waiters.until(|| is_open.load(Ordering::Acquire)).await;
                    order.lock().unwrap().push(number);
                }
            })
            .collect();
        assert!(futures::poll!(tasks.next()).is_pending());
        waiters.wake();
        assert!(futures::poll!(tasks.next()).is_pending(), "it is not open");
        let came = std::mem::take(&mut *order.lock().unwrap());
        assert_eq!(came, [0; 0]);
        is_open.store(true, Ordering::Release);
        waiters.wake();
        tasks.collect::<()>().await;
        assert!(order.into_inner().unwrap().is_sorted());
    }
}
