//! Consistency levels: their names and their codes on the wire.

use std::fmt;
use std::str::FromStr;

/// A consistency level: the number of replicas that must answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
#[expect(
    missing_docs,
    reason = "the variants are the protocol's own names of the levels"
)]
pub enum Consistency {
    Any = 0x00,
    #[default]
    One = 0x01,
    Two = 0x02,
    Three = 0x03,
    Quorum = 0x04,
    All = 0x05,
    LocalQuorum = 0x06,
    EachQuorum = 0x07,
    Serial = 0x08,
    LocalSerial = 0x09,
    LocalOne = 0x0A,
}

impl Consistency {
    /// Every level, in the order of the codes.
    pub const EVERY: [Consistency; 11] = [
        Consistency::Any,
        Consistency::One,
        Consistency::Two,
        Consistency::Three,
        Consistency::Quorum,
        Consistency::All,
        Consistency::LocalQuorum,
        Consistency::EachQuorum,
        Consistency::Serial,
        Consistency::LocalSerial,
        Consistency::LocalOne,
    ];

    /// The code on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Finds a level by its code; `None` if the code is unknown.
    pub fn from_code(code: u16) -> Option<Consistency> {
        Consistency::EVERY.get(usize::from(code)).copied()
    }

    /// The name as the database writes it: `LOCAL_QUORUM`.
    pub fn name(self) -> &'static str {
        match self {
            Consistency::Any => "ANY",
            Consistency::One => "ONE",
            Consistency::Two => "TWO",
            Consistency::Three => "THREE",
            Consistency::Quorum => "QUORUM",
            Consistency::All => "ALL",
            Consistency::LocalQuorum => "LOCAL_QUORUM",
            Consistency::EachQuorum => "EACH_QUORUM",
            Consistency::Serial => "SERIAL",
            Consistency::LocalSerial => "LOCAL_SERIAL",
            Consistency::LocalOne => "LOCAL_ONE",
        }
    }

    /// Whether the level is for the serial phase of a conditional write.
    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that no consistency level has. It holds the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown consistency level '{0}'")]
pub struct UnknownConsistency(pub String);

impl FromStr for Consistency {
    type Err = UnknownConsistency;

    /// Finds a level by its name, in upper or lower case.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Consistency::EVERY
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownConsistency(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_lead_back() {
        for level in Consistency::EVERY {
            assert_eq!(Consistency::from_code(level.code()), Some(level));
            assert_eq!(level.name().to_lowercase().parse(), Ok(level));
        }
        assert_eq!(Consistency::LocalOne.code(), 10);
        assert_eq!(Consistency::from_code(11), None);
        assert!("LOCAL".parse::<Consistency>().is_err());
    }
}
