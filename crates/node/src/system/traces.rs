//! The tables for traces of requests. Requests are not traced, so both stay empty.

use super::definition::{Declaration, none};

pub(super) const TABLES: &[Declaration] = &[
    Declaration {
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
        records: none,
    },
    Declaration {
        cql: "CREATE TABLE system_traces.events (
            session_id uuid,
            event_id timeuuid,
            activity text,
            source inet,
            source_elapsed int,
            source_port int,
            thread text,
            PRIMARY KEY (session_id, event_id))",
        records: none,
    },
];
