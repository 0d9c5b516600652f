//! The trace of a request under way.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use client_memory::{MemoryAccount, MemoryCharge};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

/// The most steps that a trace keeps.
const STEPS_MAX: usize = 512;
/// The most bytes that a trace keeps.
const BYTES_MAX: usize = 128 << 10;
/// The most bytes of one text: a step, or the value of a parameter.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// The bytes that a step or a parameter takes in addition to its texts.
const ENTRY_BYTES: usize = 96;
/// The bytes that a trace takes in addition to its steps and parameters.
const TRACE_BYTES: usize = 512;

/// 100-ns ticks in a microsecond.
const TICKS_PER_MICROSECOND: i64 = 10;

tokio::task_local! {
    static CURRENT: Trace;
}

/// The trace of a request under way. Clones are the same trace.
#[derive(Clone)]
pub struct Trace(Arc<ActiveRecording>);

/// A trace's request, as it is known when it begins.
#[derive(Clone, Debug)]
pub struct RequestDescription {
    /// The id of the trace, which the client gets.
    pub id: Uuid,
    /// The kind of request, such as `Execute CQL3 query`.
    pub request: &'static str,
    /// The parts of the request, by name: the text, the consistency level and so on.
    pub parameters: BTreeMap<String, String>,
    /// The address of the client.
    pub client: IpAddr,
    /// The address of the server to which the client connected.
    pub coordinator: SocketAddr,
    /// The time at which the request came. Microseconds since the epoch.
    pub started_at_micros: i64,
}

/// A step of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// The time of the step in 100-ns ticks since the Unix epoch. No two steps of a trace have the
    /// same.
    pub tick: i64,
    /// The work that begins, or what was found.
    pub activity: String,
    /// The time since the request came. Microseconds.
    pub elapsed_micros: i32,
    /// The name of the thread that took the step.
    pub thread: String,
}

/// The trace of a request that is answered.
#[derive(Clone, Debug)]
pub struct FinishedTrace {
    /// The request.
    pub begun: RequestDescription,
    /// The time from the request to its answer. Microseconds.
    pub duration_micros: i32,
    /// The steps, in their order.
    pub steps: Vec<RecordedStep>,
    /// The bytes that the trace takes, about.
    pub(crate) bytes: usize,
}

struct ActiveRecording {
    id: Uuid,
    started: Instant,
    kept: Mutex<RecordedParts>,
}

/// The parts of a trace that are recorded so far.
struct RecordedParts {
    begun: RequestDescription,
    steps: Vec<RecordedStep>,
    bytes: usize,
    /// The number of steps that are not recorded.
    left_out: u64,
    charge: MemoryCharge,
}

impl Trace {
    /// Begins a trace, which is charged to `memory`.
    pub fn begin(begun: RequestDescription, memory: &MemoryAccount) -> Trace {
        let mut kept = RecordedParts {
            begun: RequestDescription {
                parameters: BTreeMap::new(),
                ..begun
            },
            steps: Vec::new(),
            bytes: TRACE_BYTES,
            left_out: 0,
            charge: memory.charge(),
        };
        for (name, value) in begun.parameters {
            kept.tell(name, value);
        }
        Trace(Arc::new(ActiveRecording {
            id: begun.id,
            started: Instant::now(),
            kept: Mutex::new(kept),
        }))
    }

    /// The id of the trace.
    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// Runs a request as the one that is traced.
    pub async fn scope<F: Future>(&self, request: F) -> F::Output {
        CURRENT.scope(self.clone(), request).await
    }

    /// Notes a step.
    pub fn note(&self, activity: String) {
        let elapsed = self.0.started.elapsed().as_micros();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default().to_owned();
        let mut kept = self.0.kept.lock();
        let activity = cut(activity);
        let bytes = ENTRY_BYTES + activity.len() + thread.len();
        if kept.steps.len() >= STEPS_MAX || !kept.takes(bytes) {
            kept.left_out += 1;
            return;
        }
        let elapsed_micros = i32::try_from(elapsed).unwrap_or(i32::MAX);
        let tick =
            (kept.begun.started_at_micros + i64::from(elapsed_micros)) * TICKS_PER_MICROSECOND;
        let tick = match kept.steps.last() {
            Some(last) => tick.max(last.tick + 1),
            None => tick,
        };
        kept.steps.push(RecordedStep {
            tick,
            activity,
            elapsed_micros,
            thread,
        });
    }

    /// Adds to what the request gives.
    pub fn tell(&self, name: String, value: String) {
        self.0.kept.lock().tell(name, value);
    }

