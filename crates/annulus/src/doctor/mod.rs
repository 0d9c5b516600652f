//! `annulus doctor`: looks at this machine, at the settings of `annulus serve` and at the service,
//! and says what to change.

mod archive;
mod bundle;
mod disk;
mod machine;
mod ports;
mod service;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::operator::{ServiceArguments, block_on};
use crate::settings::{ResolvedSettings, Settings};
use crate::settings_file;
use bundle::BundleArguments;

/// The program and its version, as `--version` prints them.
const PROGRAM: &str = concat!("annulus ", env!("ANNULUS_VERSION"));

#[derive(Args, Debug)]
pub struct DoctorArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    #[command(flatten)]
    bundle: BundleArguments,

    /// TOML file with any of these settings, by their long names
    #[arg(long, env = "ANNULUS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Settings,
}

/// How good a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingGrade {
    Good,
    /// A server runs, and would run better or safer otherwise.
    Advice,
    /// A server does not start, or loses data or requests.
    Wrong,
}

/// A thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    subject: &'static str,
    grade: FindingGrade,
    found: String,
    /// The change that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl DoctorFinding {
    fn good(subject: &'static str, found: impl Into<String>) -> DoctorFinding {
        DoctorFinding {
            subject,
            grade: FindingGrade::Good,
            found: found.into(),
            remedy: None,
        }
    }

    fn advice(subject: &'static str, found: impl Into<String>, remedy: &str) -> DoctorFinding {
        DoctorFinding {
            grade: FindingGrade::Advice,
            remedy: Some(remedy.to_owned()),
            ..DoctorFinding::good(subject, found)
        }
    }

    fn wrong(subject: &'static str, found: impl Into<String>, remedy: &str) -> DoctorFinding {
        DoctorFinding {
            grade: FindingGrade::Wrong,
            ..DoctorFinding::advice(subject, found, remedy)
        }
    }
}

/// All findings.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    program: &'static str,
    findings: Vec<DoctorFinding>,
}

/// The settings of `annulus serve` by their sources, and those that count.
pub struct ServerSettings {
    given: Settings,
    file: Settings,
    resolved: ResolvedSettings,
    finding: DoctorFinding,
}

impl ServerSettings {
    /// Reads the settings. Where they can't be used the defaults count, and the finding has the
    /// fault.
    fn read(given: &Settings, config: Option<&PathBuf>) -> anyhow::Result<ServerSettings> {
        let read = config.map(|path| settings_file::read(path)).transpose();
        let file: anyhow::Result<Settings> = read.map(Option::unwrap_or_default);
        let resolved = file.and_then(|file| {
            let resolved = given.clone().or(file.clone()).resolve()?;
            Ok((file, resolved))
        });
        let source = config.map_or_else(
            || "no file".to_owned(),
            |path| format!("file {}", path.display()),
        );
        let (file, resolved, finding) = match resolved {
            Ok((file, resolved)) => (file, resolved, DoctorFinding::good("settings", source)),
            Err(error) => {
                let remedy = "mend this setting; the rest of this page is about the defaults";
                let finding = DoctorFinding::wrong("settings", format!("{error:#}"), remedy);
                (Settings::default(), Settings::default().resolve()?, finding)
            }
        };
        Ok(ServerSettings {
            given: given.clone(),
            file,
            resolved,
            finding,
        })
    }

