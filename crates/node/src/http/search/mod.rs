//! `POST /api/v1/tables/{keyspace}/{table}/search`: the best rows by vectors, by words or by both.
//!
//! A search becomes one SELECT (`select`): what WHERE has a form for is there, and conditions with
//! OR and NOT go along with it (`filter`). The rest of a request is done on its rows (`answer`).

mod answer;
mod body;
mod filter;
mod queries;
mod select;

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use body::RowSearchBody;
use schema::Table;

use super::Shared;
use super::answers::JsonWriter;
use super::call::{CallKind, TableCall, json};
use super::failure::HttpFailure;
use super::names::table_of;
use super::rows::TablePath;
use super::statements::WantedPage;

/// The most searches of a request.
const SEARCHES_MAX: usize = 100;

/// `POST .../search`.
pub(super) async fn run(
    State(tables): State<Shared>,
    Path((keyspace, table)): TablePath,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, body) = TableCall::with_body(tables, request, CallKind::Reads).await?;
    let work = async {
        let given: RowSearchBody<'_> = json(&body.bytes)?;
        let table = table_of(&call.tables, &keyspace, &table)?;
        match given.several()? {
            None => search(&call, &table, &given).await,
            Some(searches) if searches.len() > SEARCHES_MAX => Err(HttpFailure::bad_request(
                format!("a request has {SEARCHES_MAX} searches at most"),
                "send several requests",
            )),
            Some(searches) => several(&call, &table, searches).await,
        }
    };
    call.answer(work).await
}

/// Answers several searches, one after the other: the memory of one is free for the next.
async fn several(
    call: &TableCall,
    table: &Arc<Table>,
    searches: &[RowSearchBody<'_>],
) -> Result<String, HttpFailure> {
    let mut text = JsonWriter::new(call);
    text.put("{\"answers\":[");
    for (at, one) in searches.iter().enumerate() {
        if at > 0 {
            text.put(",");
        }
        let answer = search(call, table, one).await;
        let answer = answer.map_err(|failure| failure.at(&format!("search {}", at + 1)))?;
        text.put_charged(&answer)?;
    }
    text.put("]}");
    Ok(text.finish())
}

/// Answers one search.
async fn search(
    call: &TableCall,
    table: &Arc<Table>,
    given: &RowSearchBody<'_>,
) -> Result<String, HttpFailure> {
    let queries = queries::resolve(call, table, given).await?;
    let composed = select::compose(table, given, queries)?;
    let session = match &composed.condition {
        None => call.session.clone(),
        Some(condition) => call.session.with_condition(condition.clone())?,
    };
    let page = WantedPage::default();
    let found = call.execute_in(&session, &composed.statement, page).await?;
    answer::write(call, given, &composed, &found)
}
