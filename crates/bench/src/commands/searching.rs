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

use super::arguments::{LoadArguments, RequestArguments, Target};
use crate::load::{self, Judge, Measured, Plan};
use crate::report::Measurement;
use crate::servers::cql::{self, Searches};
use crate::servers::wire::Bodies;
use crate::servers::{Names, Questions, Searcher, http};

/// Reads the queries of a data set and the rows that each should find. Rows in `except` are not
/// expected.
pub fn questions(
    data: &DataArguments,
    k: usize,
    except: &HashSet<i64>,
) -> anyhow::Result<Questions> {
    let SearchSet {
        queries,
        neighbours,
        metric,
    } = data.read_search_set(k)?;
    ensure!(!queries.is_empty(), "there are no queries");
    Ok(Questions {
        judge: Arc::new(Judge::new(&neighbours, k, except)),
        queries: Arc::new(queries),
        k,
        metric,
    })
}

/// A target that answers and has the index, with the queries to send to it.
pub struct Searching {
    target: Target,
    names: Names,
    questions: Questions,
    timeout: Duration,
    way: Way,
    /// The name of the data set in results.
    dataset: String,
    /// The file in which each request is recorded.
    requests_log: Option<PathBuf>,
}

enum Way {
    Http(http::Server, Bodies),
    Cql(Searches),
}

impl Searching {
    /// Connects, and checks that the index or the table exists.
    pub async fn new(
        target: &Target,
        names: &Names,
        requests: &RequestArguments,
        questions: &Questions,
        dataset: String,
    ) -> anyhow::Result<Searching> {
        let way = match target {
            Target::Http(url, wire) => {
                let server = requests.server(url)?;
                http::check(&server, names).await?;
                if let Some(warning) = http::other_metric(&server, names, questions.metric).await {
                    say!("  ! {warning}");
                }
                Way::Http(server, Bodies::new(*wire, questions)?)
            }
            Target::Cql(address) => {
                let database = requests.connect(address).await?;
                let searches = database.searches(names, questions.k).await;
                Way::Cql(searches.with_context(|| {
                    format!(
                        "no table {}.{} to search; `annulus bench build-table` and build-index make it",
                        names.keyspace, names.table
                    )
                })?)
            }
        };
        Ok(Searching {
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
    pub fn reconnecting(mut self) -> Searching {
        if let Way::Http(server, bodies) = self.way {
            self.way = Way::Http(server, bodies.reconnecting());
        }
        self
    }

    /// Records each request in a file, which each run overwrites.
    pub fn logging(mut self, path: &Path) -> anyhow::Result<Searching> {
        // The file is made now, so that a load is not measured in vain.
        File::create(path).with_context(|| path.display().to_string())?;
        self.requests_log = Some(path.to_owned());
        Ok(self)
    }

    fn worker(&self) -> Searcher {
        let questions = &self.questions;
        match &self.way {
            Way::Http(server, bodies) => Searcher::Http(http::Searcher::new(
                server,
                &self.names,
                questions,
                bodies,
                self.timeout,
            )),
            Way::Cql(searches) => Searcher::Cql(cql::Searcher::new(searches, questions)),
        }
    }

    /// Searches as planned, with up to `concurrency` requests under way, and returns the results.
    pub async fn run(
        &self,
        plan: &Plan,
        concurrency: usize,
        progress: &ProgressBar,
    ) -> anyhow::Result<Measurement> {
        let workers = (0..concurrency).map(|_| self.worker()).collect();
        let plan = Plan {
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

fn write_requests(path: &Path, measured: &Measured) -> io::Result<()> {
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
    pub names: Names,
    #[command(flatten)]
    pub requests: RequestArguments,
    #[command(flatten)]
    pub load: LoadArguments,
}

impl SearchArguments {
    /// Reads the data set, leaves out the rows in `except`, and connects to the target.
    pub async fn searching(
        &self,
        target: &Target,
        except: &HashSet<i64>,
    ) -> anyhow::Result<Searching> {
        let questions = questions(&self.data, self.load.k, except)?;
        let dataset = self.data.name();
        Searching::new(target, &self.names, &self.requests, &questions, dataset).await
    }
}
