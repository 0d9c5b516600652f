//! How many files and sockets a server may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is asked for where the system sets no bound.
const ENOUGH: u64 = 65_536;

/// Of the files that a process may open, one in so many are clients' at most; the others are those of rows and indexes.
const CLIENTS_PART: u64 = 2;

/// Sockets of a connection through a gateway.
const SOCKETS_OF_GATEWAY: u64 = 2;

/// Raises the limit of open files as far as the system lets the process do so itself.
///
/// Shells and service managers start programs with room for some thousand, out of regard for old ones that cannot count
/// further. A server has a socket or two for each client, and without room for another one it can neither take a client nor
/// ask an index service, which it would then take for dead.
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

/// Makes bounds of connections fit the limit of open files, once that is raised: a connection too many is refused or waits
/// then, and does not take the file that a table is to be written to.
pub fn fit_connections<'a>(wanted: impl IntoIterator<Item = &'a mut usize>) {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return;
    };
    if let Some(connections) = fit(limit, wanted) {
        tell_of_few(limit, connections);
    }
}

/// The bound of a gateway's connections, likewise: each has a socket of its client and one of its node. `beside_store`: an index
/// service in the process has its own part of the files.
pub fn fit_gateway_connections(connections: &mut usize, beside_store: bool) {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return;
    };
    let services = 1 + u64::from(beside_store);
    if let Some(connections) = fit(limit / SOCKETS_OF_GATEWAY / services, [connections]) {
        tell_of_few(limit, connections);
    }
}

fn tell_of_few(limit: u64, connections: usize) {
    tracing::info!(
        limit,
        connections,
        "the limit of open files has room for fewer connections than the settings; raise it (LimitNOFILE, ulimit -n)"
    );
}

/// How many connections there may be in all, if that is fewer than wanted; each bound has its part of it then.
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
