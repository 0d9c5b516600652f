//! The id of a request over HTTP, by which a client, the log and traces name it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of an id that a client gives.
const BYTES_MAX: usize = 128;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of a request over HTTP. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The id that a client gives: 1 to 128 visible characters of ASCII. `None` for another text.
    #[must_use]
    pub fn of(text: &str) -> Option<RequestId> {
        let is_id = (1..=BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_id.then(|| RequestId(text.into()))
    }

    /// An id that no other request to this process has, and hardly one to another.
    #[must_use]
    pub fn unique() -> RequestId {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        static REQUESTS: AtomicU64 = AtomicU64::new(1);
        let request = REQUESTS.fetch_add(1, Ordering::Relaxed);
        RequestId(format!("{:016x}-{request:x}", *PROCESS).into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the request that this task works for.
    #[must_use]
    pub fn current() -> Option<RequestId> {
        CURRENT.try_with(RequestId::clone).ok()
    }

    /// Does the work of the request with this id.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// Does work for the request with this id, or for none. A task that is started for a request
    /// goes on with its id so.
    pub async fn carried<F: Future>(id: Option<RequestId>, work: F) -> F::Output {
        match id {
            Some(id) => CURRENT.scope(id, work).await,
            None => work.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients_are_visible_and_short() {
        assert_eq!(RequestId::of("abc-1").unwrap().as_str(), "abc-1");
        assert!(RequestId::of(&"x".repeat(BYTES_MAX)).is_some());
        for wrong in ["", "a b", "a\n", "é", &"x".repeat(BYTES_MAX + 1)] {
            assert_eq!(RequestId::of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn made_ids_differ_and_are_ids() {
        let (one, two) = (RequestId::unique(), RequestId::unique());
        assert_ne!(one, two);
        assert_eq!(RequestId::of(one.as_str()), Some(one));
    }

    #[tokio::test]
    async fn the_id_belongs_to_the_work_of_its_request() {
        assert_eq!(RequestId::current(), None);
        let id = RequestId::unique();
        let seen = id.clone().scope(async { RequestId::current() }).await;
        assert_eq!(seen, Some(id.clone()));
        let task = tokio::spawn(RequestId::carried(Some(id.clone()), async {
            RequestId::current()
        }));
        assert_eq!(task.await.unwrap(), Some(id));
        assert_eq!(RequestId::current(), None);
        assert_eq!(RequestId::carried(None, async { 1 }).await, 1);
    }
}
