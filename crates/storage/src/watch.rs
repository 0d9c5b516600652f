//! The watcher is a thread that syncs writes that only the kernel has, and notices when the disk
//! fails. It has the committer open the engine again when the disk takes writes again, remove
//! dropped tables once they have no readers, and delete rows whose time has come. It has tables
//! that were not written to for a minute written out.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::WeakSender;

use crate::clock::{AheadEvent, AheadMonitor};
use crate::commit::QueuedRequest;
use crate::shared::OpenStorage;
use crate::{Durability, WriteAvailability};

/// The time between two looks at the disk.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The looks after which a table that was not written to is written out: a minute.
const IDLE_LOOKS: u32 = 60;

/// The watcher's thread; it ends when this is dropped.
pub(crate) struct MaintenanceThread {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for MaintenanceThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn start(
    shared: Arc<OpenStorage>,
    requests: WeakSender<QueuedRequest>,
) -> io::Result<MaintenanceThread> {
    let (stop, stopped) = sync_channel(1);
    let watcher = MaintenanceLoop::new(shared, requests);
    let thread = thread::Builder::new()
        .name("storage-watch".to_owned())
        .spawn(move || watcher.run(&stopped))?;
    Ok(MaintenanceThread {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Runs the watcher as a task.
#[cfg(feature = "simulation")]
pub(crate) async fn run(shared: Arc<OpenStorage>, requests: WeakSender<QueuedRequest>) {
    let mut watcher = MaintenanceLoop::new(shared, requests);
    let tick = watcher.tick();
    // The storage is closed once there is no sender left.
    while watcher.requests.upgrade().is_some() {
        tokio::time::sleep(tick).await;
        if let Durability::Buffered { .. } = watcher.shared.durability {
            watcher.sync();
        }
        watcher.poll_disk();
        watcher.poll_clock();
    }
}

struct MaintenanceLoop {
    shared: Arc<OpenStorage>,
    /// Weak, as the committer ends when no strong one is left.
    requests: WeakSender<QueuedRequest>,
    synced: Instant,
    looked: Instant,
    clock_ahead: AheadMonitor,
}

impl MaintenanceLoop {
    fn new(shared: Arc<OpenStorage>, requests: WeakSender<QueuedRequest>) -> MaintenanceLoop {
        MaintenanceLoop {
            shared,
            requests,
            synced: Instant::now(),
            looked: Instant::now(),
            clock_ahead: AheadMonitor::default(),
        }
    }

    /// The time between two turns of the loop.
    fn tick(&self) -> Duration {
        let tick = match self.shared.durability {
            Durability::Synced => LOOK_INTERVAL,
            Durability::Buffered { sync_interval } => sync_interval.min(LOOK_INTERVAL),
        };
        // An interval of zero would spin.
        tick.max(Duration::from_millis(1))
    }

    fn run(mut self, stopped: &Receiver<()>) {
        let tick = self.tick();
        while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
            self.sync_if_due();
            if self.looked.elapsed() >= LOOK_INTERVAL {
                self.looked = Instant::now();
                self.poll_disk();
                self.poll_clock();
            }
        }
    }

    fn sync_if_due(&mut self) {
        let Durability::Buffered { sync_interval } = self.shared.durability else {
            return;
        };
        if self.synced.elapsed() >= sync_interval {
            self.synced = Instant::now();
            self.sync();
        }
    }

    fn sync(&self) {
        if self.shared.health() != WriteAvailability::Writable {
            return;
        }
        if let Err(error) = self.shared.engine.sync() {
            self.shared.note_write_failure(&error);
        }
    }

    fn poll_disk(&self) {
        if self.shared.health() == WriteAvailability::Writable {
            // The engine's own threads may have failed without any write of ours.
            if let Err(error) = self.shared.engine.probe() {
                self.shared.note_write_failure(&error);
            }
            if self
                .shared
                .statistics
                .retired_waiting
                .load(Ordering::Relaxed)
                > 0
            {
                self.send_request(QueuedRequest::DropRetired);
            }
            self.shared.engine.write_out_idle(IDLE_LOOKS);
            let schema = self.shared.schema();
            if schema.tables().any(|table| table.expiry().is_some()) {
                self.send_request(QueuedRequest::Expire);
            }
            return;
        }
        self.shared.refresh_failure();
        if self.shared.engine.disk_takes_writes() {
            self.send_request(QueuedRequest::Reopen);
        }
    }

    fn send_request(&self, request: QueuedRequest) {
        if let Some(requests) = self.requests.upgrade() {
            // If the queue is full, the committer is busy; there is another look.
            let _ = requests.try_send(request);
        }
    }
}

impl MaintenanceLoop {
    /// Logs when the machine's clock was set back and when it has caught up. That stops nothing,
    /// but until then the storage's times are ahead of the machine's.
    fn poll_clock(&mut self) {
        let clock = &self.shared.clock;
        match self
            .clock_ahead
            .poll(clock.ahead_micros(), clock.steady_micros())
        {
            Some(AheadEvent::Behind(lead_micros)) => tracing::error!(
                lead_s = lead_micros / 1_000_000,
                "the machine's clock was set back: write timestamps, expiry and change logs are ahead of it by lead_s \
                 seconds. The lead shrinks by one second in sixteen. Readers of a change log that go by a clock of their \
                 own find rows that much later. If the clock is wrong, set it right; run NTP"
            ),
            Some(AheadEvent::CaughtUp) => {
                tracing::info!("the machine's clock has caught up with the database's time");
            }
            None => {}
        }
    }
}
