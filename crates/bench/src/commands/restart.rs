//! `restart`: measures how soon an index service serves again, from its snapshot and without one.
//!
//! The service is `annulus store` of the program in this one's folder (`--annulus`), next to a
//! database that keeps running, so the figures have no restart of a database in them. Each round
//! begins without a snapshot: the index is built, and then the service is stopped and started
//! again. Both times are from the start of the process until the service says over HTTP that the
//! index serves. With `--behind` the position of the snapshot is set back at the end. The time is
//! then until the log has been read to where it was when the process started.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use annulus_bench::spread::MedianRange;
use anyhow::{Context, bail, ensure};
use clap::Args;
use store_api::types::IndexState;
use xxhash_rust::xxh3::xxh3_128;

use super::arguments::CqlArguments;
use crate::report::{Measurement, OutputArguments, ResultOutput, progress_bar};
use crate::servers::TableNames;
use crate::servers::access::AccessArguments;
use crate::servers::http_server::{self, ApiServer, ServerUrl};

/// The arguments of `restart`.
#[derive(Args, Debug)]
pub struct RestartArguments {
    #[command(flatten)]
    cql: CqlArguments,
    #[command(flatten)]
    names: TableNames,
    /// Times that the index is built
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Restarts after each build
    #[arg(long, default_value_t = 3)]
    restarts: usize,
    /// Hours by which the position of a snapshot is set back at the end, to measure how soon the
    /// log is caught up with. The rows of the table's log get a TTL of twice as long
    #[arg(long, value_name = "HOURS")]
    behind: Option<f64>,
    /// Seconds that a build, a restart or a stop may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    patience: u64,
    /// The program `annulus`; by default the one in the directory of this program
    #[arg(long, value_name = "FILE")]
    annulus: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

impl RestartArguments {
    fn program(&self) -> anyhow::Result<PathBuf> {
        match &self.annulus {
            Some(program) => Ok(program.clone()),
            None => {
                let this = std::env::current_exe().context("finding this program's file")?;
                Ok(this.with_file_name(format!("annulus{EXE_SUFFIX}")))
            }
        }
    }
}

/// Builds and restarts the index in rounds, and reports the times.
pub async fn run(arguments: RestartArguments) -> anyhow::Result<()> {
    ensure!(
        arguments.rounds > 0 && arguments.restarts > 0,
        "--rounds and --restarts must be at least 1"
    );
    let database = arguments.cql.connect().await?;
    let TableNames {
        keyspace,
        table,
        index,
        ..
    } = &arguments.names;
    ensure!(
        database.has_index(&arguments.names).await?,
        "{keyspace}.{table} has no index {index}; `annulus bench build-index` makes one"
    );
    if let Some(hours) = arguments.behind {
        let ttl_s = (hours.ceil() as u64).max(24) * 2 * 3600;
        database
            .change(format!(
                "ALTER TABLE {keyspace}.{table} WITH cdc = {{'enabled': true, 'ttl': {ttl_s}}}"
            ))
            .await?;
    }
    let mut output = ResultOutput::new(&arguments.output)?;
    let (mut built_s, mut restarted_s, mut caught_up_s) = (Vec::new(), Vec::new(), None);
    let mut rows = 0;
    let starts = arguments.rounds * (1 + arguments.restarts);
    let bar = progress_bar("starts", starts as u64)?;
    for round in 0..arguments.rounds {
        let directory = tempfile::tempdir().context("a directory for the index")?;
        for restart in 0..=arguments.restarts {
            let mut service = StoreProcess::start(&arguments, directory.path())?;
            let (seconds, count) = service.serves(&arguments).await?;
            match restart {
                0 => built_s.push(seconds),
                _ => restarted_s.push(seconds),
            }
            rows = count;
            service.stop(&arguments).await?;
            bar.inc(1);
        }
        if let Some(hours) = arguments.behind.filter(|_| round + 1 == arguments.rounds) {
            set_back(directory.path(), hours)?;
            let mut service = StoreProcess::start(&arguments, directory.path())?;
            service.serves(&arguments).await?;
            caught_up_s = Some(service.has_caught_up(&arguments).await?);
            service.stop(&arguments).await?;
        }
    }
    bar.finish_and_clear();
    let spread = |values: &[f64]| MedianRange::of(values).context("nothing was measured");
    let (built, restarted) = (spread(&built_s)?, spread(&restarted_s)?);
    let target = format!("cql://{}", arguments.cql.cql);
    let caught_up = arguments.behind.zip(caught_up_s);
    output.add(measurement(target, rows, &built, &restarted, caught_up))?;
    output.finish()
}

/// The times as a measurement. `caught_up` has the hours of the log that were still to be read, and
/// the seconds that reading them took.
fn measurement(
    target: String,
    rows: usize,
    built: &MedianRange,
    restarted: &MedianRange,
    caught_up: Option<(f64, f64)>,
) -> Measurement {
    let mut measurement = Measurement {
        operation: "restart".to_owned(),
        series: target.clone(),
        target,
        operations: rows as u64,
        seconds: restarted.median,
        rate_per_s: rows as f64 / restarted.median,
        ..Measurement::default()
    };
    let mut figure = |name: &str, value| measurement.figures.insert(name.to_owned(), value);
    figure("built anew, median s", built.median);
    figure("built anew, shortest s", built.least);
    figure("from the snapshot, median s", restarted.median);
    figure("from the snapshot, longest s", restarted.most);
    figure("times faster, medians", built.median / restarted.median);
    if let Some((hours, seconds)) = caught_up {
        figure("hours of the log caught up with", hours);
        figure("caught up, s", seconds);
        figure(
            "times faster than it took to write",
            hours * 3600.0 / seconds,
        );
    }
    measurement
}

/// A running `annulus store`, killed when dropped.
struct StoreProcess {
    process: Child,
    server: ApiServer,
    began: Instant,
    began_at: SystemTime,
}

impl StoreProcess {
    #[expect(
        clippy::disallowed_methods,
        reason = "times of another process are compared with it"
    )]
    fn start(arguments: &RestartArguments, directory: &Path) -> anyhow::Result<StoreProcess> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.context("a free port")?.to_string();
        let program = arguments.program()?;
        let (began, began_at) = (Instant::now(), SystemTime::now());
        let url: ServerUrl = format!("http://{address}")
            .parse()
            .map_err(anyhow::Error::msg)?;
        let process = Command::new(&program)
            .args(["store", "--log", "error", "--uri", &address])
            .args(["--scylladb-uri", &arguments.cql.cql, "--index-dir"])
            .arg(directory)
            .args(access(&arguments.cql.requests.access)?)
            .current_dir(directory)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {} store (--annulus)", program.display()))?;
        Ok(StoreProcess {
            process,
            server: url.into(),
            began,
            began_at,
        })
    }

    /// Waits until the index serves. Returns the seconds since the start, and its number of rows.
    async fn serves(&mut self, arguments: &RestartArguments) -> anyhow::Result<(f64, usize)> {
        loop {
            let status = http_server::index_status(&self.server, &arguments.names).await;
            if let Ok(status) = &status
                && status.status == IndexState::Serving
            {
                return Ok((self.began.elapsed().as_secs_f64(), status.count));
            }
            let late = || match status {
                Ok(status) => format!("the index is still {:?}", status.status),
                Err(error) => format!("the status of the index is not known: {error:#}"),
            };
            self.go_on(arguments, late)?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until the readers of the log are where the log was at the start. Returns the seconds
    /// since the start.
    async fn has_caught_up(&mut self, arguments: &RestartArguments) -> anyhow::Result<f64> {
        let began_s = self.began_at.duration_since(UNIX_EPOCH)?.as_secs_f64();
        let begin = "cdc_last_processed_timestamp_seconds{";
        let reader = r#"reader="fine""#;
        loop {
            let metrics = http_server::metrics(&self.server).await.unwrap_or_default();
            let line = metrics
                .lines()
                .find(|line| line.starts_with(begin) && line.contains(reader));
            let read_s = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            if read_s.is_some_and(|read_s| read_s >= began_s) {
                return Ok(self.began.elapsed().as_secs_f64());
            }
            self.go_on(arguments, || format!("the log is read up to {read_s:?}"))?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends SIGTERM, as an operator does, and waits until the process has ended.
    async fn stop(mut self, arguments: &RestartArguments) -> anyhow::Result<()> {
        self.began = Instant::now();
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        ensure!(sent.context("kill")?.success(), "annulus store has ended");
        while self.process.try_wait()?.is_none() {
            self.go_on(arguments, || "annulus store does not stop".to_owned())?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    fn go_on(
        &mut self,
        arguments: &RestartArguments,
        late: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if self.began.elapsed() > Duration::from_secs(arguments.patience) {
            bail!("{} (--patience)", late());
        }
        Ok(())
    }
}

/// The settings by which `annulus store` logs in at the database. Files are named from the root, as
/// the service runs in another directory.
fn access(arguments: &AccessArguments) -> anyhow::Result<Vec<OsString>> {
    ensure!(
        arguments.cert.is_none(),
        "`annulus store`, which is restarted, shows the database no certificate: name a database that asks for none, \
         without --cert"
    );
    let mut settings = Vec::new();
    if let Some(user) = &arguments.user {
        settings.extend(["--scylladb-username".into(), user.into()]);
    }
    for (name, file) in [
        ("--scylladb-password-file", &arguments.password_file),
        ("--scylladb-certificate-file", &arguments.ca),
    ] {
        if let Some(file) = file {
            let file = std::path::absolute(file).with_context(|| file.display().to_string())?;
            settings.extend([name.into(), file.into()]);
        }
    }
    Ok(settings)
}

impl Drop for StoreProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sets the position of the only snapshot back by `hours`, and corrects its checksum.
fn set_back(directory: &Path, hours: f64) -> anyhow::Result<()> {
    let path = manifest(directory)?;
    let text = std::fs::read_to_string(&path)?;
    let (first, json) = text.split_once('\n').context("a manifest has two parts")?;
    let mut manifest: serde_json::Value = serde_json::from_str(json)?;
    let position_ms = manifest["position_ms"].as_u64().context("a position")?;
    manifest["position_ms"] = position_ms
        .saturating_sub((hours * 3_600_000.0) as u64)
        .into();
    let json = manifest.to_string();
    let (format, _) = first.rsplit_once(' ').context("a checksum")?;
    let text = format!("{format} {:032x}\n{json}", xxh3_128(json.as_bytes()));
    Ok(std::fs::write(path, text)?)
}

/// The file of the only snapshot that names its current generation.
fn manifest(directory: &Path) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(directory.join("snapshots")).context("there is no snapshot")?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path().join("current"))
        .filter(|path| path.is_file())
        .collect();
    ensure!(
        found.len() == 1,
        "--behind needs one index in the database, and there are {}",
        found.len()
    );
    Ok(found.remove(0))
}
