//! Functions whose value changes with each call, such as now(). The gateway evaluates them in a
//! key, so that the log row names the row that is written.

use cql::ast::Term;
use cql::parser::replace_calls;
use uuid::Uuid;
use value::timeuuid;

use crate::log_clock::LogClock;

/// A function without arguments whose value changes with each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VolatileFunction {
    TimeUuid,
    Uuid,
    Timestamp,
    Date,
    Time,
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The value of a `date` that represents 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

impl VolatileFunction {
    /// The function of this name, which must be in lower case.
    fn of(name: &str) -> Option<VolatileFunction> {
        Some(match name {
            "now" | "currenttimeuuid" | "current_timeuuid" => VolatileFunction::TimeUuid,
            "uuid" => VolatileFunction::Uuid,
            "currenttimestamp" | "current_timestamp" => VolatileFunction::Timestamp,
            "currentdate" | "current_date" => VolatileFunction::Date,
            "currenttime" | "current_time" => VolatileFunction::Time,
            _ => return None,
        })
    }

    /// Evaluates the call. Returns a constant with its type, as CQL text.
    fn evaluate(self, clock: &LogClock) -> String {
        let time = clock.next();
        let micros = timeuuid::unix_micros(&time);
        match self {
            VolatileFunction::TimeUuid => format!("(timeuuid){time}"),
            VolatileFunction::Uuid => format!("(uuid){}", Uuid::new_v4()),
            VolatileFunction::Timestamp => format!("(timestamp){}", micros.div_euclid(1_000)),
            VolatileFunction::Date => {
                format!("(date){}", micros.div_euclid(MICROS_PER_DAY) + EPOCH_DAY)
            }
            VolatileFunction::Time => {
                format!("(time){}", micros.rem_euclid(MICROS_PER_DAY) * 1_000)
            }
        }
    }
}

/// Whether a term contains such a call.
pub(super) fn are_in(term: &Term) -> bool {
    match term {
        Term::Function(call) => {
            call.arguments.is_empty()
                && VolatileFunction::of(&call.name.to_ascii_lowercase()).is_some()
                || call.arguments.iter().any(are_in)
        }
        Term::TypeHint { term, .. } => are_in(term),
        Term::List(terms) | Term::Set(terms) | Term::Tuple(terms) => terms.iter().any(are_in),
        Term::Map(entries) => entries
            .iter()
            .any(|(key, value)| are_in(key) || are_in(value)),
        Term::UserType(fields) => fields.iter().any(|(_, value)| are_in(value)),
        Term::Marker(_) | Term::Null | Term::Literal(_) => false,
    }
}

/// A statement in which each such call is replaced by a value of the present. Bind markers stay as
/// they are.
pub(super) fn evaluated(text: &str, clock: &LogClock) -> String {
    replace_calls(text, |name| {
        VolatileFunction::of(name).map(|call| call.evaluate(clock))
    })
    .unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_gets_a_value_of_its_own() {
        let text = "INSERT INTO t (a, b, c) VALUES (now(), system.uuid(), NOW()) -- ?";
        let clock = LogClock::default();
        let told = evaluated(text, &clock);
        let uuids: Vec<&str> = told
            .split(['(', ')', ',', ' '])
            .filter(|word| Uuid::try_parse(word).is_ok())
            .collect();
        let [first, random, second] = uuids[..] else {
            panic!("{told}");
        };
        assert_ne!(first, second);
        assert_eq!(
            told,
            format!(
                "INSERT INTO t (a, b, c) VALUES ((timeuuid){first}, (uuid){random}, (timeuuid){second}) -- ?"
            )
        );
        assert_eq!(evaluated("SELECT f()", &clock), "SELECT f()");
    }

    #[test]
    fn times_are_those_of_the_clock() {
        let clock = LogClock::default();
        let number = |text: &str| -> i64 {
            let told = evaluated(text, &clock);
            told.split(')').nth(1).unwrap().parse().unwrap()
        };
        let now = timeuuid::unix_micros(&clock.next());
        assert!((0..60_000).contains(&(number("currentTimestamp()") - now / 1_000)));
        let days = number("current_date()") - EPOCH_DAY - now / MICROS_PER_DAY;
        assert!((0..=1).contains(&days), "{days}");
        assert!((0..MICROS_PER_DAY * 1_000).contains(&number("CurrentTime()")));
    }
}
