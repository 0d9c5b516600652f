//! Where a gateway finds the index services: settings by the names of ScyllaDB's own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use store_api::{Client, ClientOptions, Zones};

use crate::exit::Failure;

/// Index services. All is optional; without any, queries for neighbours are answered that vector search is disabled.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct VectorStores {
    /// Index services to ask for nearest neighbours, as http://host:port or https://host:port, separated by commas
    #[arg(
        long = "vector-store-primary-uri",
        env = "ANNULUS_VECTOR_STORE_PRIMARY_URI",
        value_name = "URI",
        value_delimiter = ','
    )]
    pub primary_uri: Option<Vec<String>>,

    /// Index services to ask when none of the primary ones is available
    #[arg(
        long = "vector-store-secondary-uri",
        env = "ANNULUS_VECTOR_STORE_SECONDARY_URI",
        value_name = "URI",
        value_delimiter = ','
    )]
    pub secondary_uri: Option<Vec<String>>,

    /// PEM file of the authorities that sign the certificates of https services
    #[arg(
        long = "vector-store-truststore",
        env = "ANNULUS_VECTOR_STORE_TRUSTSTORE",
        value_name = "FILE"
    )]
    pub truststore: Option<PathBuf>,

    /// Milliseconds after which a service that gives no sign of life counts as down [default: 3000]
    #[arg(
        long = "vector-store-unreachable-node-detection-time-in-ms",
        env = "ANNULUS_VECTOR_STORE_UNREACHABLE_NODE_DETECTION_TIME_IN_MS",
        value_name = "MS"
    )]
    pub unreachable_node_detection_time_in_ms: Option<u32>,

    /// The zone that this gateway is in: index services of the same zone are asked first
    #[arg(
        long = "vector-store-own-zone",
        env = "ANNULUS_VECTOR_STORE_OWN_ZONE",
        value_name = "ZONE"
    )]
    pub own_zone: Option<String>,

    /// An index service and the zone that it is in; once for each service
    #[arg(
        long = "vector-store-zone",
        env = "ANNULUS_VECTOR_STORE_ZONES",
        value_name = "URI=ZONE",
        value_delimiter = ','
    )]
    #[serde(skip)]
    pub zone_pairs: Option<Vec<UriZone>>,

    /// The same from the file.
    #[arg(skip)]
    pub zones: Option<HashMap<String, String>>,
}

/// An index service and its zone, as they are written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriZone {
    uri: String,
    zone: String,
}

impl FromStr for UriZone {
    type Err = String;

    fn from_str(text: &str) -> Result<UriZone, String> {
        let (uri, zone) = text
            .split_once('=')
            .ok_or("write it as URI=ZONE, such as http://10.0.0.1:6080=a")?;
        Ok(UriZone {
            uri: uri.to_owned(),
            zone: zone.to_owned(),
        })
    }
}

impl VectorStores {
    /// These settings, and those of `other` where these are silent.
    pub fn or(self, other: VectorStores) -> VectorStores {
        VectorStores {
            primary_uri: self.primary_uri.or(other.primary_uri),
            secondary_uri: self.secondary_uri.or(other.secondary_uri),
            truststore: self.truststore.or(other.truststore),
            unreachable_node_detection_time_in_ms: self
                .unreachable_node_detection_time_in_ms
                .or(other.unreachable_node_detection_time_in_ms),
            own_zone: self.own_zone.or(other.own_zone),
            zone_pairs: self.zone_pairs.or(other.zone_pairs),
            zones: self.zones.or(other.zones),
        }
    }

    /// A client of these services.
    pub fn client(self) -> Result<Client, Failure> {
        let defaults = ClientOptions::default();
        let authorities = self.truststore.map(|file| {
            std::fs::read(&file).map_err(|error| {
                Failure::Configuration(format!(
                    "cannot read vector-store-truststore {}: {error}",
                    file.display()
                ))
            })
        });
        let of = match self.zone_pairs {
            Some(pairs) => pairs
                .into_iter()
                .map(|pair| (pair.uri, pair.zone))
                .collect(),
            None => self.zones.unwrap_or_default(),
        };
        let connect_timeout = self
            .unreachable_node_detection_time_in_ms
            .map_or(defaults.connect_timeout, |ms| {
                Duration::from_millis(ms.max(1).into())
            });
        Client::new(ClientOptions {
            base_uris: self.primary_uri.unwrap_or_default(),
            secondary_uris: self.secondary_uri.unwrap_or_default(),
            zones: Zones {
                own: self.own_zone,
                of,
            },
            certificate_authorities: authorities.transpose()?,
            connect_timeout,
            ..defaults
        })
        .map_err(|error| Failure::Configuration(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> VectorStores {
        toml::from_str(text).unwrap()
    }

    #[tokio::test]
    async fn services_are_named_with_and_without_zones() {
        let text = "primary-uri = [\"http://10.0.0.1:6080\"]\nown-zone = \"a\"\n[zones]\n\"http://10.0.0.1:6080\" = \"a\"";
        let flags = VectorStores {
            secondary_uri: Some(vec!["http://10.0.0.2:6080".to_owned()]),
            zone_pairs: Some(vec!["http://10.0.0.1:6080=b".parse().unwrap()]),
            ..VectorStores::default()
        };
        let both = flags.or(file(text));
        assert!(both.primary_uri.is_some() && both.own_zone.is_some());
        assert!(both.client().is_ok());
        assert!("http://10.0.0.1:6080".parse::<UriZone>().is_err());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (text, named) in [
            ("primary-uri = [\"10.0.0.1\"]", "10.0.0.1"),
            ("truststore = \"/nowhere/at/all\"", "/nowhere/at/all"),
        ] {
            let error = file(text).client().unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}
