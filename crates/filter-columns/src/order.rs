//! The codes of a dictionary in the order of their values.
//!
//! They are stored in chunks, which know how many rows they represent. So the rows between two
//! values are counted without a look at each value between them.

use std::ops::Range;

/// Number of codes at which a chunk is split.
const CHUNK: usize = 512;

/// Codes in the order of their values.
#[derive(Debug, Default)]
pub(crate) struct CodeOrder {
    /// None is empty.
    chunks: Vec<CodeChunk>,
}

#[derive(Debug, Default)]
struct CodeChunk {
    codes: Vec<u32>,
    /// The number of ids of all its codes. It may exceed the rows where one has several.
    ids: usize,
}

/// A place between two codes: before the code at `at` in the chunk `chunk`, or after all codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodePosition {
    chunk: usize,
    at: usize,
}

/// The codes between two positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeRun {
    pub start: CodePosition,
    pub end: CodePosition,
}

impl CodeOrder {
    /// The place before all codes.
    pub const START: CodePosition = CodePosition { chunk: 0, at: 0 };

    /// The place after all codes.
    pub fn end(&self) -> CodePosition {
        CodePosition {
            chunk: self.chunks.len(),
            at: 0,
        }
    }

    /// The place of the first code for which `comes_before` is false. It is true for none after
    /// that one.
    pub fn partition_point(&self, comes_before: impl Fn(u32) -> bool) -> CodePosition {
        let is_before =
            |chunk: &CodeChunk| chunk.codes.last().is_some_and(|last| comes_before(*last));
        let chunk = self.chunks.partition_point(is_before);
        let at = match self.chunks.get(chunk) {
            Some(chunk) => chunk.codes.partition_point(|code| comes_before(*code)),
            None => 0,
        };
        CodePosition { chunk, at }
    }

    /// The code after a place.
    pub fn code_at(&self, position: CodePosition) -> Option<u32> {
        let chunk = self.chunks.get(position.chunk)?;
        chunk.codes.get(position.at).copied()
    }

    /// The place after the code that follows `position`.
    pub fn next(&self, position: CodePosition) -> CodePosition {
        let CodePosition { chunk, at } = position;
        match self.chunks.get(chunk) {
            Some(of) if at + 1 < of.codes.len() => CodePosition { chunk, at: at + 1 },
            Some(_) => CodePosition {
                chunk: chunk + 1,
                at: 0,
            },
            None => position,
        }
    }

    /// The codes of a run, in order, chunk by chunk.
    pub fn codes(&self, run: CodeRun) -> impl Iterator<Item = &[u32]> {
        self.parts(run).map(|(chunk, range)| &chunk.codes[range])
    }

    /// The number of ids of the codes of a run, given that of a code.
    pub fn count(&self, run: CodeRun, ids: impl Fn(u32) -> usize) -> usize {
        let count = |(chunk, range): (&CodeChunk, Range<usize>)| match range.len() {
            len if len == chunk.codes.len() => chunk.ids,
            _ => chunk.codes[range].iter().map(|code| ids(*code)).sum(),
        };
        self.parts(run).map(count).sum()
    }

    /// The chunks of a run, each with the part that belongs to it.
    fn parts(&self, run: CodeRun) -> impl Iterator<Item = (&CodeChunk, Range<usize>)> {
        let CodeRun { start, end } = run;
        let chunks = self.chunks.iter().enumerate();
        let chunks = chunks.take(end.chunk + 1).skip(start.chunk);
        chunks.filter_map(move |(at, chunk)| {
            let from = if at == start.chunk { start.at } else { 0 };
            let to = if at == end.chunk {
                end.at
            } else {
                chunk.codes.len()
            };
            (from < to).then_some((chunk, from..to))
        })
    }

    /// Puts a code at a place. It has one id. `ids` gives the number of ids of each code.
    pub fn insert(&mut self, position: CodePosition, code: u32, ids: impl Fn(u32) -> usize) {
        let CodePosition { mut chunk, mut at } = position;
        if chunk == self.chunks.len() {
            // Values that come in order fill each chunk to its end.
            match self.chunks.last() {
                Some(last) if last.codes.len() < CHUNK - 1 => {
                    chunk -= 1;
                    at = last.codes.len();
                }
                _ => self.chunks.push(CodeChunk::default()),
            }
        }
        let first = &mut self.chunks[chunk];
        first.codes.insert(at, code);
        first.ids += 1;
        if first.codes.len() >= CHUNK {
            let codes = first.codes.split_off(CHUNK / 2);
            let ids = codes.iter().map(|code| ids(*code)).sum();
            first.ids -= ids;
            self.chunks.insert(chunk + 1, CodeChunk { codes, ids });
        }
    }

    /// Counts one id more for the code at a place.
    pub fn add_id(&mut self, position: CodePosition) {
        self.chunks[position.chunk].ids += 1;
    }

    /// Counts one id less for the code at a place.
    pub fn remove_id(&mut self, position: CodePosition) {
        self.chunks[position.chunk].ids -= 1;
    }

    /// Removes the code at a place. It has no ids any more.
    pub fn remove(&mut self, position: CodePosition) {
        let CodePosition { chunk, at } = position;
        self.chunks[chunk].codes.remove(at);
        if self.chunks[chunk].codes.is_empty() {
            self.chunks.remove(chunk);
            return;
        }
        self.join(chunk);
        if let Some(before) = chunk.checked_sub(1) {
            self.join(before);
        }
    }

    /// Joins a chunk and the next if they are short.
    fn join(&mut self, chunk: usize) {
        let Some([first, second]) = self.chunks.get(chunk..chunk + 2) else {
            return;
        };
        if first.codes.len() + second.codes.len() <= CHUNK / 2 {
            let second = self.chunks.remove(chunk + 1);
            self.chunks[chunk].codes.extend(second.codes);
            self.chunks[chunk].ids += second.ids;
        }
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let codes = self.chunks.iter().map(|chunk| chunk.codes.capacity());
        self.chunks.capacity() * size_of::<CodeChunk>() + codes.sum::<usize>() * size_of::<u32>()
    }
}
