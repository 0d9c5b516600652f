//! The file for support: findings, settings, state and tasks of the service, the end of its log.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::Args;
use clock::{Clock, SystemClock};

use super::service::ServiceAnswers;
use super::{DoctorReport, ServerSettings, archive, shown};
use crate::output;
use crate::shown_settings;

/// The bytes at the end of a log that are taken.
const LOG_BYTES: u64 = 1 << 20;

/// The lines at the end of the journal that are taken.
const JOURNAL_LINES: &str = "5000";

#[derive(Args, Debug)]
pub struct BundleArguments {
    /// Write a tar file for support too: these findings, the settings without secrets, and the
    /// state, the tasks and the end of the log of the server
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,

    /// The log whose end is put into the bundle [default: the journal of --unit]
    #[arg(long, value_name = "FILE", requires = "bundle")]
    log_file: Option<PathBuf>,

    /// The unit of systemd whose journal is put into the bundle
    #[arg(long, value_name = "NAME", default_value = "annulus")]
    unit: String,
}

impl BundleArguments {
    /// Writes the bundle, if there is to be one. It does not replace a file.
    pub fn write(
        &self,
        report: &DoctorReport,
        settings: &ServerSettings,
        answers: &anyhow::Result<ServiceAnswers>,
    ) -> anyhow::Result<()> {
        let Some(path) = &self.bundle else {
            return Ok(());
        };
        let service = match answers {
            Ok(answers) => serde_json::to_vec_pretty(answers)?,
            Err(error) => format!(
                "{{\"error\": {}}}\n",
                serde_json::to_string(&format!("{error:#}"))?
            )
            .into_bytes(),
        };
        let files = [
            ("annulus-doctor/findings.txt", shown(report).into_bytes()),
            (
                "annulus-doctor/findings.json",
                serde_json::to_vec_pretty(report)?,
            ),
            (
                "annulus-doctor/settings.txt",
                settings_text(settings).into_bytes(),
            ),
            ("annulus-doctor/service.json", service),
            ("annulus-doctor/log.txt", self.log().into_bytes()),
        ];
        let now = u64::try_from(clock::seconds(SystemClock.now_micros())).unwrap_or(0);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("making {}; name a file that is not there", path.display()))?;
        file.write_all(&archive::tar(&files, now))
            .with_context(|| format!("writing {}", path.display()))?;
        output::complain(format_args!(
            "{} is written: read it before you send it, `tar -xf {}`",
            path.display(),
            path.display()
        ));
        Ok(())
    }

    /// The end of the log, or the reason why there is none.
    fn log(&self) -> String {
        let log = match &self.log_file {
            Some(path) => end_of(path).with_context(|| format!("reading {}", path.display())),
            None => self.journal(),
        };
        match log {
            Ok(log) => without_passwords(&log),
            Err(error) => format!("no log: {error:#}; name its file with --log-file\n"),
        }
    }

    fn journal(&self) -> anyhow::Result<String> {
        let journal = Command::new("journalctl")
            .args(["--no-pager", "--quiet", "--output", "short-iso"])
            .args(["--unit", &self.unit, "--lines", JOURNAL_LINES])
            .output()
            .context("starting journalctl")?;
        let error = String::from_utf8_lossy(&journal.stderr);
        anyhow::ensure!(journal.status.success(), "journalctl: {}", error.trim());
        anyhow::ensure!(
            !journal.stdout.is_empty(),
            "the journal has nothing of the unit {}",
            self.unit
        );
        Ok(String::from_utf8_lossy(&journal.stdout).into_owned())
    }
}

/// The settings that count, each with its source. Of a file with a password its path is shown.
fn settings_text(settings: &ServerSettings) -> String {
    let shown = shown_settings::shown(&settings.resolved, &settings.given, &settings.file);
    let lines = shown.iter().map(|setting| {
        let (name, value, source) = (&setting.name, &setting.value, setting.source);
        format!("{name} = {value} ({source})\n")
    });
    lines.collect()
}

/// The last bytes of a file, from the beginning of a line on.
fn end_of(path: &Path) -> anyhow::Result<String> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let from = bytes.saturating_sub(LOG_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let whole = match from {
        0 => &*end,
        _ => end.split_once('\n').map_or("", |(_, whole)| whole),
    };
    Ok(whole.to_owned())
}

/// A log without the lines that may have a password, such as that of a first superuser.
fn without_passwords(log: &str) -> String {
    let lines = log.lines().map(
        |line| match line.to_ascii_lowercase().contains("password") {
            true => "(a line about a password is left out)\n".to_owned(),
            false => format!("{line}\n"),
        },
    );
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_taken_without_passwords() {
        let log = "ready\nthe first superuser, a; its password, shown this once: x7\nstopped\n";
        let taken = without_passwords(log);
        assert_eq!(
            taken,
            "ready\n(a line about a password is left out)\nstopped\n"
        );
    }

    #[test]
    fn the_end_of_a_long_log_begins_with_a_whole_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let line = format!("{}\n", "x".repeat(99));
        std::fs::write(&path, line.repeat(20_000)).unwrap();
        let end = end_of(&path).unwrap();
        assert!(end.len() as u64 <= LOG_BYTES && end.len() > 1_000_000);
        assert!(end.starts_with("xx") && end.len().is_multiple_of(100));
        std::fs::write(&path, "short\n").unwrap();
        assert_eq!(end_of(&path).unwrap(), "short\n");
    }
}
