//! The index services of a gateway: settings under the names of ScyllaDB's own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use store_api::{ClientOptions, ServiceZones, StoreClient};

use crate::exit::{ProcessFailure, lacks};
use crate::settings_table::settings_table;

settings_table! {
    /// The settings about index services. All are optional. Without any, queries for neighbours get
    /// the error that vector search is disabled.
    pub struct VectorStores {
        /// Index services that find nearest neighbours, as http://host:port or https://host:port,
        /// separated by commas
        #[arg(
            long,
            env = "ANNULUS_VECTOR_STORE_PRIMARY_URI",
            value_name = "URI",
            value_delimiter = ','
        )]
        pub vector_store_primary_uri: Option<Vec<String>>,

        /// Index services to use if none of the primary ones is available
        #[arg(
            long,
            env = "ANNULUS_VECTOR_STORE_SECONDARY_URI",
            value_name = "URI",
            value_delimiter = ','
        )]
        pub vector_store_secondary_uri: Option<Vec<String>>,

        /// PEM file of the authorities that sign the certificates of https services
        #[arg(long, env = "ANNULUS_VECTOR_STORE_TRUSTSTORE", value_name = "FILE")]
        pub vector_store_truststore: Option<PathBuf>,

        /// Milliseconds of silence after which a service counts as down; less than the 10 s that a
        /// search may take [default: 3000]
        #[arg(
            long,
            env = "ANNULUS_VECTOR_STORE_UNREACHABLE_NODE_DETECTION_TIME_IN_MS",
            value_name = "MS"
        )]
        pub vector_store_unreachable_node_detection_time_in_ms: Option<u32>,

        /// Zone of this gateway: index services in the same zone are used first
        #[arg(long, env = "ANNULUS_VECTOR_STORE_OWN_ZONE", value_name = "ZONE")]
        pub vector_store_own_zone: Option<String>,

        /// An index service and its zone; give it once for each service
        ///
        /// In the file the services are a table: [vector-store-zones], with lines such as
        /// "http://10.0.0.1:6080" = "a".
        #[arg(
            long = "vector-store-zone",
            env = "ANNULUS_VECTOR_STORE_ZONES",
            value_name = "URI=ZONE",
            value_delimiter = ','
        )]
        #[serde(skip)]
        pub zone_pairs: Option<Vec<UriZone>>,

        /// The zones of index services in the file.
        #[arg(skip)]
        pub vector_store_zones: Option<HashMap<String, String>>,
    }
}

/// An index service and its zone, in their form on the command line.
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
    /// The name of a setting that is set. All of them are about services in other processes.
    pub fn any_set(&self) -> Option<&'static str> {
        let settings = [
            (
                "vector-store-primary-uri",
                self.vector_store_primary_uri.is_some(),
            ),
            (
                "vector-store-secondary-uri",
                self.vector_store_secondary_uri.is_some(),
            ),
            (
                "vector-store-truststore",
                self.vector_store_truststore.is_some(),
            ),
            (
                "vector-store-unreachable-node-detection-time-in-ms",
                self.vector_store_unreachable_node_detection_time_in_ms
                    .is_some(),
            ),
            (
                "vector-store-own-zone",
                self.vector_store_own_zone.is_some(),
            ),
            (
                "vector-store-zone",
                self.zone_pairs.is_some() || self.vector_store_zones.is_some(),
            ),
        ];
        let set = settings.into_iter().find(|(_, is_set)| *is_set);
        set.map(|(name, _)| name)
    }

    /// Makes a client of these services.
    ///
    /// # Errors
    /// If a setting can't be used. The error names it.
    pub fn client(self) -> Result<StoreClient, ProcessFailure> {
        let defaults = ClientOptions::default();
        let authorities = self.vector_store_truststore.map(|file| {
            std::fs::read(&file).map_err(|error| {
                ProcessFailure::Configuration(format!(
                    "cannot read vector-store-truststore {}: {error}",
                    file.display()
                ))
            })
        });
        let connect_timeout = match self.vector_store_unreachable_node_detection_time_in_ms {
            Some(ms) => detection_time(ms, defaults.request_timeout)?,
            None => defaults.connect_timeout,
        };
        let base_uris = trimmed(self.vector_store_primary_uri);
        let secondary_uris = trimmed(self.vector_store_secondary_uri);
        let of: HashMap<String, String> = match self.zone_pairs {
            Some(pairs) => pairs
                .into_iter()
                .map(|pair| (pair.uri, pair.zone))
                .collect(),
            None => self.vector_store_zones.unwrap_or_default(),
        };
        let of = of
            .into_iter()
            .map(|(uri, zone)| (uri.trim().to_owned(), zone.trim().to_owned()));
        let zones = ServiceZones {
            own: self.vector_store_own_zone,
            of: of.collect(),
        };
        check_zones(&zones, &[&base_uris[..], &secondary_uris[..]].concat())?;
        StoreClient::new(ClientOptions {
            base_uris,
            secondary_uris,
            zones,
            certificate_authorities: authorities.transpose()?,
            connect_timeout,
            ..defaults
        })
        .map_err(|error| ProcessFailure::Configuration(error.to_string()))
    }
}

