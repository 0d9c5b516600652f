//! The limit of open files and sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit to request if the system sets no bound.
const ENOUGH: u64 = 65_536;

/// The part of the open files that clients may have, as one in this many. The others are for rows
/// and indexes.
const CLIENTS_PART: u64 = 2;

/// The number of sockets of a connection through a gateway.
const SOCKETS_OF_GATEWAY: u64 = 2;

/// Raises the limit of open files as far as the system allows the process.
///
/// Shells and service managers start programs with a limit of some thousand, for the sake of old
/// programs that can't handle more. A server has one or two sockets for each client. Without a free
/// one it can neither accept a client nor connect to an index service, which it would then take for
/// down.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let current = match (limit.current, limit.maximum) {
        (None, None) => return,
        (current, None) => current.max(Some(ENOUGH)),
        (_, maximum) => maximum,
    };
    let raised = Rlimit { current, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = ?limit.current, "the limit of open files can't be raised");
    }
}

/// Lowers limits of connections so that they fit the limit of open files. Call it after
/// [`raise_limit`]. A connection too many is then refused or waits, and does not take the file that
/// a table needs.
pub fn fit_connections<'a>(wanted: impl IntoIterator<Item = &'a mut usize>) {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return;
    };
    if let Some(connections) = fit(limit, wanted) {
        warn_of_low_limit(limit, connections);
    }
}

/// Lowers the limit of a gateway's connections so that it fits the limit of open files. Each
/// connection has a socket of its client and one of its node. With `beside_store` an index service
/// in the process has its own part of the files.
pub fn fit_gateway_connections(connections: &mut usize, beside_store: bool) {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return;
    };
    let services = 1 + u64::from(beside_store);
    if let Some(connections) = fit(limit / SOCKETS_OF_GATEWAY / services, [connections]) {
        warn_of_low_limit(limit, connections);
    }
}

fn warn_of_low_limit(limit: u64, connections: usize) {
    tracing::info!(
        limit,
        connections,
        "the limit of open files has room for fewer connections than the settings; raise it (LimitNOFILE, ulimit -n)"
    );
}

/// Lowers the limits so that they fit, each in proportion. Returns their sum, or `None` if they fit
/// as they are.
fn fit<'a>(limit: u64, wanted: impl IntoIterator<Item = &'a mut usize>) -> Option<usize> {
    let mut wanted: Vec<&mut usize> = wanted.into_iter().collect();
    let room = limit / CLIENTS_PART;
    let all: u64 = wanted.iter().map(|connections| **connections as u64).sum();
    if all <= room {
        return None;
    }
    for connections in &mut wanted {
        let part = **connections as u64 * room / all;
        **connections = usize::try_from(part).unwrap_or(usize::MAX).max(1);
    }
    Some(wanted.iter().map(|connections| **connections).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_the_system_allows() {
        let before = getrlimit(Resource::Nofile);
        let low = Rlimit {
            current: Some(256),
            ..before
        };
        setrlimit(Resource::Nofile, low).unwrap();
        raise_limit();
        let raised = getrlimit(Resource::Nofile);
        assert_eq!(raised.maximum, before.maximum);
        assert_eq!(raised.current, before.maximum.or(Some(ENOUGH)));
    }

    #[test]
    fn connections_leave_files_for_rows_and_indexes() {
        let fitted = |limit, mut wanted: [usize; 2]| {
            fit(limit, &mut wanted);
            wanted
        };
        let wanted = [10_000, 16_384];
        assert_eq!(fitted(65_536, wanted), wanted);
        let [cql, http] = fitted(1024, wanted);
        assert_eq!((cql, http), (194, 317));
        assert_eq!(fitted(1, wanted), [1, 1]);
    }
}
