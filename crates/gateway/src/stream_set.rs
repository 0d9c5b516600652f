//! Sets of the streams of a connection.

/// A set of streams. Its memory grows to the largest stream that it ever held, 8 KiB at most. Most
/// clients use only the first few hundred.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamSet {
    /// One bit for each stream.
    words: Vec<u64>,
    count: usize,
}

impl StreamSet {
    /// The position of a stream's word, and its bit there. Negative streams come last.
    fn place(stream: i16) -> (usize, u64) {
        let stream = usize::from(stream as u16);
        let bits = u64::BITS as usize;
        (stream / bits, 1 << (stream % bits))
    }

    /// The number of streams in the set.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the set holds a stream.
    pub(crate) fn holds(&self, stream: i16) -> bool {
        let (word, bit) = StreamSet::place(stream);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether the set holds no stream except perhaps `but`.
    pub(crate) fn holds_none_but(&self, but: Option<i16>) -> bool {
        self.count == usize::from(but.is_some_and(|but| self.holds(but)))
    }

    /// Adds a stream. The set may hold it already.
    pub(crate) fn add(&mut self, stream: i16) {
        let (word, bit) = StreamSet::place(stream);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// Removes a stream; false if the set did not hold it.
    pub(crate) fn remove(&mut self, stream: i16) -> bool {
        let was_in_it = self.holds(stream);
        if was_in_it {
            let (word, bit) = StreamSet::place(stream);
            self.words[word] &= !bit;
            self.count -= 1;
        }
        was_in_it
    }
}
