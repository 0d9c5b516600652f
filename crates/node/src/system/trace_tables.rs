//! The tables in which clients read the traces of their requests. A trace is there once its request
//! is answered.

use std::sync::Arc;

use query::statement_clock::timeuuid_at;
use storage::clock::{Clock, SystemClock};
use traces::FinishedTrace;
use uuid::Uuid;
use value::Value;

use super::VirtualTableInputs;
use super::definition::VirtualTable;
use super::record::{NamedValues, record, text, text_map};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system_traces.sessions (
            session_id uuid PRIMARY KEY,
            client inet,
            command text,
            coordinator inet,
            coordinator_port int,
            duration int,
            parameters map<text, text>,
            request text,
            started_at timestamp)",
        records: sessions,
    },
    VirtualTable {
        cql: "CREATE TABLE system_traces.events (
            session_id uuid,
            event_id timeuuid,
            activity text,
            source inet,
            source_elapsed int,
            source_port int,
            thread text,
            PRIMARY KEY (session_id, event_id))",
        records: events,
    },
];

/// The traces that the query wants: one if it names a session, or all.
fn wanted(source: &VirtualTableInputs<'_>) -> Vec<Arc<FinishedTrace>> {
    let id = match source.wanted.key {
        Some([id]) => Uuid::from_slice(id).ok(),
        _ => None,
    };
    source.system.traces.at(SystemClock.now_micros(), id)
}

fn sessions(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let sessions = wanted(source).into_iter().map(|ended| {
        let begun = &ended.begun;
        record([
            ("session_id", Value::Uuid(begun.id)),
            ("client", Value::Inet(begun.client)),
            ("command", text("QUERY")),
            ("coordinator", Value::Inet(begun.coordinator.ip())),
            (
                "coordinator_port",
                Value::Int(i32::from(begun.coordinator.port())),
            ),
            ("duration", Value::Int(ended.duration_micros)),
            ("parameters", text_map(&begun.parameters)),
            ("request", text(begun.request)),
            (
                "started_at",
                Value::Timestamp(begun.started_at_micros / 1000),
            ),
        ])
    });
    sessions.collect()
}

fn events(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let mut records = Vec::new();
    for ended in wanted(source) {
        let begun = &ended.begun;
        let port = Value::Int(i32::from(begun.coordinator.port()));
        records.extend(ended.steps.iter().map(|step| {
            record([
                ("session_id", Value::Uuid(begun.id)),
                ("event_id", Value::Timeuuid(timeuuid_at(step.tick))),
                ("activity", text(&step.activity)),
                ("source", Value::Inet(begun.coordinator.ip())),
                ("source_elapsed", Value::Int(step.elapsed_micros)),
                ("source_port", port.clone()),
                ("thread", text(&step.thread)),
            ])
        }));
    }
    records
}
