//! Lines of the log with the id of the request over HTTP that they belong to.

use std::fmt;

use traces::RequestId;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// A format that adds the id of the request under way, if there is one.
pub struct WithRequestId<F> {
    inner: F,
    /// Adds an id to a line without its end.
    add: fn(&mut String, &RequestId),
}

impl<F> WithRequestId<F> {
    /// A format of text.
    pub fn text(inner: F) -> WithRequestId<F> {
        let add = add_to_text;
        WithRequestId { inner, add }
    }

    /// A format of one JSON object a line.
    pub fn json(inner: F) -> WithRequestId<F> {
        let add = add_to_json;
        WithRequestId { inner, add }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithRequestId<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(id) = RequestId::current() else {
            return self.inner.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.inner
            .format_event(context, Writer::new(&mut line), event)?;
        let length = line.trim_end().len();
        line.truncate(length);
        (self.add)(&mut line, &id);
        writeln!(writer, "{line}")
    }
}

fn add_to_text(line: &mut String, id: &RequestId) {
    line.push_str(" request_id=");
    line.push_str(&id.to_string());
}

fn add_to_json(line: &mut String, id: &RequestId) {
    let Some(length) = line.strip_suffix('}').map(str::len) else {
        return;
    };
    line.truncate(length);
    let id = serde_json::Value::from(id.to_string());
    line.push_str(",\"request_id\":");
    line.push_str(&id.to_string());
    line.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_last_field() {
        let id = RequestId::of("a\"b").expect("an id");
        let mut text = "INFO node: a fact a=1".to_owned();
        add_to_text(&mut text, &id);
        assert_eq!(text, "INFO node: a fact a=1 request_id=a\"b");
        let mut json = "{\"level\":\"INFO\"}".to_owned();
        add_to_json(&mut json, &id);
        assert_eq!(json, "{\"level\":\"INFO\",\"request_id\":\"a\\\"b\"}");
    }
}