/// The time that a service may be silent. It has to be shorter than a search may take: otherwise a
/// search that waits for a service that is down would end first, so that no one would notice, and
/// searches would still be sent to it.
fn detection_time(ms: u32, request_timeout: Duration) -> Result<Duration, ProcessFailure> {
    let time = Duration::from_millis(ms.into());
    if time.is_zero() || time >= request_timeout {
        return Err(ProcessFailure::Configuration(format!(
            "vector-store-unreachable-node-detection-time-in-ms {ms} is out of range: at least 1, and less than the {} ms \
             that a search may take",
            request_timeout.as_millis()
        )));
    }
    Ok(time)
}

/// Trims URIs, so that they can be compared with those of zones.
fn trimmed(uris: Option<Vec<String>>) -> Vec<String> {
    let uris = uris.unwrap_or_default();
    uris.iter().map(|uri| uri.trim().to_owned()).collect()
}

/// Refuses zones that name no service, as they would silently have no effect.
fn check_zones(zones: &ServiceZones, uris: &[String]) -> Result<(), ProcessFailure> {
    if let Some(stranger) = zones.of.keys().find(|uri| !uris.contains(uri)) {
        return Err(ProcessFailure::Configuration(format!(
            "vector-store-zone names {stranger}, which is none of the index services: write it as it stands in \
             vector-store-primary-uri or vector-store-secondary-uri"
        )));
    }
    match &zones.own {
        Some(_) if zones.of.is_empty() => Err(lacks("vector-store-own-zone", "vector-store-zone")),
        None if !zones.of.is_empty() => Err(lacks("vector-store-zone", "vector-store-own-zone")),
        // There may be no service in the gateway's own zone.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn file(text: &str) -> VectorStores {
        toml::from_str(text).unwrap()
    }

    #[tokio::test]
    async fn services_are_named_with_and_without_zones() {
        let text = "vector-store-primary-uri = [\"http://10.0.0.1:6080\", \" http://10.0.0.3:6080\"]\n\
                    vector-store-own-zone = \"a\"\n\
                    [vector-store-zones]\n\"http://10.0.0.1:6080\" = \"b\"\n\"http://10.0.0.3:6080\" = \"a\"";
        assert!(file(text).client().is_ok());
        let flags = VectorStores {
            vector_store_secondary_uri: Some(vec!["http://10.0.0.2:6080".to_owned()]),
            zone_pairs: Some(vec!["http://10.0.0.2:6080=a".parse().unwrap()]),
            ..VectorStores::default()
        };
        assert!(flags.or(file(text)).client().is_ok());
        assert!("http://10.0.0.1:6080".parse::<UriZone>().is_err());
    }

    #[test]
    fn whichever_is_set_is_found() {
        let known = VectorStores::augment_args(Command::new("settings").no_binary_name(true));
        for argument in known.get_arguments() {
            let long = argument.get_long().unwrap();
            let value = match long.ends_with("-in-ms") {
                true => "5",
                false => "http://10.0.0.1:6080=a",
            };
            let flags = [format!("--{long}={value}")];
            let matches = known.clone().try_get_matches_from(flags).unwrap();
            let settings = VectorStores::from_arg_matches(&matches).unwrap();
            assert_eq!(settings.any_set(), Some(long));
        }
    }

    #[test]
    fn impossible_settings_are_refused_by_name() {
        let detection = "vector-store-unreachable-node-detection-time-in-ms";
        let service = "vector-store-primary-uri = [\"http://10.0.0.1:6080\"]\n";
        for (text, named) in [
            (
                "vector-store-primary-uri = [\"10.0.0.1\"]".to_owned(),
                "10.0.0.1",
            ),
            (
                "vector-store-truststore = \"/nowhere/at/all\"".to_owned(),
                "/nowhere/at/all",
            ),
            (format!("{detection} = 0"), detection),
            (format!("{detection} = 10000"), "less than the 10000 ms"),
            (
                format!("{service}vector-store-own-zone = \"a\""),
                "vector-store-zone is not",
            ),
            (
                format!("{service}[vector-store-zones]\n\"http://10.0.0.1:6080\" = \"a\""),
                "vector-store-own-zone is not",
            ),
            (
                format!(
                    "{service}vector-store-own-zone = \"a\"\n\
                     [vector-store-zones]\n\"http://10.0.0.1:6080/\" = \"a\""
                ),
                "names http://10.0.0.1:6080/,",
            ),
        ] {
            let error = file(&text).client().unwrap_err();
            assert!(error.to_string().contains(named), "{text}: {error}");
        }
    }
}
