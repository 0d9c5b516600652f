//! The id of a request over HTTP, or of a search of a gateway, by which a client, the logs of all
//! servers that work for it, and traces name it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// The most bytes of an id that a client gives.
const BYTES_MAX: usize = 128;

/// The header with the id of a request over HTTP, and of its answer.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of a request over HTTP, which `Display` writes. Clones are cheap, and an id that the
/// server makes takes no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(IdOrigin);

#[derive(Clone, Debug, PartialEq, Eq)]
enum IdOrigin {
    /// The client has given it.
    Client(Arc<str>),
    /// The server has made it: the number of the request.
    Server(u64),
}

impl RequestId {
    /// The id that a client gives: 1 to 128 visible characters of ASCII. `None` for another text.
    #[must_use]
    pub fn of(text: &str) -> Option<RequestId> {
        let is_id = (1..=BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_id.then(|| RequestId(IdOrigin::Client(text.into())))
    }

    /// An id that no other request to this process has, and hardly one to another.
    #[must_use]
    pub fn unique() -> RequestId {
        static REQUESTS: AtomicU64 = AtomicU64::new(1);
        RequestId(IdOrigin::Server(REQUESTS.fetch_add(1, Ordering::Relaxed)))
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

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// A number that other processes hardly have.
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        match &self.0 {
            IdOrigin::Client(text) => f.write_str(text),
            IdOrigin::Server(request) => write!(f, "{:016x}-{request:x}", *PROCESS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients_are_visible_and_short() {
        assert_eq!(RequestId::of("abc-1").unwrap().to_string(), "abc-1");
        assert!(RequestId::of(&"x".repeat(BYTES_MAX)).is_some());
        for wrong in ["", "a b", "a\n", "é", &"x".repeat(BYTES_MAX + 1)] {
            assert_eq!(RequestId::of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn made_ids_differ_and_are_ids() {
        let (one, two) = (RequestId::unique(), RequestId::unique());
        assert_ne!(one, two);
        let text = one.to_string();
        assert_ne!(text, two.to_string());
        assert!(RequestId::of(&text).is_some());
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
