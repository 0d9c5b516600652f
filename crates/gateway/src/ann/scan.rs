//! A query whose rows the index can't name: all rows of the table are read, and ranked by their
//! vectors.
//!
//! That happens where WHERE names a column that the index doesn't keep, and the most neighbours
//! that one answer can name hold fewer than LIMIT rows that satisfy it.

use cql::error::CqlError;
use cql::wire::{Response, ResponseContext};
use query::Nearest;

use super::execution::{Search, add_to, unreadable};
use super::key_read::Layout;
use super::rows::Row;
use crate::inquiry::{Failure, Inquirer};

/// The number of rows that are read at a time.
const PAGE_ROWS: u32 = 1_000;

/// Reads all rows, and answers with the nearest of those that satisfy WHERE. `context` holds what
/// was said to the client so far.
///
/// # Errors
/// The errors of the cluster.
pub(super) async fn answer(
    search: &Search<'_>,
    mut context: ResponseContext,
    node: &Inquirer,
) -> Result<(ResponseContext, Response), Failure> {
    let metric = search.plan.candidates.metric;
    let mut nearest: Nearest<Row> = Nearest::new(search.limit);
    let mut paging_state = None;
    let mut known = None;
    let (columns, layout) = loop {
        let (said, response) = node
            .ask(&search.page(PAGE_ROWS, paging_state), false)
            .await?;
        add_to(&mut context, said);
        let Response::Rows(page) = response else {
            return Err(Failure::Cql(CqlError::server(
                "Cassandra answered a read with something else than rows",
            )));
        };
        let page = page.decode().map_err(|error| unreadable(&error))?;
        let columns = page.metadata.unwrap_or_default();
        if *known.get_or_insert_with(|| columns.clone()) != columns {
            return Err(Failure::Cql(CqlError::server(
                "the table was altered while its rows were read: try again",
            )));
        }
        let layout = search.plan.scan.layout(&columns)?;
        let wanted = page
            .rows
            .into_iter()
            .filter(|row| search.is_wanted(row, &layout));
        for row in wanted {
            if let Some(score) = score(search, &row, &layout, metric) {
                nearest.push(score, row);
            }
        }
        paging_state = page.paging_state;
        if paging_state.is_none() {
            break (columns, layout);
        }
    };
    let rows: Vec<Row> = nearest.into_best().collect();
    Ok(search.encoded(&rows, &columns, &layout, context))
}

/// The similarity of a row's vector to the one that is looked for; `None` for a row without one.
fn score(search: &Search<'_>, row: &Row, layout: &Layout, metric: index::Metric) -> Option<f32> {
    let stored = row.get(layout.vector?)?.as_ref()?;
    Some(metric.score(&search.vector, stored))
}
