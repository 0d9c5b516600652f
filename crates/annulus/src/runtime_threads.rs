//! The names of the threads of a runtime. Those that serve connections have a number, which lines
//! of syslog name as their shard.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A source of names for the threads of a runtime with so many workers. The runtime starts its
/// workers first, and threads for work that blocks when there is some.
pub fn names(workers: usize) -> impl Fn() -> String + Send + Sync + 'static {
    let started = AtomicUsize::new(0);
    move || match started.fetch_add(1, Ordering::Relaxed) {
        number if number < workers => format!("worker-{number}"),
        _ => "blocking".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workers_have_numbers() {
        let names = names(2);
        let first: Vec<String> = (0..4).map(|_| names()).collect();
        assert_eq!(first, ["worker-0", "worker-1", "blocking", "blocking"]);
    }
}
