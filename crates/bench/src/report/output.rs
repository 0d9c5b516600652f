//! Prints and writes results as they arrive.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::charts::charts;
use super::html;
use super::measurement::{Measurement, ResultRecord, RunEnvironment};

/// The arguments that say where results are written besides the terminal.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArguments {
    /// Append the results to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with charts of the results of this run
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write each of the page's charts into this directory, as PNG
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Name of the target in tables and charts [default: the target]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
}

/// Prints, keeps and writes results.
pub struct ResultOutput {
    arguments: OutputArguments,
    records: Vec<ResultRecord>,
    lines: usize,
}

/// The width of the first column of the table.
const WIDTH_NAME: usize = 44;

impl ResultOutput {
    /// Records the machine and the command, and makes sure that the files can be written.
    pub fn new(arguments: &OutputArguments) -> anyhow::Result<ResultOutput> {
        let mut output = ResultOutput {
            arguments: arguments.clone(),
            records: Vec::new(),
            lines: 0,
        };
        output.record(ResultRecord::Environment(environment()))?;
        output.write_page()?;
        Ok(output)
    }

    /// Makes a progress bar on the terminal.
    pub fn progress(&self, what: &str) -> anyhow::Result<ProgressBar> {
        progress_bar(what, 1)
    }

    /// Prints and keeps a result.
    pub fn add(&mut self, mut measurement: Measurement) -> anyhow::Result<()> {
        // A result without a target, such as a ratio, has its name already.
        if let Some(label) = &self.arguments.label
            && !measurement.target.is_empty()
        {
            measurement.series = measurement.series.replacen(&measurement.target, label, 1);
        }
        if self.lines == 0 {
            say!("{}", heading());
        }
        self.lines += 1;
        say!("{}", line(&measurement));
        for warning in measurement.warnings() {
            say!("  ! {warning}");
        }
        for (name, value) in &measurement.figures {
            say!("  {name}: {value:.3}");
        }
        self.record(ResultRecord::Measurement(Box::new(measurement)))
    }

    fn record(&mut self, record: ResultRecord) -> anyhow::Result<()> {
        if let Some(path) = &self.arguments.json {
            let mut line = serde_json::to_string(&record)?;
            line.push('\n');
            let append = || {
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                file.write_all(line.as_bytes())
            };
            append().with_context(|| path.display().to_string())?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Writes the page and the charts, if they were requested.
    pub fn finish(self) -> anyhow::Result<()> {
        if let Some(directory) = &self.arguments.png {
            write_charts(directory, &self.records)?;
        }
        self.write_page()
    }

    fn write_page(&self) -> anyhow::Result<()> {
        match &self.arguments.html {
            Some(path) => write_page(path, &self.records),
            None => Ok(()),
        }
    }
}

/// Makes a progress bar on the terminal, of so many steps.
pub fn progress_bar(what: &str, steps: u64) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix} {bar:40} {percent}% {msg}")?;
    let bar = ProgressBar::new(steps).with_style(style);
    bar.set_prefix(what.to_owned());
    Ok(bar)
}

/// Writes an HTML page of results to a file.
pub fn write_page(path: &Path, records: &[ResultRecord]) -> anyhow::Result<()> {
    std::fs::write(path, html::page(records)).with_context(|| path.display().to_string())
}

/// Writes the charts of results as PNG files into a directory, named by their titles. Returns their
/// paths.
pub fn write_charts(directory: &Path, records: &[ResultRecord]) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut written = Vec::new();
    for chart in charts(records) {
        if let Some(file) = chart.png()? {
            let path = directory.join(file_name(&chart.title));
            std::fs::write(&path, file).with_context(|| path.display().to_string())?;
            written.push(path);
        }
    }
    Ok(written)
}

/// The file name of a chart by its title: `P99 against concurrency` gives
/// `p99-against-concurrency.png`.
fn file_name(title: &str) -> String {
    let letters = title.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<&str> = letters.filter(|word| !word.is_empty()).collect();
    format!("{}.png", words.join("-").to_lowercase())
}

/// Reads a file of JSON lines that `--json` wrote.
pub fn read_records(path: &Path) -> anyhow::Result<Vec<ResultRecord>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{} line {}", path.display(), at + 1))
        })
        .collect()
}

fn heading() -> String {
    format!(
        "{:WIDTH_NAME$} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>6}",
        "", "at once", "/s", "P50 ms", "P90", "P99", "P99.9", "max", "recall", "failed", "client"
    )
}

fn line(measurement: &Measurement) -> String {
    let latency = measurement.latency_ms;
    let recall = measurement
        .recall
        .map_or("-".to_owned(), |recall| format!("{recall:.4}"));
    let name = format!("{} {}", measurement.operation, measurement.series);
    // A result that is not of requests has figures only.
    if measurement.concurrency == 0 {
        return name;
    }
    format!(
        "{name:WIDTH_NAME$} {:>7} {:>9.0} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>7} {:>6} {:>6.2}",
        measurement.concurrency,
        measurement.rate_per_s,
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p999,
        latency.max,
        recall,
        measurement.failed(),
        measurement.client_cpu_cores,
    )
}

fn environment() -> RunEnvironment {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let system = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().take(3);
    RunEnvironment {
        time: jiff::Timestamp::now()
            .round(jiff::Unit::Second)
            .map_or_else(|_| String::new(), |time| time.to_string()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        cpu: cpu.to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        system: format!("{} {}", std::env::consts::OS, system.trim()),
        load: load.filter_map(|mean| mean.parse().ok()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lines_are_appended_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.jsonl");
        let arguments = OutputArguments {
            json: Some(path.clone()),
            html: Some(directory.path().join("page.html")),
            png: None,
            label: Some("mine".to_owned()),
        };
        for _ in 0..2 {
            let mut output = ResultOutput::new(&arguments).unwrap();
            let measurement = Measurement {
                target: "http://h:1".to_owned(),
                series: "http://h:1 k=10".to_owned(),
                ..Measurement::default()
            };
            output.add(measurement).unwrap();
            output.finish().unwrap();
        }
        let records = read_records(&path).unwrap();
        assert_eq!(records.len(), 4);
        let ResultRecord::Environment(environment) = &records[0] else {
            panic!("a run begins with it")
        };
        let means = if cfg!(target_os = "linux") { 3 } else { 0 };
        assert_eq!(environment.load.len(), means);
        assert!(matches!(&records[3], ResultRecord::Measurement(m) if m.series == "mine k=10"));
        std::fs::write(&path, "{}\n").unwrap();
        let error = format!("{:#}", read_records(&path).unwrap_err());
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn charts_are_files_named_by_their_titles() {
        let directory = tempfile::tempdir().unwrap();
        let record = ResultRecord::Measurement(Box::new(Measurement {
            operation: "search".to_owned(),
            operations: 1,
            rate_per_s: 5.0,
            ..Measurement::default()
        }));
        let written = write_charts(&directory.path().join("new"), &[record]).unwrap();
        let first = written[0].file_name().unwrap();
        assert_eq!(first, "queries-a-second-against-concurrency.png");
        assert!(written.iter().all(|path| path.exists()));
        assert_eq!(file_name("a/b: c "), "a-b-c.png");
    }

    #[test]
    fn the_columns_stand_below_their_headings() {
        let measurement = Measurement {
            concurrency: 1,
            ..Measurement::default()
        };
        assert_eq!(heading().len(), line(&measurement).len());
    }
}
