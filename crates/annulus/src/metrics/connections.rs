//! The connections of clients, by protocol.

use std::sync::Arc;

use http_server::{HttpTraffic, MetricsRegistry};

/// The protocols, as labels show them.
const CQL: &str = "cql";
const HTTP: &str = "http";

/// The connections of CQL clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqlConnections {
    /// Those that are open.
    pub open: u64,
    /// Those that were accepted.
    pub opened: u64,
    /// Those that were refused, as there were too many or there was no memory for them.
    pub full: u64,
    /// Those that had not begun, and gave way to others.
    pub gave_way: u64,
}

/// Shows the connections of HTTP clients, and those of CQL clients where there are any.
pub fn show_connections(
    metrics: &MetricsRegistry,
    cql: Option<Arc<dyn Fn() -> CqlConnections + Send + Sync>>,
) {
    let of_http = HttpTraffic::of_process();
    let of_cql = cql.clone();
    let open = move || {
        let cql = of_cql.iter().map(|read| (vec![CQL], read().open));
        let http = (vec![HTTP], of_http.open_connections());
        cql.chain([http]).collect::<Vec<_>>()
    };
    metrics.show_gauge(
        "annulus_connection_open",
        "Connections of clients that are open",
        &["protocol"],
        Arc::new(open),
    );
    let of_cql = cql.clone();
    let opened = move || {
        let cql = of_cql.iter().map(|read| (vec![CQL], read().opened));
        let http = (vec![HTTP], of_http.opened_connections());
        cql.chain([http]).collect::<Vec<_>>()
    };
    metrics.show_counter(
        "annulus_connection_opened_total",
        "Connections of clients that were accepted",
        &["protocol"],
        Arc::new(opened),
    );
    let refused = move || {
        let cql = cql.iter().flat_map(|read| {
            let connections = read();
            [
                (vec![CQL, "full"], connections.full),
                (vec![CQL, "gave_way"], connections.gave_way),
            ]
        });
        let http = (vec![HTTP, "gave_way"], of_http.connections_given_way());
        cql.chain([http]).collect::<Vec<_>>()
    };
    metrics.show_counter(
        "annulus_connection_refused_total",
        "Connections of clients that were refused or had to give way to others",
        &["protocol", "reason"],
        Arc::new(refused),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shown_by_protocol() {
        let metrics = MetricsRegistry::default();
        let read = || CqlConnections {
            open: 1,
            opened: 5,
            full: 2,
            gave_way: 3,
        };
        show_connections(&metrics, Some(Arc::new(read)));
        let text = metrics.text().unwrap();
        for line in [
            r#"annulus_connection_open{protocol="cql"} 1"#,
            r#"annulus_connection_opened_total{protocol="cql"} 5"#,
            r#"annulus_connection_refused_total{protocol="cql",reason="full"} 2"#,
            r#"annulus_connection_refused_total{protocol="cql",reason="gave_way"} 3"#,
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
        assert!(
            text.contains(r#"annulus_connection_open{protocol="http"}"#),
            "{text}"
        );
    }
}
