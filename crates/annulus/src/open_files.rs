//! How many files and sockets a server may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is asked for where the system sets no bound.
const ENOUGH: u64 = 65_536;

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
}
