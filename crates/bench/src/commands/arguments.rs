//! Arguments that several commands take.

use std::fmt;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use scylla::statement::Consistency;

use crate::load::{TrafficLength, TrafficPlan};
use crate::servers::access::AccessArguments;
use crate::servers::cql_server::DatabaseSession;
use crate::servers::http_server::{ApiServer, ServerUrl};
use crate::servers::wire::SearchEncoding;

/// The arguments that name a CQL server and say how to send it requests.
#[derive(Args, Clone, Debug)]
pub struct CqlArguments {
    /// The CQL server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9042")]
    pub cql: String,
    #[command(flatten)]
    pub requests: RequestArguments,
}

impl CqlArguments {
    /// Connects to the server.
    pub async fn connect(&self) -> anyhow::Result<DatabaseSession> {
        self.requests.connect(&self.cql).await
    }
}

/// The arguments of single requests.
#[derive(Args, Clone, Debug)]
pub struct RequestArguments {
    /// Consistency of CQL requests
    #[arg(long, value_enum, default_value_t = ConsistencyName::One)]
    pub consistency: ConsistencyName,
    /// Seconds after which a request has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub timeout: f64,
    #[command(flatten)]
    pub access: AccessArguments,
}

impl RequestArguments {
    /// The time after which a request has failed.
    pub fn timeout(&self) -> anyhow::Result<Duration> {
        seconds("--timeout", self.timeout)
    }

    /// Connects to a CQL server.
    pub async fn connect(&self, address: &str) -> anyhow::Result<DatabaseSession> {
        let builder = self.access.read()?.session(address).await?;
        DatabaseSession::connect(builder, address, self.consistency.into(), self.timeout()?).await
    }

    /// The HTTP server at a URL.
    pub fn server(&self, url: &ServerUrl) -> anyhow::Result<ApiServer> {
        self.access.read()?.server(url)
    }
}

/// The number of replicas that take part in a CQL request.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ConsistencyName {
    /// One replica.
    One,
    /// One replica of the nearest data centre.
    LocalOne,
    /// Most replicas.
    Quorum,
    /// Most replicas of the nearest data centre.
    LocalQuorum,
}

impl From<ConsistencyName> for Consistency {
    fn from(name: ConsistencyName) -> Consistency {
        match name {
            ConsistencyName::One => Consistency::One,
            ConsistencyName::LocalOne => Consistency::LocalOne,
            ConsistencyName::Quorum => Consistency::Quorum,
            ConsistencyName::LocalQuorum => Consistency::LocalQuorum,
        }
    }
}

/// A server that searches go to.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchEndpoint {
    /// A server of the HTTP API, and the form of searches and answers.
    Http(ServerUrl, SearchEncoding),
    /// A CQL server, `HOST:PORT`.
    Cql(String),
}

impl fmt::Display for SearchEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchEndpoint::Http(url, SearchEncoding::Json) => write!(f, "{url}"),
            SearchEndpoint::Http(url, SearchEncoding::Binary) => write!(f, "{url} binary"),
            SearchEndpoint::Cql(address) => write!(f, "cql://{address}"),
        }
    }
}

/// The CQL server on this machine.
const CQL_SERVER: &str = "127.0.0.1:9042";
/// The HTTP API on this machine.
const HTTP_SERVER: &str = "http://127.0.0.1:6080";

/// The arguments that name one target of searches.
#[derive(Args, Clone, Debug)]
pub struct TargetArguments {
    /// Search by the HTTP API of this server [default: http://127.0.0.1:6080, unless --cql is
    /// given]
    #[arg(long, value_name = "http[s]://HOST:PORT")]
    http: Option<ServerUrl>,
    /// Search by ANN OF on this CQL server instead
    #[arg(long, value_name = "HOST:PORT")]
    cql: Option<String>,
    /// The form of searches and answers by HTTP
    #[arg(long, value_enum, default_value_t = SearchEncoding::Json, conflicts_with = "cql")]
    wire: SearchEncoding,
}

impl TargetArguments {
    /// The target that is given, or the HTTP API of this machine. Fails if --http and --cql are.
    pub fn target(&self) -> anyhow::Result<SearchEndpoint> {
        match (&self.http, &self.cql) {
            (Some(_), Some(_)) => bail!("name one target, with --http or --cql"),
            (None, Some(address)) => Ok(SearchEndpoint::Cql(address.clone())),
            (Some(url), None) => Ok(SearchEndpoint::Http(url.clone(), self.wire)),
            (None, None) => Ok(SearchEndpoint::Http(self.status_server(None)?, self.wire)),
        }
    }

