//! The times that statements of clients may take by default.

use std::time::Duration;

/// The times that statements of clients may take if they give none themselves (`USING TIMEOUT`).
/// `None` is any time. Changes of the schema and TRUNCATE have no limit, nor have statements of the
/// process itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultTimeouts {
    /// A page of a SELECT that names its partitions.
    pub read: Option<Duration>,
    /// A page of any other SELECT. An aggregate reads many pages within.
    pub range: Option<Duration>,
    /// A write, until the committer begins it.
    pub write: Option<Duration>,
}

impl Default for DefaultTimeouts {
    fn default() -> Self {
        DefaultTimeouts {
            read: Some(Duration::from_secs(5)),
            range: Some(Duration::from_secs(10)),
            write: Some(Duration::from_secs(2)),
        }
    }
}
