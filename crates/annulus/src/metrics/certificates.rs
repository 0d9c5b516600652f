//! The ends of the certificates in use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_server::MetricsRegistry;
use net::tls::{Pem, TlsClients, TlsOptions, first_end};

/// The ends of the certificates in use, by file. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub struct CertificateEnds(Arc<Mutex<BTreeMap<String, i64>>>);

impl CertificateEnds {
    /// Notes that the certificates of a file are in use from now on. Those of a file that are in
    /// use already are replaced.
    pub fn note(&self, certificates: &Pem) {
        if let Some(end) = first_end(certificates) {
            self.ends().insert(certificates.origin.clone(), end);
        }
    }

    /// Notes the certificates of a listener, and those of the authorities that sign its clients'.
    pub fn note_options(&self, options: &TlsOptions) {
        self.note(&options.certificates);
        if let TlsClients::SignedBy(authorities) = &options.clients {
            self.note(authorities);
        }
    }

    /// Forgets all files.
    pub fn clear(&self) {
        self.ends().clear();
    }

    /// Shows the ends among the metrics.
    pub fn show(&self, metrics: &MetricsRegistry) {
        let ends = self.clone();
        let read = move || {
            let ends = ends.ends();
            let ends = ends.iter();
            ends.map(|(file, end)| (vec![file.clone()], *end as f64))
                .collect::<Vec<_>>()
        };
        metrics.show_gauge_values(
            "annulus_certificate_expiry_timestamp_seconds",
            "The end of the certificate of a file in use that ends first",
            &["file"],
            Arc::new(read),
        );
    }

    fn ends(&self) -> MutexGuard<'_, BTreeMap<String, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_certificate_has_no_end() {
        let (metrics, ends) = (MetricsRegistry::default(), CertificateEnds::default());
        ends.show(&metrics);
        ends.note(&Pem {
            bytes: Arc::from(&b"no certificate"[..]),
            origin: "file".to_owned(),
        });
        assert_eq!(metrics.text().unwrap(), "");
    }

    #[test]
    fn a_renewed_certificate_replaces_the_former_one() {
        let (metrics, ends) = (MetricsRegistry::default(), CertificateEnds::default());
        ends.show(&metrics);
        let mut shown = Vec::new();
        for year in [2030, 2031] {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut certificate = rcgen::CertificateParams::new(vec!["host".to_owned()]).unwrap();
            certificate.not_after = rcgen::date_time_ymd(year, 1, 1);
            let certificate = certificate.self_signed(&key).unwrap();
            ends.note(&Pem {
                bytes: certificate.pem().into_bytes().into(),
                origin: "server.crt".to_owned(),
            });
            shown.push(metrics.text().unwrap());
        }
        let series = r#"annulus_certificate_expiry_timestamp_seconds{file="server.crt"}"#;
        assert!(
            shown[0].contains(&format!("{series} 1893456000")),
            "{shown:?}"
        );
        assert!(
            shown[1].contains(&format!("{series} 1924992000")),
            "{shown:?}"
        );
    }
}
