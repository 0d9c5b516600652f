//! The configuration of TLS from a folder that `annulus certificate` has made.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The server's authority is trusted. `with_own`: the client shows its own certificate, too.
pub fn trusting(folder: &Path, with_own: bool) -> Arc<ClientConfig> {
    let certificate =
        |name| CertificateDer::from_pem_file(folder.join(name)).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).expect("an authority");
    let builder = ClientConfig::builder().with_root_certificates(roots);
    Arc::new(if with_own {
        let key = PrivateKeyDer::from_pem_file(folder.join("app.key")).expect("a key");
        let own = vec![certificate("app.pem")];
        let config = builder.with_client_auth_cert(own, key);
        config.expect("a client's certificate")
    } else {
        builder.with_no_client_auth()
    })
}

/// No authority is trusted.
pub fn trusting_nobody() -> Arc<ClientConfig> {
    let builder = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
    Arc::new(builder.with_no_client_auth())
}
