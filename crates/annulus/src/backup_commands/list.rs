//! `annulus backup list` and `annulus backup verify`, which read a location themselves.

use anyhow::bail;
use backup::{BackupLocation, LocationAccess, PointId, PointSummary};
use jiff::Timestamp;

use super::location::LocationFlags;
use super::progress::TransferLine;
use crate::exit::ProcessFailure;
use crate::operator::ServiceArguments;
use crate::operator::text_table::aligned;

const HEADING: [&str; 7] = [
    "POINT", "TAKEN", "KIND", "TABLES", "BYTES", "SENT", "SERVER",
];

/// Parses the id of a point.
///
/// # Errors
/// If it is none.
pub fn point_id(text: Option<&str>) -> Result<Option<PointId>, ProcessFailure> {
    let parsed: Result<Option<PointId>, _> = text.map(str::parse).transpose();
    parsed.map_err(|error| ProcessFailure::Configuration(error.to_string()))
}

/// Prints the points of a location.
///
/// # Errors
/// If the location can't be read.
pub async fn points(asking: &ServiceArguments, place: &LocationFlags) -> anyhow::Result<()> {
    let location = BackupLocation::open(&place.options()?, LocationAccess::Read).await?;
    let points = location.list().await?;
    asking.print(&points, |points| shown(points))
}

fn shown(points: &[PointSummary]) -> String {
    let lines: Vec<[String; 7]> = points.iter().map(line).collect();
    let mut text = aligned(HEADING, &lines);
    for point in points {
        if let Some(problem) = &point.problem {
            text += &format!("{}: {problem}\n", point.id);
        }
    }
    text
}

fn line(point: &PointSummary) -> [String; 7] {
    let taken = Timestamp::from_microsecond(point.taken_at_micros);
    [
        point.id.to_string(),
        taken.map_or_else(|_| "-".to_owned(), |time| time.to_string()),
        point.kind.to_string(),
        point.tables.len().to_string(),
        point.bytes.to_string(),
        point.sent_bytes.to_string(),
        format!("{} {}", point.server.name, point.server.id),
    ]
}

/// Checks a location, or one of its points, and names each fault.
///
/// # Errors
/// If there is a fault, or the location can't be read.
pub async fn verify(
    asking: &ServiceArguments,
    place: &LocationFlags,
    point: Option<&str>,
) -> anyhow::Result<()> {
    let point = point_id(point)?;
    let location = BackupLocation::open(&place.options()?, LocationAccess::Read).await?;
    let line = TransferLine::of("verify");
    let report = location.verify(point.as_ref(), &line).await;
    line.clear();
    let report = report?;
    asking.print(&report, |report| {
        let problems = report.problems.iter();
        let problems: String = problems.map(|problem| format!("{problem}\n")).collect();
        format!(
            "{problems}{} points, {} objects, {} bytes checked\n",
            report.points, report.objects, report.bytes
        )
    })?;
    match report.problems.len() {
        0 => Ok(()),
        count => bail!(
            "objects that are missing or damaged: {count}; make a backup with --full-check, which sends again what \
             the server still has, or restore an older point"
        ),
    }
}
