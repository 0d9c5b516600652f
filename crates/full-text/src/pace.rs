//! The pace of work in the background, for code that can't be given it as an argument.
//!
//! A merge of segments runs inside tantivy, which calls only the writers of a directory. So the
//! thread that merges has its pace in a variable of its own, and the writers, which run on the
//! thread too, ask there.

use std::cell::Cell;

/// Whether work is to go on. It may block for a while.
pub(crate) type PaceCheck<'a> = &'a (dyn Fn() -> bool + Sync);

thread_local! {
    static PACE: Cell<Option<PaceCheck<'static>>> = const { Cell::new(None) };
}

/// Puts the former pace back when it is dropped, also by a panic.
struct FormerPace(Option<PaceCheck<'static>>);

impl Drop for FormerPace {
    fn drop(&mut self) {
        PACE.set(self.0);
    }
}

/// Does work on this thread at a pace.
pub(crate) fn with_pace<T>(pace: PaceCheck<'_>, work: impl FnOnce() -> T) -> T {
    // SAFETY: only the lifetime changes. The variable is of this thread and holds the reference no
    // longer than this call lasts: `_former` takes it out, whatever `work` does.
    let pace = unsafe { std::mem::transmute::<PaceCheck<'_>, PaceCheck<'static>>(pace) };
    let _former = FormerPace(PACE.replace(Some(pace)));
    work()
}

/// Whether the work of this thread is to go on: yes, where it has no pace.
pub(crate) fn goes_on() -> bool {
    PACE.get().is_none_or(|pace| pace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_holds_for_its_work_and_no_longer() {
        assert!(goes_on());
        let inner = with_pace(&|| false, || {
            assert!(!goes_on());
            with_pace(&|| true, goes_on)
        });
        assert!(inner);
        let panicked = std::panic::catch_unwind(|| with_pace(&|| false, || assert!(goes_on())));
        assert!(panicked.is_err());
        assert!(goes_on());
    }
}
