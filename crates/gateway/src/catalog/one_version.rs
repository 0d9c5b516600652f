//! Reads of several parts of the schema that belong together.
//!
//! Each part may come from another node, and each node has its own copy of the schema. While the
//! copies differ or change, the parts together can show a table that never was. A log that was just
//! dropped can look like a table without a log's columns, and one that was just made may not be
//! seen at all.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::cluster::ClusterError;

/// The pause before the nodes are queried again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Returns the result of `read`, once all nodes have one version of the schema from the beginning
/// of the read to its end. Reads again until that is so. `agreed` returns that version, `None`
/// while the nodes differ.
///
/// # Errors
/// The error of `read` under one version, and [`ClusterError::Unsettled`] if there was none by the
/// deadline.
pub(super) async fn of_one_version<T, E, A, R>(
    agreed: impl Fn() -> A,
    read: impl Fn() -> R,
    deadline: Instant,
) -> Result<T, E>
where
    E: From<ClusterError>,
    A: Future<Output = Result<Option<Uuid>, ClusterError>>,
    R: Future<Output = Result<T, E>>,
{
    loop {
        let before = agreed().await?;
        if before.is_some() {
            let read = read().await;
            if agreed().await? == before {
                return read;
            }
        }
        if Instant::now() >= deadline {
            return Err(ClusterError::Unsettled.into());
        }
        sleep(AGAIN_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::ready;

    use super::*;

    const LATER: Duration = Duration::from_secs(60);

    /// Reads while the nodes report these versions, one after another. Also returns the number of
    /// reads.
    async fn read(versions: &[Option<u128>], within: Duration) -> (Result<i32, ClusterError>, i32) {
        let versions = RefCell::new(versions.iter());
        let reads = Cell::new(0);
        let result = of_one_version(
            || {
                let said = versions.borrow_mut().next().expect("asked too often");
                ready(Ok(said.map(Uuid::from_u128)))
            },
            || {
                reads.set(reads.get() + 1);
                // The first finding does not hold.
                ready(match reads.get() {
                    1 => Err(ClusterError::Refused("another table".to_owned())),
                    number => Ok(number),
                })
            },
            Instant::now() + within,
        );
        (result.await, reads.get())
    }

    #[tokio::test]
    async fn a_read_during_a_schema_change_is_repeated() {
        let versions = [Some(1), Some(2), Some(2), Some(2)];
        assert_eq!(read(&versions, LATER).await, (Ok(2), 2));
        let versions = [Some(1), None, None, Some(2), Some(2)];
        assert_eq!(read(&versions, LATER).await, (Ok(2), 2));
    }

    #[tokio::test]
    async fn a_result_of_one_version_is_returned_even_if_it_is_an_error() {
        let refused = ClusterError::Refused("another table".to_owned());
        let versions = [None, Some(1), Some(1)];
        assert_eq!(read(&versions, LATER).await, (Err(refused), 1));
    }

    #[tokio::test]
    async fn nodes_that_do_not_come_to_agree_are_not_waited_for_for_ever() {
        let unsettled = Err(ClusterError::Unsettled);
        let versions = [None; 4];
        let within = 2 * AGAIN_AFTER;
        assert_eq!(read(&versions, within).await, (unsettled, 0));
    }
}
