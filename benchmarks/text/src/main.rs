//! Annulus' full-text index as a contender of `benchmarks/text`, without a server: requests and
//! replies as in `peers.py`, a line of JSON each.
//!
//! Arguments: DOCUMENTS QUERIES FOLDER. A search does what the index service does: it reads the
//! query, looks up what the filter admits, counts the terms, and asks for the best.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use filter_columns::{FilterColumns, FilterCondition};
use full_text::{AdmittedIds, AnalysedText, FreshTexts, TextIndex, TextQuery};
use index::{FullTextOptions, TextAnalyzer};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use value::CqlType;
use value::predicate::{ComparisonOperator, Predicate};

const OPTIONS: FullTextOptions = FullTextOptions {
    analyzer: TextAnalyzer::Simple,
    positions: true,
};

/// Documents after which the index does what is left to do, as the service does between rows.
const DOCUMENTS_PER_MAINTENANCE: u32 = 64;

/// The end of the name of a kind of queries that have the filter.
const FILTERED: &str = "_filtered";

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    Build,
    Count {
        kind: String,
    },
    Search {
        kind: String,
        queries: usize,
        repeat: usize,
    },
}

/// The words of queries, by kind.
#[derive(Deserialize)]
struct QueryWords {
    limit: usize,
    admitted: i32,
    #[serde(flatten)]
    kinds: HashMap<String, Vec<Vec<String>>>,
}

#[derive(Serialize)]
struct Elapsed {
    cpu_seconds: f64,
    wall_seconds: f64,
}

struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

impl Stopwatch {
    fn new() -> Stopwatch {
        Stopwatch {
            cpu: cpu_time(),
            wall: Instant::now(),
        }
    }

    fn elapsed(&self) -> Elapsed {
        Elapsed {
            cpu_seconds: (cpu_time() - self.cpu).as_secs_f64(),
            wall_seconds: self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// The processor time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // Both parts of a processor clock are positive, and the nanoseconds are below 10^9.
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

struct Contender {
    documents: PathBuf,
    queries: QueryWords,
    folder: PathBuf,
    index: TextIndex,
    columns: FilterColumns,
}

impl Contender {
    fn answer(&mut self, request: Request) -> anyhow::Result<Value> {
        match request {
            Request::Build => self.build(),
            Request::Count { kind } => self.count(&kind),
            Request::Search {
                kind,
                queries,
                repeat,
            } => self.search(&kind, queries, repeat),
        }
    }

    fn build(&mut self) -> anyhow::Result<Value> {
        self.index = TextIndex::new(OPTIONS);
        self.columns = FilterColumns::new(vec![CqlType::Int]);
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(&self.folder)?;
        let stopwatch = Stopwatch::new();
        let mut count = 0;
        for line in BufReader::new(File::open(&self.documents)?).lines() {
            let line = line?;
            let (value, body) = line.split_once('\t').context("a line has no tab")?;
            let value: i32 = value.parse()?;
            self.index.set(count, &AnalysedText::of(body, OPTIONS))?;
            self.columns.set(count, &[Some(&value.to_be_bytes())]);
            count += 1;
            if count.is_multiple_of(DOCUMENTS_PER_MAINTENANCE) {
                while self.index.maintain(&|| true) {}
            }
        }
        while self.index.maintain(&|| true) {}
        self.index.save_while(&self.folder, |_| true)?;
        let elapsed = stopwatch.elapsed();
        Ok(json!({
            "elapsed": elapsed,
            "bytes": bytes_in(&self.folder)?,
            "documents": count,
            "about": format!("crate full-text, segments: {}", self.index.segment_count()),
        }))
    }

    fn count(&self, kind: &str) -> anyhow::Result<Value> {
        let mut counts = Vec::new();
        for text in self.asked(kind, usize::MAX)? {
            let query = TextQuery::parse(&text, OPTIONS)?;
            let view = self.index.view(FreshTexts::default());
            counts.push(if kind.ends_with(FILTERED) {
                let conditions = self.conditions();
                let ids = self.columns.resolve(&conditions).select();
                let admitted = AdmittedIds::Ids(&ids);
                view.matching(&query, admitted, None, usize::MAX)?.len()
            } else {
                view.matching_ids(&query)?.len()
            });
        }
        Ok(json!({ "counts": counts }))
    }

    fn search(&self, kind: &str, queries: usize, repeat: usize) -> anyhow::Result<Value> {
        let asked = self.asked(kind, queries)?;
        let (mut hits, mut ids) = (0, 0);
        let stopwatch = Stopwatch::new();
        for _ in 0..repeat {
            for text in &asked {
                for id in self.best(text, kind.ends_with(FILTERED))? {
                    hits += 1;
                    ids += u64::from(id);
                }
            }
        }
        Ok(json!({ "elapsed": stopwatch.elapsed(), "hits": hits, "ids": ids }))
    }

    fn best(&self, text: &str, is_filtered: bool) -> anyhow::Result<Vec<u32>> {
        let query = TextQuery::parse(text, OPTIONS)?;
        let view = self.index.view(FreshTexts::default());
        let statistics = view.statistics(&query, None)?;
        let limit = self.queries.limit;
        let found = if is_filtered {
            let conditions = self.conditions();
            let ids = self.columns.resolve(&conditions).select();
            view.best(&query, &statistics, limit, AdmittedIds::Ids(&ids))?
        } else {
            view.best(&query, &statistics, limit, AdmittedIds::All)?
        };
        Ok(found.into_iter().map(|one| one.id).collect())
    }

    fn conditions(&self) -> [FilterCondition; 1] {
        let value = Bytes::copy_from_slice(&self.queries.admitted.to_be_bytes());
        [FilterCondition::Column {
            column: 0,
            predicate: Predicate::Compare {
                cql_type: CqlType::Int,
                comparison: ComparisonOperator::Eq,
                value,
            },
        }]
    }

    /// The first queries of a kind, in the index's language.
    fn asked(&self, kind: &str, queries: usize) -> anyhow::Result<Vec<String>> {
        let all = self.queries.kinds.get(kind);
        let all = all.with_context(|| format!("there are no queries of kind {kind}"))?;
        let form = kind.strip_suffix(FILTERED).unwrap_or(kind);
        let texts = all.iter().take(queries).map(|words| match form {
            "phrase" => format!("\"{}\"", words.join(" ")),
            "and" => words.join(" AND "),
            _ => words.join(" "),
        });
        Ok(texts.collect())
    }
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [documents, queries, folder] = arguments.as_slice() else {
        bail!("arguments: DOCUMENTS QUERIES FOLDER");
    };
    let mut contender = Contender {
        documents: documents.into(),
        queries: serde_json::from_reader(BufReader::new(File::open(queries)?))?,
        folder: folder.into(),
        index: TextIndex::new(OPTIONS),
        columns: FilterColumns::new(vec![CqlType::Int]),
    };
    let mut replies = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?)?;
        let reply = contender
            .answer(request)
            .unwrap_or_else(|error| json!({ "failed": format!("{error:#}") }));
        writeln!(replies, "{reply}")?;
        replies.flush()?;
    }
    Ok(())
}
