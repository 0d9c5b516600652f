//! Core dumps, which would have the passwords of clients.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Switches core dumps of this process off, where clients log in to it.
///
/// The limit by itself does not bind a program that the kernel hands dumps to, so the process is
/// also marked as one that is not dumped. No debugger of its own user can then look into it either.
pub fn switch_off() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let limited = setrlimit(Resource::Core, none);
    let marked = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(marked) {
        tracing::warn!(%error, "core dumps can't be switched off; they would have passwords of clients");
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{dumpable_behavior, getrlimit};

    use super::*;

    #[test]
    fn a_process_is_not_dumped_any_more() {
        switch_off();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
    }
}
