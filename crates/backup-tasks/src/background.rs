//! Threads on which transfers do their work: the operating system prefers all other threads of the
//! process to them.
//!
//! [`QueriesFirst`](crate::QueriesFirst) decides when a piece may go. While one goes, it reads the
//! disk, computes digests and writes, for milliseconds. On these threads that delays requests
//! less, as the system takes the processor from them when a request needs it; without requests
//! they have all of it. Next to requests that want all of it they get a tenth of a core, so that a
//! backup ends. The system's order for the disk follows the same priority.
//!
//! A transfer holds no lock of the storage. What does, such as a checkpoint, stays on the threads
//! of the process.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle, Runtime};

/// The threads that read and write files at a time, at most. A transfer has few pieces on their
/// way, and one file of a piece is open at a time.
const BLOCKING_THREADS_MAX: usize = 16;

/// Threads of low priority, made upon the first transfer.
#[derive(Default)]
pub(crate) struct BackgroundThreads {
    runtime: OnceLock<Runtime>,
}

impl BackgroundThreads {
    /// Carries out work whose own tasks and blocking calls, and the connections that it opens, are
    /// on these threads. Only its own steps between them are on the caller's.
    ///
    /// # Errors
    /// If the threads can't be made.
    pub(crate) async fn run<F: Future + Send>(&self, work: F) -> io::Result<F::Output> {
        let handle = self.handle()?;
        let work = pin!(work);
        Ok(WithinRuntime { handle, work }.await)
    }

    fn handle(&self) -> io::Result<Handle> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime.handle().clone());
        }
        let made = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("annulus-transfer")
            .on_thread_start(lower_priority)
            .enable_all()
            .build()?;
        // Another transfer may have made them at the same time.
        if let Err(second) = self.runtime.set(made) {
            second.shutdown_background();
        }
        match self.runtime.get() {
            Some(runtime) => Ok(runtime.handle().clone()),
            None => Err(io::Error::other("threads for transfers were not made")),
        }
    }
}

impl fmt::Debug for BackgroundThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundThreads").finish_non_exhaustive()
    }
}

impl Drop for BackgroundThreads {
    fn drop(&mut self) {
        // A thread of a runtime may not wait for the threads of another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Work that takes another runtime than the one that polls it for the present one.
struct WithinRuntime<'a, F> {
    handle: Handle,
    work: Pin<&'a mut F>,
}

impl<F: Future> Future for WithinRuntime<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let WithinRuntime { handle, work } = &mut *self;
        let _entered = handle.enter();
        work.as_mut().poll(context)
    }
}

/// The `nice` value of these threads. The system gives one a ninth of what it gives a thread of 0.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Gives this thread a low priority, unless it has a lower one. Without it a transfer is as fast,
/// and in the way.
#[cfg(target_os = "linux")]
fn lower_priority() {
    let thread = Some(rustix::thread::gettid());
    let lowered = rustix::process::getpriority_process(thread).and_then(|nice| match nice < NICE {
        true => rustix::process::setpriority_process(thread, NICE),
        false => Ok(()),
    });
    if let Err(error) = lowered {
        tracing::debug!(%error, "the priority of a thread for transfers");
    }
}

/// Elsewhere a priority is that of the whole process.
#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_has_its_tasks_and_blocking_calls_on_threads_of_a_low_priority() {
        let priority = || rustix::process::getpriority_process(Some(rustix::thread::gettid()));
        let own = priority().unwrap();
        let threads = BackgroundThreads::default();
        let seen = threads.run(async {
            let task = tokio::spawn(async move { priority() });
            let blocking = tokio::task::spawn_blocking(priority);
            [task.await.unwrap(), blocking.await.unwrap()].map(Result::unwrap)
        });
        assert_eq!(seen.await.unwrap(), [own.max(NICE); 2]);
        // Twice, as the threads are made once; then outside of them.
        let again = threads.run(async { Handle::current().id() }).await.unwrap();
        let third = threads.run(async { Handle::current().id() }).await.unwrap();
        assert_eq!(again, third);
        assert_ne!(Handle::current().id(), again);
        let outside = tokio::task::spawn_blocking(priority).await.unwrap();
        assert_eq!(outside.unwrap(), own);
    }
}
