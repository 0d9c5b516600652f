//! The shares of a process's memory that go to each kind of use.

/// The most bytes of requests and answers of CQL clients.
const CQL_BYTES_MAX: u64 = 256 << 20;

/// In a process with little memory, CQL clients may pin so many parts of [`PARTS`]. One client may
/// pin half of that. At a limit of 1 GiB it is a batch of 64 MiB, the largest that is taken, and
/// what surrounds its values.
const CQL_PARTS: u64 = 5;

/// The most bytes of each other use.
const OTHER_BYTES_MAX: u64 = 64 << 20;

/// The parts that the limit of a process has. Each other use has one of them in a process with
/// little memory.
const PARTS: u64 = 32;

/// The shares of the memory that clients can pin. No use can take the share of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShares {
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

impl MemoryShares {
    /// The shares of a process that may take this many bytes.
    pub fn of_limit(limit_bytes: u64) -> MemoryShares {
        let part = limit_bytes / PARTS;
        let other = part.min(OTHER_BYTES_MAX) as usize;
        MemoryShares {
            cql: CQL_PARTS.saturating_mul(part).min(CQL_BYTES_MAX) as usize,
            http_bodies: other,
            http_answers: other,
            prepared: other,
            internal: other,
        }
    }
}

/// The shares of a process with memory enough.
impl Default for MemoryShares {
    fn default() -> MemoryShares {
        MemoryShares::of_limit(u64::MAX)
    }
}
