//! Names and strings as CQL text.

use std::fmt;

pub use value::identifier::{Identifier, quoted};

/// A string as a CQL literal, in single quotes.
pub struct StringLiteral<'a>(pub &'a str);

impl fmt::Display for StringLiteral<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// A map of strings as a CQL literal, in the order in which the map gives its entries.
pub struct MapLiteral<'a, M>(pub &'a M);

impl<'a, M> fmt::Display for MapLiteral<'a, M>
where
    &'a M: IntoIterator<Item = (&'a String, &'a String)>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (position, (key, value)) in self.0.into_iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(
                f,
                "{separator}{}: {}",
                StringLiteral(key),
                StringLiteral(value)
            )?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_go_without_quotes() {
        for (name, text) in [
            ("films", "films"),
            ("a_1", "a_1"),
            ("1a", "\"1a\""),
            ("_a", "\"_a\""),
            ("Films", "\"Films\""),
            ("table", "\"table\""),
            ("", "\"\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("cdc$time", "\"cdc$time\""),
        ] {
            assert_eq!(Identifier(name).to_string(), text);
        }
    }

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(StringLiteral("it's").to_string(), "'it''s'");
    }
}