    /// The URL of a server of these settings, as programs of this machine reach it. `None` if its
    /// port is any that is free.
    fn service(&self) -> Option<String> {
        let ResolvedSettings {
            listen,
            http_port,
            tls,
            ..
        } = &self.resolved;
        let host = match (listen.is_unspecified(), listen) {
            (false, _) => *listen,
            (true, IpAddr::V4(_)) => Ipv4Addr::LOCALHOST.into(),
            (true, IpAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
        };
        let scheme = match tls {
            Some(_) => "https",
            None => "http",
        };
        let address = SocketAddr::new(host, *http_port);
        (*http_port != 0).then(|| format!("{scheme}://{address}"))
    }
}

/// Runs `annulus doctor`.
pub fn run(arguments: DoctorArguments) -> anyhow::Result<()> {
    let DoctorArguments {
        asking,
        bundle,
        config,
        settings,
    } = arguments;
    let settings = ServerSettings::read(&settings, config.as_ref())?;
    let asking = match settings.service() {
        Some(url) => asking.with_default_service(url),
        None => asking,
    };
    block_on(async {
        let answers = service::read(&asking).await;
        let report = DoctorReport {
            program: PROGRAM,
            findings: findings(&settings, &answers),
        };
        asking.print(&report, shown)?;
        bundle.write(&report, &settings, &answers)?;
        let wrong = report.findings.iter();
        match wrong.filter(|it| it.grade == FindingGrade::Wrong).count() {
            0 => Ok(()),
            1 => anyhow::bail!("one thing is wrong"),
            count => anyhow::bail!("{count} things are wrong"),
        }
    })
}

fn findings(
    settings: &ServerSettings,
    answers: &anyhow::Result<service::ServiceAnswers>,
) -> Vec<DoctorFinding> {
    let resolved = &settings.resolved;
    let is_running = service::is_there(answers);
    let mut findings = vec![settings.finding.clone(), machine::open_files()];
    findings.push(machine::memory(resolved.memory.bytes, is_running));
    findings.push(machine::processor());
    findings.push(machine::clock());
    findings.extend(disk::findings("data", &resolved.data_dir));
    if !resolved.index_dir.starts_with(&resolved.data_dir) {
        findings.extend(disk::findings("indexes", &resolved.index_dir));
    }
    for (subject, port) in [
        ("CQL port", resolved.cql_port),
        ("HTTP port", resolved.http_port),
    ] {
        findings.push(ports::finding(subject, resolved.listen, port, is_running));
    }
    findings.extend(service::findings(answers));
    findings
}

/// The report for people, in a screen.
fn shown(report: &DoctorReport) -> String {
    let subjects = report.findings.iter().map(|it| it.subject.len());
    let width = subjects.max().unwrap_or(0);
    let mut text = format!("{}\n\n", report.program);
    for finding in &report.findings {
        let grade = match finding.grade {
            FindingGrade::Good => "ok",
            FindingGrade::Advice => "advice",
            FindingGrade::Wrong => "WRONG",
        };
        let DoctorFinding { subject, found, .. } = finding;
        text += &format!("{grade:6}  {subject:width$}  {found}\n");
        if let Some(remedy) = &finding.remedy {
            text += &format!("{:6}  {:width$}  -> {remedy}\n", "", "");
        }
    }
    text
}

/// A number of bytes for people.
fn bytes_text(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    match bytes {
        GIB.. => {
            let tenths = u128::from(bytes) * 10 / u128::from(GIB);
            format!("{}.{} GiB", tenths / 10, tenths % 10)
        }
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_a_finding_and_one_for_its_remedy() {
        let report = DoctorReport {
            program: "annulus 1",
            findings: vec![
                DoctorFinding::good("clock", "synchronised"),
                DoctorFinding::wrong("CQL port", "taken", "choose another"),
            ],
        };
        assert_eq!(
            shown(&report),
            "annulus 1\n\nok      clock     synchronised\nWRONG   CQL port  taken\n                  -> choose another\n"
        );
    }

    #[test]
    fn settings_that_cannot_be_used_are_a_finding() {
        let given = Settings {
            listen: Some([0, 0, 0, 0].into()),
            ..Settings::default()
        };
        let read = ServerSettings::read(&given, None).unwrap();
        assert_eq!(read.finding.grade, FindingGrade::Wrong);
        assert!(
            read.finding.found.contains("--insecure"),
            "{}",
            read.finding.found
        );
        assert!(read.resolved.listen.is_loopback());
        let missing = PathBuf::from("/nowhere/annulus.toml");
        let read = ServerSettings::read(&Settings::default(), Some(&missing)).unwrap();
        assert!(
            read.finding.found.contains("/nowhere"),
            "{}",
            read.finding.found
        );
    }

    #[test]
    fn the_service_is_that_of_the_settings_unless_its_port_is_any() {
        let service = |port| {
            let given = Settings {
                listen: Some([0, 0, 0, 0].into()),
                insecure: Some(true),
                http_port: Some(port),
                ..Settings::default()
            };
            ServerSettings::read(&given, None).unwrap().service()
        };
        assert_eq!(service(7000).as_deref(), Some("http://127.0.0.1:7000"));
        assert_eq!(service(0), None);
    }

    #[test]
    fn bytes_are_mebibytes_up_to_a_gibibyte() {
        assert_eq!(bytes_text(512 << 20), "512 MiB");
        assert_eq!(bytes_text(3 << 29), "1.5 GiB");
    }
}
