//! The task that shows a reader that lags its log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tasks::{Task, TaskRegistry};

use crate::identity::TableIdentity;
use crate::long_work;

/// Shows the progress of a log reader, from its start until it has read what was in the log at that
/// time. If the reader starts again meanwhile, the task goes on.
pub(crate) struct CatchUp {
    work: TaskRegistry,
    table: TableIdentity,
    reader: String,
    open: Mutex<Option<RunningCatchUp>>,
}

struct RunningCatchUp {
    task: Task,
    /// The time since the epoch from which the reader reads.
    from: Duration,
    /// The time since the epoch at which the reader has caught up.
    to: Duration,
}

impl CatchUp {
    /// The catching up of a reader that has not started.
    pub(crate) fn new(work: TaskRegistry, table: &TableIdentity, reader: &str) -> CatchUp {
        CatchUp {
            work,
            table: table.clone(),
            reader: reader.to_owned(),
            open: Mutex::new(None),
        }
    }

    /// Notes that the log is read from `from` on, and that the present is `now`. A task that is
    /// open goes on. If the reader begins before the beginning of that task, the task has a longer
    /// way to go.
    pub(crate) fn begin(&self, from: Duration, now: Duration) {
        let mut open = self.open();
        match &mut *open {
            Some(open) if from >= open.from => {}
            Some(open) => {
                open.from = from;
                open.task.set_completed(0);
                open.task.set_total(open.to.saturating_sub(from).as_secs());
            }
            None => {
                let behind_s = now.saturating_sub(from).as_secs();
                let spec = long_work::catch_up(&self.table, &self.reader, behind_s);
                *open = Some(RunningCatchUp {
                    task: self.work.start(spec),
                    from,
                    to: now,
                });
            }
        }
    }

    /// Notes that all streams have been read up to that time.
    pub(crate) fn reached(&self, time: Duration) {
        let mut open = self.open();
        let Some(RunningCatchUp { task, from, to }) = &*open else {
            return;
        };
        task.set_completed(time.min(*to).saturating_sub(*from).as_secs());
        if time >= *to
            && let Some(RunningCatchUp { task, .. }) = open.take()
        {
            task.done();
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<RunningCatchUp>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The catching up of a reader that reads nothing.
    #[cfg(test)]
    pub(crate) fn of_nothing() -> CatchUp {
        let table = TableIdentity {
            keyspace: "ks".into(),
            table: "t".into(),
            id: uuid::Uuid::from_u128(1),
        };
        CatchUp::new(TaskRegistry::default(), &table, "fine")
    }
}

#[cfg(test)]
mod tests {
    use tasks::CompletionState;

    use super::*;

    #[test]
    fn it_is_seen_until_it_has_caught_up_however_often_it_starts() {
        const S: Duration = Duration::from_secs(1);
        let catch_up = CatchUp::of_nothing();
        let list = || catch_up.work.list(true);
        catch_up.begin(100 * S, 700 * S);
        let seen = &list()[0];
        assert_eq!(seen.scope.level(), "table");
        assert_eq!(seen.scope.entity.as_deref(), Some("fine"));
        assert_eq!(seen.progress_total, Some(600));
        catch_up.reached(400 * S);
        catch_up.begin(390 * S, 800 * S);
        catch_up.reached(400 * S);
        let seen = &list()[0];
        assert_eq!((list().len(), seen.progress_completed), (1, 300));
        assert_eq!(seen.state, CompletionState::Running);
        catch_up.reached(701 * S);
        catch_up.reached(702 * S);
        let seen = &list()[0];
        assert_eq!(
            (seen.state, seen.progress_completed),
            (CompletionState::Done, 600)
        );
        catch_up.begin(700 * S, 900 * S);
        assert_eq!(list().len(), 2);
        // An index needs more of the log than was being read.
        catch_up.begin(300 * S, 950 * S);
        let seen = &list()[1];
        assert_eq!((list().len(), seen.state), (2, CompletionState::Running));
        assert_eq!(
            (seen.progress_completed, seen.progress_total),
            (0, Some(600))
        );
        catch_up.reached(900 * S);
        assert_eq!(list()[1].state, CompletionState::Done);
    }
}
