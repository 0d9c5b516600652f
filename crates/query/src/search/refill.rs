//! Refilling an answer: more neighbours in place of those whose rows are deleted.
//!
//! An index learns of a deletion moments after the table. So some of the keys that it names may
//! have no row, or one without a vector, and the next neighbours take their places. More are
//! requested from the index until LIMIT rows are found or it has named all that it holds.

/// The most neighbours to request: as many as the index service names in one answer.
const CANDIDATES_MAX: usize = 100_000;

/// The next step for an answer, after `named` of `asked` neighbours were named, of which `alive`
/// have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRefill {
    /// The answer is whole.
    Whole,
    /// The answer is short, although the index may know more rows.
    Short,
    /// This many neighbours are to be requested from the index.
    Ask(usize),
}

impl AnswerRefill {
    /// Decides for a query of `limit` rows.
    pub fn after(limit: usize, asked: usize, named: usize, alive: usize) -> AnswerRefill {
        if alive >= limit || named < asked {
            return AnswerRefill::Whole;
        }
        if asked >= CANDIDATES_MAX {
            return AnswerRefill::Short;
        }
        // Where few rows are deleted, twice as many neighbours make up for them. Where most are
        // deleted, four more are requested for each of them, as they are close together.
        let gone = named - alive.min(named);
        let more = asked.max(4 * gone);
        AnswerRefill::Ask(asked.saturating_add(more).min(CANDIDATES_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rows_are_requested_until_the_index_is_exhausted() {
        assert_eq!(AnswerRefill::after(10, 10, 10, 10), AnswerRefill::Whole);
        assert_eq!(AnswerRefill::after(10, 10, 9, 3), AnswerRefill::Whole);
        assert_eq!(AnswerRefill::after(10, 10, 10, 9), AnswerRefill::Ask(20));
        assert_eq!(AnswerRefill::after(1, 1, 1, 0), AnswerRefill::Ask(5));
    }

    #[test]
    fn a_hundred_thousand_deleted_rows_take_few_rounds() {
        let (mut asked, mut rounds) = (10, 0);
        while let AnswerRefill::Ask(more) = AnswerRefill::after(10, asked, asked, 0) {
            assert!(more > asked);
            (asked, rounds) = (more, rounds + 1);
        }
        assert_eq!((asked, rounds), (CANDIDATES_MAX, 6));
        assert_eq!(
            AnswerRefill::after(10, asked, asked, 0),
            AnswerRefill::Short
        );
    }
}
