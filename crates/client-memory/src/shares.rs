//! The shares of a process's memory that go to each kind of use.

/// The most bytes that clients may pin together: for answers, requests and prepared statements.
const CLIENTS_BYTES_MAX: u64 = 512 << 20;

/// In a process with little memory, clients may pin one part in this many.
const CLIENTS_PART: u64 = 4;

/// The shares of the memory that clients can pin. No use can take the share of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Requests and answers of CQL clients, in bytes.
    pub cql: usize,
    /// Bodies of HTTP requests, in bytes.
    pub http_bodies: usize,
    /// Answers of the HTTP API, in bytes.
    pub http_answers: usize,
    /// Prepared statements, in bytes.
    pub prepared: usize,
    /// Bytes for the process's own requests, which users must not starve: those of the index
    /// service, and rows of searches.
    pub internal: usize,
}

impl Shares {
    /// The shares of a process that may take this many bytes.
    pub fn of_limit(limit_bytes: u64) -> Shares {
        let all = (limit_bytes / CLIENTS_PART).min(CLIENTS_BYTES_MAX) as usize;
        let eighth = all / 8;
        Shares {
            cql: 4 * eighth,
            http_bodies: eighth,
            http_answers: eighth,
            prepared: eighth,
            internal: eighth,
        }
    }
}

/// The shares of a process with memory enough.
impl Default for Shares {
    fn default() -> Shares {
        Shares::of_limit(u64::MAX)
    }
}
