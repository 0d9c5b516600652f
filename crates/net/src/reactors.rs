//! Threads that serve connections, each with a runtime of its own.
//!
//! A runtime of many threads lets whichever is idle go on with any task. For that its threads wake
//! each other: one that finds work wakes another to look for more. A gateway's request is some tens
//! of microseconds of work between two sockets, and waking and falling asleep again cost as much
//! (docs/benchmarks/gateway.md has the figures). Here a connection stays with one thread, with all
//! that its requests need, and no other thread is woken for it. Envoy, nginx and Seastar share work
//! in this way, too.
//!
//! A connection comes to the thread that serves the fewest. Its requests take turns there: work
//! that takes long belongs elsewhere ([`tokio::task::spawn_blocking`]), and a client that wants
//! more than one core has to open more than one connection.
//!
//! The index service and the node do not serve in this way: when it was tried for them, searches
//! waited longer when the machine was slow (docs/benchmarks/tried.md).

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

thread_local! {
    /// The number of this thread among all reactors of the process, from 1; 0 elsewhere.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The last number given.
static NUMBERS: AtomicUsize = AtomicUsize::new(0);

/// One value for every reactor and one for all other threads. So what a connection requests on its
/// way, such as a connection to another service, stays with its thread.
#[derive(Debug)]
pub struct PerReactor<T>(Box<[T]>);

impl<T> PerReactor<T> {
    /// Makes one value for each core and one for the other threads. If there are more reactors than
    /// cores, some share one.
    pub fn new(make: impl FnMut() -> T) -> PerReactor<T> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        PerReactor(std::iter::repeat_with(make).take(1 + cores).collect())
    }

    /// The value of this thread.
    pub fn here(&self) -> &T {
        match NUMBER.get() {
            0 => &self.0[0],
            number => &self.0[1 + (number - 1) % (self.0.len() - 1)],
        }
    }
}

/// The most tasks that a reactor does before it looks at its sockets. A task may be a search, and
/// requests that come meanwhile wait.
const TASKS_BETWEEN_LOOKS: u32 = 8;

/// Threads that serve connections. It is cheap to clone; clones share the threads. The threads end
/// with the last clone, and connections that are left are closed then.
#[derive(Clone, Debug)]
pub struct ReactorPool {
    /// The threads. If there are none, connections are tasks of the runtime that they come in on.
    threads: Arc<[Reactor]>,
    _stop: Option<Arc<DropGuard>>,
}

#[derive(Debug)]
struct Reactor {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
}

impl ReactorPool {
    /// Starts this many threads, one at least.
    ///
    /// # Errors
    /// If the system has no more threads or file descriptors.
    pub fn start(threads: usize) -> io::Result<ReactorPool> {
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let threads = (0..threads.max(1)).map(|number| Reactor::start(number, stop.clone()));
        Ok(ReactorPool {
            threads: threads.collect::<io::Result<_>>()?,
            _stop: Some(Arc::new(guard)),
        })
    }

    /// Makes reactors without threads: a connection is a task of the runtime that it comes in on.
    pub fn of_the_runtime() -> ReactorPool {
        ReactorPool {
            threads: Arc::new([]),
            _stop: None,
        }
    }

    /// Serves a connection until `serve` is done with it. It must be called within a Tokio runtime.
    /// Fails if the stream can't leave its runtime.
    pub fn serve<F>(
        &self,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) -> io::Result<()>
    where
        F: Future<Output = ()> + Send,
    {
        let fewest = |reactor: &&Reactor| reactor.connections.load(Ordering::Relaxed);
        let Some(reactor) = self.threads.iter().min_by_key(fewest) else {
            tokio::spawn(async move { serve(stream).await });
            return Ok(());
        };
        // A socket belongs to the runtime that waits for it.
        let stream = stream.into_std()?;
        let place = CountedConnection::take(&reactor.connections);
        reactor.runtime.spawn(async move {
            // This fails only if the thread has no room for one more socket, which is closed then.
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve(stream).await;
            }
            drop(place);
        });
        Ok(())
    }
}

/// As [`ReactorPool::of_the_runtime`].
impl Default for ReactorPool {
    fn default() -> ReactorPool {
        ReactorPool::of_the_runtime()
    }
}

impl Reactor {
    fn start(number: usize, stop: CancellationToken) -> io::Result<Reactor> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(TASKS_BETWEEN_LOOKS)
            .thread_name(format!("reactor-{number}-blocking"))
            .build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name(format!("reactor-{number}"))
            .spawn(move || {
                NUMBER.set(1 + NUMBERS.fetch_add(1, Ordering::Relaxed));
                runtime.block_on(stop.cancelled());
                // Threads in the midst of blocking work are not waited for.
                runtime.shutdown_background();
            })?;
        Ok(Reactor {
            runtime: handle,
            connections: Arc::default(),
        })
    }
}

/// A connection that is counted until it ends.
struct CountedConnection(Arc<AtomicUsize>);

impl CountedConnection {
    fn take(connections: &Arc<AtomicUsize>) -> CountedConnection {
        connections.fetch_add(1, Ordering::Relaxed);
        CountedConnection(connections.clone())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