    /// Ends the trace, and takes out what is recorded of it.
    pub fn end(&self) -> FinishedTrace {
        let duration = self.0.started.elapsed().as_micros();
        let mut kept = self.0.kept.lock();
        let left_out = kept.left_out;
        if left_out > 0
            && let Some(last) = kept.steps.last_mut()
        {
            last.activity = format!(
                "{} more steps, which the trace has no room for",
                left_out + 1
            );
        }
        let steps = std::mem::take(&mut kept.steps);
        FinishedTrace {
            begun: kept.begun.clone(),
            duration_micros: i32::try_from(duration).unwrap_or(i32::MAX),
            steps,
            bytes: kept.bytes,
        }
    }
}

impl RecordedParts {
    fn tell(&mut self, name: String, value: String) {
        let value = cut(value);
        if self.takes(ENTRY_BYTES + name.len() + value.len()) {
            self.begun.parameters.insert(name, value);
        }
    }

    /// Whether there is room for so many bytes more. They are then taken.
    fn takes(&mut self, bytes: usize) -> bool {
        let bytes = self.bytes + bytes;
        if bytes > BYTES_MAX || self.charge.resize(bytes).is_err() {
            return false;
        }
        self.bytes = bytes;
        true
    }
}

/// The text, or its beginning if it is long.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str("...");
    }
    text.shrink_to_fit();
    text
}

/// Notes a step of the request that this task works for, if it is traced.
pub fn note(activity: impl FnOnce() -> String) {
    let _ = CURRENT.try_with(|trace| trace.note(activity()));
}

/// Adds what the request of this task gives, by name and value, if it is traced.
pub fn tell(given: impl FnOnce() -> Vec<(String, String)>) {
    let _ = CURRENT.try_with(|trace| {
        for (name, value) in given() {
            trace.tell(name, value);
        }
    });
}

/// The trace of the request that this task works for.
pub fn current() -> Option<Trace> {
    CURRENT.try_with(Trace::clone).ok()
}

/// Work for another thread, which notes its steps in the trace of this task.
pub fn carried<R>(work: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let trace = current();
    move || match trace {
        Some(trace) => CURRENT.sync_scope(trace, work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use client_memory::MemoryBudget;

    use super::*;

    fn begun() -> RequestDescription {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        RequestDescription {
            id: Uuid::from_u128(7),
            request: "Execute CQL3 query",
            parameters: BTreeMap::from([("query".to_owned(), "SELECT".to_owned())]),
            client: address,
            coordinator: SocketAddr::new(address, 9042),
            started_at_micros: 1_000_000,
        }
    }

    fn activities(trace: &Trace) -> Vec<String> {
        let steps = trace.end().steps;
        steps.into_iter().map(|step| step.activity).collect()
    }

    #[tokio::test]
    async fn steps_are_noted_where_a_request_is_traced() {
        let trace = Trace::begin(begun(), &MemoryAccount::default());
        note(|| panic!("nothing is traced here"));
        let request = async {
            note(|| "parsed".to_owned());
            let work = carried(|| note(|| "read".to_owned()));
            tokio::task::spawn_blocking(work).await.unwrap();
            tell(|| vec![("page_size".to_owned(), "5".to_owned())]);
        };
        trace.scope(request).await;
        let ended = trace.end();
        let of: Vec<_> = ended.steps.iter().map(|step| &*step.activity).collect();
        assert_eq!(of, ["parsed", "read"]);
        assert!(ended.steps[0].tick < ended.steps[1].tick);
        assert!(ended.steps[0].tick >= 10_000_000);
        assert_eq!(ended.begun.parameters["page_size"], "5");
    }

    #[test]
    fn a_trace_has_bounds() {
        let trace = Trace::begin(begun(), &MemoryAccount::default());
        for _ in 0..2 * STEPS_MAX {
            trace.note("step".to_owned());
        }
        let kept = activities(&trace);
        assert_eq!(kept.len(), STEPS_MAX);
        assert!(
            kept[STEPS_MAX - 1].starts_with("513 more steps"),
            "{kept:?}"
        );

        let trace = Trace::begin(begun(), &MemoryAccount::default());
        for _ in 0..100 {
            trace.note("é".repeat(TEXT_BYTES_MAX));
        }
        let ended = trace.end();
        assert!(ended.bytes <= BYTES_MAX);
        assert!(ended.steps[0].activity.ends_with("é..."));
    }

    #[test]
    fn a_trace_is_charged_to_its_client() {
        let account = MemoryBudget::new(64 << 10).client().unwrap();
        let trace = Trace::begin(begun(), &account);
        for _ in 0..100 {
            trace.note("x".repeat(4 << 10));
        }
        assert!((8 << 10..=32 << 10).contains(&account.bytes()));
        drop(trace);
        assert_eq!(account.bytes(), 0);
    }
}
