//! Connects with TLS and a login, and binds a vector.

use std::env::var;
use std::error::Error;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use scylla::client::session::TlsContext;
use scylla::client::session_builder::SessionBuilder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut authorities = RootCertStore::empty();
    authorities.add(CertificateDer::from_pem_file("certs/ca.pem")?)?;
    let tls = ClientConfig::builder()
        .with_root_certificates(authorities)
        .with_no_client_auth();
    let server = var("ANNULUS_CQL").unwrap_or_else(|_| "127.0.0.1:9042".to_owned());
    let session = SessionBuilder::new()
        .known_node(server)
        .tls_context(Some(TlsContext::Rustls023(Arc::new(tls))))
        .user("app", var("APP_PASSWORD")?)
        .build()
        .await?;
    let nearest = "SELECT name FROM shop.products ORDER BY v ANN OF ? LIMIT 2";
    let nearest = session.prepare(nearest).await?;
    let vector = vec![1.0_f32, 0.0, 0.0];
    let rows = session.execute_unpaged(&nearest, (vector,)).await?;
    for row in rows.into_rows_result()?.rows::<(String,)>()? {
        println!("{}", row?.0);
    }
    Ok(())
}