    /// The CQL server for writes during the searches: the one that is given for them, that of the
    /// searches, or the one on this machine.
    pub fn write_server(&self, given: Option<&String>) -> String {
        let server = given.or(self.cql.as_ref()).cloned();
        server.unwrap_or_else(|| CQL_SERVER.to_owned())
    }

    /// The index service that reports its state: the one that is given for that, that of the
    /// searches, or the one on this machine.
    ///
    /// # Errors
    /// None: the default is a URL.
    pub fn status_server(&self, given: Option<&ServerUrl>) -> anyhow::Result<ServerUrl> {
        match given.or(self.http.as_ref()) {
            Some(url) => Ok(url.clone()),
            None => HTTP_SERVER.parse().map_err(anyhow::Error::msg),
        }
    }
}

/// The arguments of a load of searches.
#[derive(Args, Clone, Debug)]
pub struct LoadArguments {
    /// Rows requested
    #[arg(short, default_value_t = 10)]
    pub k: usize,
    /// Requests a second, whatever the server does; latency counts from when each is due
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Seconds that requests are sent for
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub seconds: f64,
    /// Requests to send, instead of --seconds
    #[arg(long, value_name = "N")]
    pub requests: Option<u64>,
    /// Seconds of warm-up, which do not count
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub warm_up: f64,
}

impl LoadArguments {
    /// The plan of the load. Fails if a value is out of range.
    pub fn plan(&self) -> anyhow::Result<TrafficPlan> {
        ensure!(self.k > 0, "-k must be at least 1");
        ensure!(self.requests != Some(0), "--requests must be at least 1");
        Ok(TrafficPlan {
            rate_per_s: self.rate,
            length: match self.requests {
                Some(requests) => TrafficLength::Requests(requests),
                None => TrafficLength::Duration(seconds("--seconds", self.seconds)?),
            },
            warm_up: seconds_or_none("--warm-up", self.warm_up)?,
            keep_requests: false,
        })
    }

    /// The plan of the load and its duration, for commands that do two things at a time or in
    /// turns. Fails if the duration is not known.
    pub fn timed_plan(&self) -> anyhow::Result<(TrafficPlan, Duration)> {
        let plan = self.plan()?;
        let duration = match (plan.length, plan.rate_per_s) {
            (TrafficLength::Duration(duration), _) => duration,
            (TrafficLength::Requests(requests), Some(rate)) => {
                seconds("--requests by --rate", requests as f64 / rate)?
            }
            (TrafficLength::Requests(_), None) => {
                bail!("the time for --requests is not known: use --seconds, or --rate as well")
            }
        };
        Ok((plan, duration))
    }
}

/// The duration of `given` seconds, which may be 0. `flag` is named in the error.
pub fn seconds_or_none(flag: &str, given: f64) -> anyhow::Result<Duration> {
    if given == 0.0 {
        return Ok(Duration::ZERO);
    }
    seconds(flag, given)
}

/// The duration of `given` seconds, above 0 and at most a day. `flag` is named in the error.
pub fn seconds(flag: &str, given: f64) -> anyhow::Result<Duration> {
    ensure!(
        given > 0.0 && given <= 86_400.0,
        "{flag} must be above 0, and a day at most"
    );
    Ok(Duration::from_secs_f64(given))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        load: LoadArguments,
    }

    fn typed(arguments: &[&str]) -> LoadArguments {
        Typed::parse_from(["bench"].iter().chain(arguments)).load
    }

    #[test]
    fn a_timed_plan_takes_requests_only_at_a_rate() {
        let takes =
            |arguments: &[&str]| typed(arguments).timed_plan().map(|(_, duration)| duration);
        let three = Duration::from_secs(3);
        assert_eq!(takes(&["--seconds", "3"]).unwrap(), three);
        let requests = &["--requests", "9", "--rate", "3"];
        assert_eq!(takes(requests).unwrap(), three);
        let error = takes(&["--requests", "9"]).unwrap_err();
        assert!(error.to_string().contains("--seconds"), "{error}");
        assert!(takes(&["--requests", "9", "--rate", "0"]).is_err());
    }

    #[test]
    fn pauses_may_be_left_out_and_loads_may_not() {
        let plan = typed(&["--warm-up", "0"]).plan().unwrap();
        assert_eq!(plan.warm_up, Duration::ZERO);
        assert!(typed(&["--seconds", "0"]).plan().is_err());
        assert!(typed(&["--warm-up", "1e9"]).plan().is_err());
        assert!(seconds_or_none("--pause", -1.0).is_err());
    }
}
