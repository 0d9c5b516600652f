//! Reads the text of a type as [`CqlType`]'s `Display` writes it.

use cql::types::CqlType;

pub(super) fn parse(text: &str) -> Option<CqlType> {
    let mut rest = text;
    let parsed = one(&mut rest, false)?;
    rest.is_empty().then_some(parsed)
}

fn word<'a>(rest: &mut &'a str) -> &'a str {
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    *rest = behind;
    word
}

fn expect(rest: &mut &str, text: &str) -> Option<()> {
    *rest = rest.strip_prefix(text)?;
    Some(())
}

fn boxed(rest: &mut &str) -> Option<Box<CqlType>> {
    one(rest, false).map(Box::new)
}

fn one(rest: &mut &str, frozen: bool) -> Option<CqlType> {
    Some(match word(rest) {
        "ascii" => CqlType::Ascii,
        "bigint" => CqlType::Bigint,
        "blob" => CqlType::Blob,
        "boolean" => CqlType::Boolean,
        "counter" => CqlType::Counter,
        "date" => CqlType::Date,
        "decimal" => CqlType::Decimal,
        "double" => CqlType::Double,
        "duration" => CqlType::Duration,
        "float" => CqlType::Float,
        "inet" => CqlType::Inet,
        "int" => CqlType::Int,
        "smallint" => CqlType::Smallint,
        "text" => CqlType::Text,
        "time" => CqlType::Time,
        "timestamp" => CqlType::Timestamp,
        "timeuuid" => CqlType::Timeuuid,
        "tinyint" => CqlType::Tinyint,
        "uuid" => CqlType::Uuid,
        "varint" => CqlType::Varint,
        "frozen" => {
            expect(rest, "<")?;
            let inner = one(rest, true)?;
            expect(rest, ">")?;
            inner
        }
        "list" => {
            expect(rest, "<")?;
            let element = boxed(rest)?;
            expect(rest, ">")?;
            CqlType::List { element, frozen }
        }
        "set" => {
            expect(rest, "<")?;
            let element = boxed(rest)?;
            expect(rest, ">")?;
            CqlType::Set { element, frozen }
        }
        "map" => {
            expect(rest, "<")?;
            let key = boxed(rest)?;
            expect(rest, ", ")?;
            let value = boxed(rest)?;
            expect(rest, ">")?;
            CqlType::Map { key, value, frozen }
        }
        "tuple" => {
            expect(rest, "<")?;
            let mut types = vec![one(rest, false)?];
            while expect(rest, ", ").is_some() {
                types.push(one(rest, false)?);
            }
            expect(rest, ">")?;
            CqlType::Tuple(types)
        }
        "vector" => {
            expect(rest, "<")?;
            let element = boxed(rest)?;
            expect(rest, ", ")?;
            let dimensions = word(rest).parse().ok()?;
            expect(rest, ">")?;
            CqlType::Vector {
                element,
                dimensions,
            }
        }
        _ => return None,
    })
}
