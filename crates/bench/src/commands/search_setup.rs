//! Searches of a data set on a target, shared by `search`, `sweep`, `mixed`, `compare` and others.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annulus_bench::data::{DataArguments, SearchSet};
use anyhow::{Context, ensure};
use indicatif::ProgressBar;

use super::arguments::{LoadArguments, RequestArguments, SearchEndpoint};
use crate::load::{self, AnswerJudge, TrafficPlan, TrafficResults};
use crate::report::Measurement;
use crate::servers::cql_server::{self, SearchStatement};
use crate::servers::wire::SearchBodies;
use crate::servers::{SearchQueries, SearchWorker, TableNames, http_server};

/// Reads the queries of a data set and the rows that each should find. Rows in `except` are not
/// expected.
pub fn questions(
    data: &DataArguments,
    k: usize,
    except: &HashSet<i64>,
) -> anyhow::Result<SearchQueries> {
    let SearchSet {
        queries,
        neighbours,
        metric,
    } = data.read_search_set(k)?;
    ensure!(!queries.is_empty(), "there are no queries");
    Ok(SearchQueries {
        judge: Arc::new(AnswerJudge::new(&neighbours, k, except)),
        queries: Arc::new(queries),
        k,
        metric,
    })
}

/// A target that answers and has the index, with the queries to send to it.
pub struct SearchSetup {
    target: SearchEndpoint,
    names: TableNames,
    questions: SearchQueries,
    timeout: Duration,
    way: SearchRoute,
    /// The name of the data set in results.
    dataset: String,
    /// The file in which each request is recorded.
    requests_log: Option<PathBuf>,
}

enum SearchRoute {
    Http(http_server::ApiServer, SearchBodies),
    Cql(SearchStatement),
}

impl SearchSetup {
    /// Connects, and checks that the index or the table exists.
    pub async fn new(
        target: &SearchEndpoint,
        names: &TableNames,
        requests: &RequestArguments,
        questions: &SearchQueries,
        dataset: String,
    ) -> anyhow::Result<SearchSetup> {
        let way = match target {
            SearchEndpoint::Http(url, wire) => {
                let server = requests.server(url)?;
                http_server::check(&server, names).await?;
                if let Some(warning) =
                    http_server::other_metric(&server, names, questions.metric).await
                {
                    say!("  ! {warning}");
                }
                SearchRoute::Http(server, SearchBodies::new(*wire, questions)?)
            }
            SearchEndpoint::Cql(address) => {
                let database = requests.connect(address).await?;
                let searches = database.searches(names, questions.k).await;
                SearchRoute::Cql(searches.with_context(|| {
                    format!(
                        "no table {}.{} to search; `annulus bench build-table` and build-index make it",
                        names.keyspace, names.table
                    )
                })?)
            }
        };
        Ok(SearchSetup {
            target: target.clone(),
            names: names.clone(),
            questions: questions.clone(),
            timeout: requests.timeout()?,
            way,
            dataset,
            requests_log: None,
        })
    }

    /// Opens a connection for each search by HTTP.
    pub fn reconnecting(mut self) -> SearchSetup {
        if let SearchRoute::Http(server, bodies) = self.way {
            self.way = SearchRoute::Http(server, bodies.reconnecting());
        }
        self
    }

    /// Records each request in a file, which each run overwrites.
    pub fn logging(mut self, path: &Path) -> anyhow::Result<SearchSetup> {
        // The file is made now, so that a load is not measured in vain.
        File::create(path).with_context(|| path.display().to_string())?;
        self.requests_log = Some(path.to_owned());
        Ok(self)
    }

    fn worker(&self) -> SearchWorker {
        let questions = &self.questions;
        match &self.way {
            SearchRoute::Http(server, bodies) => SearchWorker::Http(http_server::ApiSearcher::new(
                server,
                &self.names,
                questions,
                bodies,
                self.timeout,
            )),
            SearchRoute::Cql(searches) => {
                SearchWorker::Cql(cql_server::StatementSearcher::new(searches, questions))
            }
        }
    }

    /// Searches as planned, with up to `concurrency` requests under way, and returns the results.
    pub async fn run(
        &self,
        plan: &TrafficPlan,
        concurrency: usize,
        progress: &ProgressBar,
    ) -> anyhow::Result<Measurement> {
        let workers = (0..concurrency).map(|_| self.worker()).collect();
        let plan = TrafficPlan {
            keep_requests: self.requests_log.is_some(),
            ..plan.clone()
        };
        let measured = load::run(&plan, workers, progress).await?;
        progress.finish_and_clear();
        if let Some(path) = &self.requests_log {
            write_requests(path, &measured).with_context(|| path.display().to_string())?;
        }
        Ok(Measurement {
            operation: "search".to_owned(),
            target: self.target.to_string(),
            series: format!("{} k={}", self.target, self.questions.k),
            dataset: self.dataset.clone(),
            k: Some(self.questions.k),
            concurrency,
            rate_asked_per_s: plan.rate_per_s,
            ..Measurement::of(&measured)
        })
    }
}

fn write_requests(path: &Path, measured: &TrafficResults) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "due_ns,ended_ns,answered")?;
    for request in &measured.requests {
        let [due, ended] = [request.due, request.ended]
            .map(|after| u128::from(measured.begin_ns) + after.as_nanos());
        writeln!(file, "{due},{ended},{}", u8::from(request.answered))?;
    }
    file.flush()
}

/// The arguments of a search on one target.
#[derive(clap::Args, Debug)]
pub struct SearchArguments {
    #[command(flatten)]
    pub data: DataArguments,
    #[command(flatten)]
    pub names: TableNames,
    #[command(flatten)]
    pub requests: RequestArguments,
    #[command(flatten)]
    pub load: LoadArguments,
}

impl SearchArguments {
    /// Reads the data set, leaves out the rows in `except`, and connects to the target.
    pub async fn searching(
        &self,
        target: &SearchEndpoint,
        except: &HashSet<i64>,
    ) -> anyhow::Result<SearchSetup> {
        let questions = questions(&self.data, self.load.k, except)?;
        let dataset = self.data.name();
        SearchSetup::new(target, &self.names, &self.requests, &questions, dataset).await
    }
}
