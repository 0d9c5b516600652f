//! Changes of a corpus file, the same in every run.

/// The most changes that one input has.
const CHANGES_MAX: usize = 3;
/// The most bytes that one change inserts, removes or repeats.
const STRETCH_MAX: usize = 24;
/// Bytes that make lengths, counts and numbers extreme.
const EXTREMES: [&[u8]; 8] = [
    &[0],
    &[0xff],
    &[0x7f],
    &[0x80],
    &[0; 4],
    &[0xff; 4],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0xff; 8],
];

/// Makes changes by a fixed seed.
pub struct Mutations<'a> {
    random: u64,
    /// All files of the corpus, from which pieces are taken.
    corpus: &'a [&'a [u8]],
}

impl<'a> Mutations<'a> {
    pub fn new(corpus: &'a [&'a [u8]]) -> Mutations<'a> {
        Mutations { random: 32, corpus }
    }

    /// Changes a content in a few places.
    pub fn change(&mut self, content: &[u8]) -> Vec<u8> {
        let mut bytes = content.to_vec();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change_once(&mut bytes);
        }
        bytes
    }

    fn change_once(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(STRETCH_MAX)).min(bytes.len());
        match self.below(8) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            2 if at < bytes.len() => bytes[at] = self.below(256) as u8,
            3 => self.overwrite(bytes, at),
            4 => drop(bytes.drain(at..end)),
            5 => bytes.extend_from_within(at..end),
            6 => bytes.truncate(at),
            _ => self.splice(bytes, at, end),
        }
    }

    fn overwrite(&mut self, bytes: &mut [u8], at: usize) {
        let extreme = EXTREMES[self.below(EXTREMES.len())];
        for (byte, new) in bytes[at..].iter_mut().zip(extreme) {
            *byte = *new;
        }
    }

    /// Puts a piece of another file in place of some bytes.
    fn splice(&mut self, bytes: &mut Vec<u8>, at: usize, end: usize) {
        let other = self.corpus[self.below(self.corpus.len())];
        let start = self.below(other.len() + 1);
        let stop = (start + self.below(STRETCH_MAX)).min(other.len());
        drop(bytes.splice(at..end, other[start..stop].iter().copied()));
    }

    /// A number below `end`, by SplitMix64.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}
