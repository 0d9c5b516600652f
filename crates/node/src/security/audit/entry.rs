//! A line of the audit log.

use serde::Serialize;
use storage::clock::{Clock as _, SystemClock};

use super::names::cut;
use super::{EventCategory, RoleStatementTerms};

/// An event, as its line shows it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct LoggedEvent<'a> {
    pub category: &'static str,
    /// The kind of statement or event, in the words of Cassandra.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The role that has logged in, or that somebody tried to log in as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'a str>,
    /// The address of the client, with its port if it is a client of CQL; empty where a line is of
    /// several.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub source: &'a str,
    /// The id that the lines of a batch share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<&'a str>,
    /// The index of a request by HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<&'a str>,
    /// The terms of a statement about roles.
    #[serde(flatten)]
    pub terms: Option<&'a RoleStatementTerms>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<&'a str>,
    /// The text of the statement, without its secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<&'a str>,
    /// How many times a batch has the statement one after the other, or the number of attempts to
    /// log in that the line covers, if that is more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The kind of error that the client was answered; `None` if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

impl LoggedEvent<'_> {
    /// An event of a category, of which nothing else is known yet.
    pub fn new(category: EventCategory, kind: &'static str) -> Self {
        LoggedEvent {
            category: category.name(),
            kind,
            ..LoggedEvent::default()
        }
    }

    /// Appends the line, with the present time. Names are cut, so that the length of a line has a
    /// bound: about six bytes for each that a text and its names have at most.
    pub fn put(&self, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct TimestampedEvent<'a> {
            time: String,
            #[serde(flatten)]
            entry: LoggedEvent<'a>,
        }
        let entry = LoggedEvent {
            role: self.role.map(cut),
            keyspace: self.keyspace.map(cut),
            table: self.table.map(cut),
            index: self.index.map(cut),
            ..*self
        };
        let micros = SystemClock.now_micros();
        let time = jiff::Timestamp::from_microsecond(micros);
        let line = TimestampedEvent {
            time: time.map_or_else(|_| micros.to_string(), |time| time.to_string()),
            entry,
        };
        // Neither a text nor a list of bytes can fail to be written.
        if serde_json::to_writer(&mut *out, &line).is_ok() {
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::NAME_BYTES_MAX;
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_its_texts_hold() {
        let entry = LoggedEvent {
            role: Some("a\n\"b\""),
            source: "127.0.0.1:5",
            statement: Some("SELECT '\u{7}\r\n' FROM t"),
            times: Some(2),
            ..LoggedEvent::new(EventCategory::Query, "SELECT")
        };
        let mut out = Vec::new();
        entry.put(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        let mut read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let time = read["time"].take();
        assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
        let expected = serde_json::json!({
            "time": null, "category": "QUERY", "type": "SELECT", "role": "a\n\"b\"",
            "source": "127.0.0.1:5", "statement": "SELECT '\u{7}\r\n' FROM t", "times": 2,
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn the_names_of_a_line_are_cut() {
        let long = "\u{1}".repeat(1 << 20);
        let name = Some(long.as_str());
        let entry = LoggedEvent {
            role: name,
            keyspace: name,
            table: name,
            index: name,
            ..LoggedEvent::new(EventCategory::Ddl, "DROP_TABLE")
        };
        let mut out = Vec::new();
        entry.put(&mut out);
        assert!(out.len() < 4 * 6 * NAME_BYTES_MAX + 200, "{}", out.len());
    }
}
