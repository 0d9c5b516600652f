//! Opening of the gateway's own session. It is tried until the cluster can be reached and has the
//! tables that the gateway needs.

use std::time::Duration;

use tokio::sync::watch;

use super::cluster::{ClusterError, InternalSession};
use super::options::InternalSessionOptions;
use super::tables;

/// The pause after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Connects and makes the tables that are missing. Tries until it succeeds, and puts the error of
/// the last attempt into `trouble`.
pub(super) async fn connect(
    options: &InternalSessionOptions,
    trouble: &watch::Sender<Option<String>>,
) -> InternalSession {
    let mut told = None;
    loop {
        let error = match connect_once(options).await {
            Ok(cluster) => {
                trouble.send_replace(None);
                return cluster;
            }
            Err(error) => error.to_string(),
        };
        if told.as_ref() != Some(&error) {
            tracing::warn!(
                error,
                "the definitions of vector indexes cannot be read: trying again"
            );
            trouble.send_replace(Some(error.clone()));
            told = Some(error);
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

async fn connect_once(options: &InternalSessionOptions) -> Result<InternalSession, ClusterError> {
    let cluster = InternalSession::connect(options).await?;
    tables::create(&cluster, options).await?;
    Ok(cluster)
}
