//! Sections of a program that tests a driver. A section fails by a panic.

pub mod certificates;

use std::fmt::Debug;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

/// How long a program waits for what comes by itself.
const WAIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

pub struct Section<'a> {
    name: &'static str,
    body: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

pub fn section<'a>(name: &'static str, body: impl Future<Output = ()> + 'a) -> Section<'a> {
    let body = Box::pin(body);
    Section { name, body }
}

/// Runs sections one after the other, and prints a line for each: "NAME ok", or
/// "NAME failed: REASON".
pub async fn run(sections: impl IntoIterator<Item = Section<'_>>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for Section { name, body } in sections {
        match AssertUnwindSafe(body).catch_unwind().await {
            Ok(()) => println!("{name} ok"),
            Err(reason) => {
                let text = reason
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| reason.downcast_ref::<&str>().copied());
                let text = text.unwrap_or("a panic without a text");
                println!("{name} failed: {}", text.replace('\n', " "));
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Checks that a value is the expected one. As text, so that NaN is equal to itself.
#[track_caller]
pub fn equal(found: impl Debug, expected: impl Debug, what: &str) {
    let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
    assert!(
        found == expected,
        "{what}: {found:.200}, not {expected:.200}"
    );
}

/// Waits until something holds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < WAIT, "not within {WAIT:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// How an attempt ended that must end by itself.
pub async fn in_time<T>(attempt: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(WAIT, attempt).await;
    ended.unwrap_or_else(|_| panic!("it did not end within {WAIT:?}"))
}
