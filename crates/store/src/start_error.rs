//! Why the service can't start, or can't become what it is told to be.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::tls::CertificateError;

/// Why the service can't start, or can't become what it is told to be.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address is in use, or not ours.
    #[error("the HTTP API can't listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// The directory for the files of indexes can't be made or written to.
    #[error("indexes can't keep vectors in files in {}: {source}", directory.display())]
    IndexDirectory {
        /// As configured.
        directory: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A listener can't prove itself.
    #[error("the HTTP API can't use its certificates: {0}")]
    Certificates(CertificateError),
    /// The authorities that are to sign the database's certificates can't be read.
    #[error("the database's certificates can't be checked: {0}")]
    DatabaseAuthorities(CertificateError),
}
