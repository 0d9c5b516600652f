//! The values of a column, or the elements of its collections: a code for each, and its ids.

use std::cmp::Ordering;

use value::predicate::ComparisonOperator;
use value::{CqlType, compare};

use crate::order::{CodeOrder, CodePosition, CodeRun};
use crate::posting::IdPosting;
use crate::strings::StringArena;

/// Terms, each with a code and the ids that have it, in the order of their values.
///
/// A term is a serialised value, or a value after the code of a map's key. Terms that differ in
/// bytes have codes of their own, so that a code gives the bytes back. Values that are equal to
/// [`compare`] are neighbours in the order.
#[derive(Debug)]
pub(crate) struct TermDictionary {
    /// The type of the values.
    cql_type: CqlType,
    /// Number of bytes before the value in each term.
    prefix: usize,
    /// The term of each code.
    terms: StringArena,
    /// The ids of each code.
    postings: Vec<IdPosting>,
    order: CodeOrder,
    /// Codes without a term.
    free: Vec<u32>,
}

impl TermDictionary {
    pub fn new(cql_type: CqlType, prefix: usize) -> Self {
        TermDictionary {
            cql_type,
            prefix,
            terms: StringArena::default(),
            postings: Vec::new(),
            order: CodeOrder::default(),
            free: Vec::new(),
        }
    }

    pub fn cql_type(&self) -> &CqlType {
        &self.cql_type
    }

    /// The term of a code that is in use.
    pub fn term(&self, code: u32) -> &[u8] {
        self.terms.get(code).expect("a code that is in use")
    }

    /// The value of a code that is in use.
    pub fn value(&self, code: u32) -> &[u8] {
        &self.term(code)[self.prefix..]
    }

    pub fn posting(&self, code: u32) -> &IdPosting {
        &self.postings[code as usize]
    }

    /// Gives an id a term, and says the term's code.
    pub fn add(&mut self, term: &[u8], id: u32) -> u32 {
        let position = self.position(term);
        if let Some(code) = self.order.code_at(position)
            && self.term(code) == term
        {
            if self.postings[code as usize].insert(id) {
                self.order.add_id(position);
            }
            return code;
        }
        let code = self.free.pop().unwrap_or_else(|| {
            self.postings.push(IdPosting::EMPTY);
            (self.postings.len() - 1) as u32
        });
        self.terms.set(code, term);
        self.postings[code as usize] = IdPosting::One(id);
        let ids = |code: u32| self.postings[code as usize].len();
        self.order.insert(position, code, ids);
        code
    }

    /// Takes the term of a code from an id that has it. A term without ids is forgotten.
    pub fn remove(&mut self, code: u32, id: u32) {
        let position = self.position(self.term(code));
        let posting = &mut self.postings[code as usize];
        if posting.remove(id) {
            self.order.remove_id(position);
        }
        if posting.len() == 0 {
            self.order.remove(position);
            self.terms.remove(code);
            self.free.push(code);
        }
    }

    /// The place of a term, or where it would be.
    fn position(&self, term: &[u8]) -> CodePosition {
        let value = &term[self.prefix..];
        self.order.partition_point(|code| {
            let other = self.term(code);
            compare(&self.cql_type, &other[self.prefix..], value)
                .then_with(|| other.cmp(term))
                .is_lt()
        })
    }

    /// The codes of values that are equal to `value`.
    pub fn equal(&self, value: &[u8]) -> Vec<u32> {
        self.codes_where(|term| compare(&self.cql_type, &term[self.prefix..], value))
    }

    /// The codes of terms with this prefix, and a value that is equal to `value`.
    pub fn equal_after(&self, prefix: &[u8], value: &[u8]) -> Vec<u32> {
        self.codes_where(|term| {
            let (of_term, other) = term.split_at(self.prefix);
            compare(&self.cql_type, other, value).then_with(|| of_term.cmp(prefix))
        })
    }

    /// The codes of terms that are equal to one sought, given the order of terms relative to it.
    fn codes_where(&self, order: impl Fn(&[u8]) -> Ordering) -> Vec<u32> {
        let order = |code| order(self.term(code));
        let start = self.order.partition_point(|code| order(code).is_lt());
        let equal_at = |position| {
            let code = self.order.code_at(position);
            code.filter(|code| order(*code).is_eq())
        };
        let Some(first) = equal_at(start) else {
            return Vec::new();
        };
        if equal_at(self.order.next(start)).is_none() {
            return vec![first];
        }
        let end = self.order.partition_point(|code| order(code).is_le());
        let run = CodeRun { start, end };
        self.order.codes(run).flatten().copied().collect()
    }

    /// The run of values for which a comparison with `value` holds.
    pub fn run(&self, comparison: ComparisonOperator, value: &[u8]) -> CodeRun {
        let point = |comes_before: fn(Ordering) -> bool| {
            let order = |code| compare(&self.cql_type, self.value(code), value);
            self.order.partition_point(|code| comes_before(order(code)))
        };
        let (mut start, mut end) = (CodeOrder::START, self.order.end());
        match comparison {
            ComparisonOperator::Eq => {
                (start, end) = (point(Ordering::is_lt), point(Ordering::is_le));
            }
            ComparisonOperator::Lt => end = point(Ordering::is_lt),
            ComparisonOperator::LtEq => end = point(Ordering::is_le),
            ComparisonOperator::Gt => start = point(Ordering::is_le),
            ComparisonOperator::GtEq => start = point(Ordering::is_lt),
        }
        CodeRun { start, end }
    }

    /// The runs before and after a run.
    pub fn outside(&self, run: CodeRun) -> [CodeRun; 2] {
        let before = CodeRun {
            start: CodeOrder::START,
            end: run.start,
        };
        let after = CodeRun {
            start: run.end,
            end: self.order.end(),
        };
        [before, after]
    }

    /// The codes of a run, chunk by chunk.
    pub fn codes(&self, run: CodeRun) -> impl Iterator<Item = &[u32]> {
        self.order.codes(run)
    }

    /// The number of ids that have a value of a run.
    pub fn count(&self, run: CodeRun) -> usize {
        self.order.count(run, |code| self.posting(code).len())
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let of_postings: usize = self.postings.iter().map(IdPosting::memory_bytes).sum();
        self.terms.memory_bytes()
            + self.postings.capacity() * size_of::<IdPosting>()
            + of_postings
            + self.order.memory_bytes()
            + self.free.capacity() * size_of::<u32>()
    }
}
