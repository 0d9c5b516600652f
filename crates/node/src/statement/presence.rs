//! The presence of the client of a statement.
//!
//! A client that has hung up gets no answer, so reads for it end soon after. Its writes are carried
//! out: it may have sent them and not waited for more.

use cql::error::CqlError;
use tokio_util::sync::CancellationToken;

/// Whether the client of a statement is still connected. By default the statement is the process's
/// own and has no client. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ClientPresence(Option<CancellationToken>);

impl ClientPresence {
    /// The presence of a client that has just connected.
    pub fn of_client() -> ClientPresence {
        ClientPresence(Some(CancellationToken::new()))
    }

    /// Whether a client has sent the statement.
    pub(crate) fn is_of_client(&self) -> bool {
        self.0.is_some()
    }

    /// Notes that the client has hung up.
    pub fn end(&self) {
        if let Some(hung_up) = &self.0 {
            hung_up.cancel();
        }
    }

    /// Checks that there is somebody to answer.
    ///
    /// # Errors
    /// If the client has hung up.
    pub(crate) fn check(&self) -> Result<(), CqlError> {
        match &self.0 {
            Some(hung_up) if hung_up.is_cancelled() => Err(hung_up_error()),
            _ => Ok(()),
        }
    }

    /// Does some work for as long as the client is connected.
    ///
    /// # Errors
    /// Those of the work, and one that the client has hung up.
    pub(crate) async fn during<T>(
        &self,
        work: impl Future<Output = Result<T, CqlError>>,
    ) -> Result<T, CqlError> {
        let Some(hung_up) = &self.0 else {
            return work.await;
        };
        tokio::select! {
            biased;
            done = work => done,
            () = hung_up.cancelled() => Err(hung_up_error()),
        }
    }
}

/// The error of a statement that ends with its client. It reaches only the audit log.
fn hung_up_error() -> CqlError {
    CqlError::server("the client has hung up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_ends_with_the_client_that_it_is_for() {
        let client = ClientPresence::of_client();
        assert_eq!(client.during(async { Ok(1) }).await, Ok(1));
        assert_eq!(client.check(), Ok(()));
        let of_request = client.clone();
        let never = of_request.during(std::future::pending::<Result<(), CqlError>>());
        let (ended, ()) = tokio::join!(never, async { client.end() });
        assert!(ended.is_err());
        assert!(of_request.check().is_err());
    }

    #[tokio::test]
    async fn the_work_of_the_process_itself_has_no_client_to_end_with() {
        let own = ClientPresence::default();
        own.end();
        assert_eq!(own.check(), Ok(()));
        assert_eq!(own.during(async { Ok(1) }).await, Ok(1));
    }
}
