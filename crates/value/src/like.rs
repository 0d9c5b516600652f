//! Patterns of LIKE, as in ScyllaDB: `%` matches any text, `_` for one character, and `\` takes
//! their meaning from these and from itself.

use crate::ValueError;

/// The most characters of a pattern. A match may take as long as the product of the lengths.
const CHARACTERS_MAX: usize = 1_024;

/// A pattern that texts match or don't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikePattern {
    parts: Vec<PatternPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternPart {
    /// This very character.
    Character(char),
    /// Any one character.
    One,
    /// Any characters, or none.
    Any,
}

impl LikePattern {
    /// Reads a pattern, which is UTF-8. A `\` at its end matches itself.
    ///
    /// # Errors
    /// A pattern that is too long, or no UTF-8.
    pub fn new(pattern: &[u8]) -> Result<LikePattern, ValueError> {
        let pattern = std::str::from_utf8(pattern)
            .map_err(|_| ValueError("a pattern of LIKE is no UTF-8".to_owned()))?;
        if pattern.chars().nth(CHARACTERS_MAX).is_some() {
            return Err(ValueError(format!(
                "a pattern of LIKE has at most {CHARACTERS_MAX} characters"
            )));
        }
        let mut characters = pattern.chars();
        let mut parts = Vec::new();
        while let Some(character) = characters.next() {
            let part = match character {
                '%' => PatternPart::Any,
                '_' => PatternPart::One,
                '\\' => PatternPart::Character(characters.next().unwrap_or('\\')),
                other => PatternPart::Character(other),
            };
            // Two of them match what one matches.
            if part != PatternPart::Any || parts.last() != Some(&PatternPart::Any) {
                parts.push(part);
            }
        }
        Ok(LikePattern { parts })
    }

    /// Whether the whole text, which is UTF-8, matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else {
            return false;
        };
        let mut rest = text.chars();
        let mut at = 0;
        // Where to go on if the parts after the last `%` don't match: it takes one character more.
        let mut again: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let mut ahead = rest.clone();
            let matched = match (self.parts.get(at), ahead.next()) {
                (Some(PatternPart::Any), _) => {
                    at += 1;
                    again = Some((at, rest.clone()));
                    continue;
                }
                (None, None) => return true,
                (Some(PatternPart::One), Some(_)) => true,
                (Some(PatternPart::Character(wanted)), Some(found)) => *wanted == found,
                (None, Some(_)) | (Some(_), None) => false,
            };
            if matched {
                at += 1;
                rest = ahead;
                continue;
            }
            let Some((behind, from)) = &mut again else {
                return false;
            };
            if from.next().is_none() {
                return false;
            }
            at = *behind;
            rest = from.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_as_wholes() {
        for (pattern, texts, others) in [
            ("abc", &["abc"][..], &["", "ab", "abcd", "Abc"][..]),
            ("", &[""], &["a"]),
            ("%", &["", "a", "%"], &[]),
            ("a%", &["a", "abc"], &["", "ba"]),
            ("%c", &["c", "abc", "cc"], &["cd"]),
            ("a%c", &["ac", "abcbc"], &["a", "acb"]),
            ("%b%", &["b", "abc", "bb"], &["ac"]),
            ("a%b%%c", &["abc", "axbyc", "abbcc"], &["acb", "ab"]),
            ("_", &["a", "é", "_"], &["", "ab"]),
            ("a_c%", &["abc", "aéc!"], &["ac", "abbc"]),
            ("%_", &["a", "ab"], &[""]),
            (r"\%", &["%"], &["a", r"\%"]),
            (r"100\%%", &["100%", "100% of"], &["1000"]),
            (r"\_\\", &[r"_\"], &[r"a\"]),
            (r"a\", &[r"a\"], &["a"]),
            (r"\a", &["a"], &[r"\a"]),
        ] {
            let like = LikePattern::new(pattern.as_bytes()).unwrap();
            for text in texts {
                assert!(like.matches(text.as_bytes()), "{text} LIKE {pattern}");
            }
            for text in others {
                assert!(!like.matches(text.as_bytes()), "{text} LIKE {pattern}");
            }
        }
    }

    #[test]
    fn many_wildcards_take_no_exponential_time() {
        let pattern = LikePattern::new("%a".repeat(500).as_bytes()).unwrap();
        assert!(!pattern.matches(format!("{}b", "a".repeat(5_000)).as_bytes()));
        assert!(pattern.matches("a".repeat(5_000).as_bytes()));
    }

    #[test]
    fn long_patterns_are_refused() {
        assert!(LikePattern::new("é".repeat(CHARACTERS_MAX).as_bytes()).is_ok());
        assert!(LikePattern::new("é".repeat(CHARACTERS_MAX + 1).as_bytes()).is_err());
    }
}
