//! Where computing happens: not on the threads that serve sockets.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Threads for searching and for building. Each kind of work has its own permits, so that a long
/// build can't keep searches waiting for a turn; the operating system shares the cores between
/// them.
#[derive(Clone, Debug)]
pub struct Compute {
    threads: usize,
    searches: Arc<Semaphore>,
    builds: Arc<Semaphore>,
}

/// The work was not done because the process is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index service is stopping")]
pub struct Stopped;

impl Compute {
    /// At most `threads` searches and as many pieces of a build at a time; 0: as many as there
    /// are cores.
    pub fn new(threads: usize) -> Compute {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        Compute {
            threads,
            searches: Arc::new(Semaphore::new(threads)),
            builds: Arc::new(Semaphore::new(threads)),
        }
    }

    /// Into how many pieces a build is worth splitting.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs a search. It yields once before, so that requests in flight get on with theirs first.
    pub async fn search<T, F>(&self, work: F) -> Result<T, Stopped>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        tokio::task::yield_now().await;
        run(&self.searches, work).await
    }

    /// Runs a piece of a build.
    pub async fn build<T, F>(&self, work: F) -> Result<T, Stopped>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        run(&self.builds, work).await
    }
}

async fn run<T, F>(permits: &Arc<Semaphore>, work: F) -> Result<T, Stopped>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let permit = permits.clone().acquire_owned().await.map_err(|_| Stopped)?;
    tokio::task::spawn_blocking(move || {
        let result = work();
        drop(permit);
        result
    })
    .await
    .map_err(|error: JoinError| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread")]
    async fn no_more_searches_run_than_threads() {
        let compute = Compute::new(2);
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let searches = (0..8).map(|_| {
            let (running, most) = (running.clone(), most.clone());
            compute.search(move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(5));
                running.fetch_sub(1, Ordering::SeqCst);
            })
        });
        futures::future::join_all(searches).await;
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}
