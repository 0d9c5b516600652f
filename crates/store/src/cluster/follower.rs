//! Follows a log with the official CDC library.
//!
//! The library reads windows of time from every stream of the log and never goes back.

use std::sync::Arc;
use std::time::Duration;

use scylla_cdc::log_reader::CDCLogReaderBuilder;

use super::consumer::HintConsumers;
use super::reports::ProgressReports;
use super::session::DbSession;
use crate::database::LogRun;
use crate::options::ReaderOptions;

/// The longest interval at which a reader reports its progress. A reader with short pauses does so
/// twice in each.
const REPORTS_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// The shortest such interval. Each stream reports by itself, and there may be thousands.
const REPORTS_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// The time that a reader lags is read in this many windows. There is a pause after each window, so
/// 24 hours in windows of a minute would take hours.
const WINDOWS_BEHIND: u32 = 24;

/// The shortest window. The readers of a new index begin ten minutes back. With shorter windows
/// they would take several pauses before they reach the present.
const WINDOW_MIN: Duration = Duration::from_secs(600);
/// The longest window.
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// Follows a log on one session until that fails. With `tells_positions` the indexes of the table
/// hear how far the log has been read.
pub(super) async fn follow(
    db: &DbSession,
    options: &ReaderOptions,
    run: LogRun,
    tells_positions: bool,
) -> anyhow::Result<()> {
    run.is_up();
    let run = Arc::new(run);
    let reports = ProgressReports::new(db.session.clone(), run.clone(), tells_positions);
    let reports_interval =
        (options.sleep_interval / 2).clamp(REPORTS_INTERVAL_MIN, REPORTS_INTERVAL_MAX);
    let start = run.from();
    let behind = run.now().saturating_sub(start);
    let window = (behind / WINDOWS_BEHIND).clamp(WINDOW_MIN, WINDOW_MAX);
    let (reader, ended) = CDCLogReaderBuilder::new()
        .session(db.session.clone())
        .keyspace(&run.table().keyspace)
        .table_name(&run.table().table)
        .start_timestamp(start)
        .window_size(window)
        .safety_interval(options.safety_interval)
        .sleep_interval(options.sleep_interval)
        .should_save_progress(true)
        .pause_between_saves(reports_interval)
        .checkpoint_saver(Arc::new(reports))
        .consumer_factory(Arc::new(HintConsumers::new(run)))
        .build()
        .await?;
    // Dropping the handle, as losing the session does, ends the reader and its tasks.
    let ended = ended.await;
    drop(reader);
    ended
}
