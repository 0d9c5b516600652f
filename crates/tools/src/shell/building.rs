//! Searches of an index that is still being built.
//!
//! `CREATE CUSTOM INDEX` answers before a large index is built, and a search of it is refused
//! meanwhile. Who pastes both wants the rows: the shell sends the search again until it is
//! answered.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::ToolError;

/// Part of the error of such a search, which goes on with the share that is done.
const IS_BUILDING: &str = "is still being constructed";

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// A build that has come no further for so long is not waited for.
const STALLED: Duration = Duration::from_secs(60);

/// Sends a request until no index is being built that it needs. `say` gets one line for the user,
/// before the first pause.
pub(super) async fn answered_when_built<T>(
    mut send: impl AsyncFnMut() -> Result<T, ToolError>,
    say: impl Fn(&str),
) -> Result<T, ToolError> {
    let mut last = String::new();
    let mut since = Instant::now();
    loop {
        let refusal = match send().await {
            Err(ToolError::Statement(text)) if text.contains(IS_BUILDING) => text,
            answered => return answered,
        };
        if last.is_empty() {
            say(&format!("{}; waiting for it", words_of_index(&refusal)));
        }
        if refusal != last {
            (last, since) = (refusal, Instant::now());
        } else if since.elapsed() >= STALLED {
            return Err(ToolError::Statement(refusal));
        }
        sleep(PAUSE).await;
    }
}

/// A refusal without what comes before the words of the index service.
fn words_of_index(refusal: &str) -> &str {
    const BEFORE: &str = "message: ";
    let at = refusal.rfind(BEFORE);
    at.map_or(refusal, |at| &refusal[at + BEFORE.len()..])
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn refusal(done: &str) -> Result<u8, ToolError> {
        let text = format!("Invalid: Vector Store error: message: Index k.v {IS_BUILDING}: {done}");
        Err(ToolError::Statement(text))
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_is_sent_until_its_index_is_built() {
        let answers = RefCell::new(vec![Ok(7), refusal("90% done"), refusal("10% done")]);
        let said = RefCell::new(Vec::new());
        let answer = answered_when_built(
            async || answers.borrow_mut().pop().unwrap(),
            |line| said.borrow_mut().push(line.to_owned()),
        );
        assert_eq!(answer.await, Ok(7));
        let line = "Index k.v is still being constructed: 10% done; waiting for it";
        assert_eq!(said.into_inner(), [line]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_build_that_comes_no_further_is_given_up() {
        let begun = Instant::now();
        let answer = answered_when_built(async || refusal("10% done"), |_| ());
        assert_eq!(answer.await, refusal("10% done"));
        assert!((STALLED..2 * STALLED).contains(&begun.elapsed()));
    }

    #[tokio::test(start_paused = true)]
    async fn another_refusal_is_passed_on_at_once() {
        let sent = Cell::new(0);
        let other = || Err::<u8, _>(ToolError::Statement("no such table".to_owned()));
        let answer = answered_when_built(
            async || {
                sent.set(sent.get() + 1);
                other()
            },
            |_| panic!("nothing to say"),
        );
        assert_eq!(answer.await, other());
        assert_eq!(sent.get(), 1);
    }
}
