//! `annulus backup status` and `annulus backup stop-schedule`.

use anyhow::bail;
use store_api::types::{BackupLocationStatus, BackupScheduleStatus, BackupsStatus};

use super::location::LocationFlags;
use crate::operator::ServiceArguments;
use crate::operator::task_commands::details;

/// Shows the backups of a running service.
///
/// # Errors
/// If the service can't be reached.
pub async fn show(asking: &ServiceArguments) -> anyhow::Result<()> {
    let client = asking.client().await?;
    let status = client.backups().await;
    let status = status.map_err(|error| asking.explain(error))?;
    asking.print(&status, shown)
}

/// Ends the schedule of a location.
///
/// # Errors
/// If the location has none.
pub async fn stop_schedule(asking: &ServiceArguments, place: &LocationFlags) -> anyhow::Result<()> {
    let location = place.place()?.location;
    let client = asking.client().await?;
    let status = client.backups().await;
    let status = status.map_err(|error| asking.explain(error))?;
    let mut schedules = status.schedules.into_iter();
    let Some(schedule) = schedules.find(|schedule| schedule.location == location) else {
        bail!("{location} has no schedule; `annulus backup status` shows those that there are");
    };
    let removed = client.remove_backup_schedule(&schedule.id).await;
    let removed = removed.map_err(|error| asking.explain(error))?;
    asking.print(&removed, |removed| {
        format!("the schedule of {} has ended\n", removed.location)
    })
}

fn shown(status: &BackupsStatus) -> String {
    let mut text = String::new();
    if let Some(running) = &status.running {
        text += &details(running);
    }
    if status.schedules.is_empty() {
        text += "no schedule\n";
    }
    for schedule in &status.schedules {
        text += &shown_schedule(schedule);
    }
    for location in &status.locations {
        text += &shown_location(location);
    }
    if let Some(leaves_out) = &status.leaves_out {
        text += &format!("note       {leaves_out}\n");
    }
    text
}

fn shown_schedule(schedule: &BackupScheduleStatus) -> String {
    let times = |interval_s: Option<u64>, cron: Option<&String>| match (interval_s, cron) {
        (Some(s), _) => format!("every {s} s"),
        (None, Some(line)) => format!("at {line}"),
        (None, None) => "never".to_owned(),
    };
    let retention = schedule.retention;
    format!(
        "schedule   {}\n  backups  {}, next {}, points that remain: {}\n  drills   {}, next {}\n",
        schedule.location,
        times(schedule.interval_s, schedule.cron.as_ref()),
        or_none(schedule.next_time.as_deref()),
        retention.map_or_else(|| "all".to_owned(), |points| points.to_string()),
        times(schedule.drill_interval_s, schedule.drill_cron.as_ref()),
        or_none(schedule.next_drill_time.as_deref()),
    )
}

fn shown_location(location: &BackupLocationStatus) -> String {
    let mut text = format!(
        "location   {}\n  last     {}, begun {}, complete {}, {:.1} s, {} bytes in {} objects sent, {} points\n",
        location.location,
        or_none(location.last_point.as_deref()),
        or_none(location.last_attempt_time.as_deref()),
        or_none(location.last_success_time.as_deref()),
        location.duration_s,
        location.sent_bytes,
        location.sent_objects,
        location.points,
    );
    if let Some(error) = &location.last_error {
        text += &format!("  error    {error}\n");
    }
    if let Some(time) = &location.last_drill_time {
        let outcome = match location.drill_ok {
            Some(true) => "no difference",
            _ => "failed",
        };
        text += &format!("  drill    {time}, {outcome}\n");
    }
    if let Some(error) = &location.drill_error {
        text += &format!("  error    {error}\n");
    }
    text
}

fn or_none(text: Option<&str>) -> &str {
    text.unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_shown_with_times_and_errors() {
        let status: BackupsStatus = serde_json::from_value(serde_json::json!({
            "schedules": [{"id": "1", "location": "s3:b/p", "cron": "0 3 * * *", "retention": 7, "next_time": "T"}],
            "locations": [{"location": "s3:b/p", "last_point": "P", "last_error": "why", "drill_ok": true,
                           "last_drill_time": "D"}],
        }))
        .unwrap();
        let text = shown(&status);
        for part in [
            "at 0 3 * * *, next T",
            "remain: 7",
            "error    why",
            "D, no difference",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(shown(&BackupsStatus::default()), "no schedule\n");
    }
}
