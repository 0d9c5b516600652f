//! Words that differ in few letters.

/// A word, and how many edits a term may be away from it: a letter more, less or another, or two
/// neighbours in each other's place. No edit changes what another has changed. This is the distance
/// of tantivy's `FuzzyTermQuery`, computed without its automaton, which takes a megabyte for a long
/// word: a few documents are compared, not a dictionary.
pub(crate) struct FuzzyWord {
    letters: Vec<char>,
    distance: usize,
    /// The distances of the word's beginnings to the last three beginnings of a term.
    rows: [Vec<usize>; 3],
}

impl FuzzyWord {
    pub(crate) fn new(word: &str, distance: u8) -> FuzzyWord {
        let letters: Vec<char> = word.chars().collect();
        let row = || vec![0; letters.len() + 1];
        let rows = [row(), row(), row()];
        FuzzyWord {
            letters,
            distance: usize::from(distance),
            rows,
        }
    }

    /// Whether a term is within the distance.
    pub(crate) fn accepts(&mut self, term: &str) -> bool {
        let length = self.letters.len();
        if term.chars().count().abs_diff(length) > self.distance {
            return false;
        }
        let [before, last, row] = &mut self.rows;
        for (at, distance) in last.iter_mut().enumerate() {
            *distance = at;
        }
        let mut previous = None;
        for (read, letter) in (1..).zip(term.chars()) {
            row[0] = read;
            for at in 1..=length {
                let own = self.letters[at - 1];
                let other = last[at - 1] + usize::from(own != letter);
                let mut distance = other.min(last[at] + 1).min(row[at - 1] + 1);
                let is_swapped = at > 1 && previous == Some(own) && self.letters[at - 2] == letter;
                if is_swapped {
                    distance = distance.min(before[at - 2] + 1);
                }
                row[at] = distance;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, row);
            previous = Some(letter);
        }
        last[length] <= self.distance
    }
}

#[cfg(test)]
mod tests {
    use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_are_counted() {
        for (word, term, distance) in [
            ("color", "color", 0),
            ("color", "colour", 1),
            ("colour", "color", 1),
            ("japan", "jaapn", 1),
            ("japan", "japon", 1),
            ("straße", "strasse", 2),
            ("ca", "abc", 3),
            ("", "ab", 2),
        ] {
            for most in 0..=2 {
                let mut fuzzy = FuzzyWord::new(word, most);
                assert_eq!(
                    fuzzy.accepts(term),
                    distance <= most,
                    "{word} {term} {most}"
                );
                // The rows of the term before have no effect.
                assert!(fuzzy.accepts(word));
                assert_eq!(
                    fuzzy.accepts(term),
                    distance <= most,
                    "{word} {term} {most}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn words_are_accepted_as_by_the_automaton_of_a_dictionary(
            word in vec(prop::sample::select(vec!['a', 'b', 'ß', '東']), 0..7),
            terms in vec(vec(prop::sample::select(vec!['a', 'b', 'ß', '東']), 0..8), 1..6),
            distance in 0..3_u8,
        ) {
            let word: String = word.into_iter().collect();
            let automaton = LevenshteinAutomatonBuilder::new(distance, true).build_dfa(&word);
            let mut fuzzy = FuzzyWord::new(&word, distance);
            for term in terms {
                let term: String = term.into_iter().collect();
                let expected = matches!(automaton.eval(&term), Distance::Exact(_));
                prop_assert_eq!(fuzzy.accepts(&term), expected, "{} {}", word, term);
            }
        }
    }
}
