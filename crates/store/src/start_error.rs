//! Errors of starting the service or reloading its options.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use net::tls::CertificateError;

/// The reason why the service can't start or can't take over new options.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address of a listener is in use, or does not belong to this machine.
    #[error("the HTTP API can't listen on {address}: {source}")]
    Listen {
        /// The address, as configured.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory for the files of indexes can't be made or written to.
    #[error("indexes can't keep vectors in files in {}: {source}", directory.display())]
    IndexDirectory {
        /// The directory, as configured.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The certificates or the key of a listener can't be used.
    #[error("the HTTP API can't use its certificates: {0}")]
    Certificates(CertificateError),
    /// The authorities for the database's certificates can't be read.
    #[error("the database's certificates can't be checked: {0}")]
    DatabaseAuthorities(CertificateError),
}
