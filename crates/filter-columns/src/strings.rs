//! Byte strings by number, packed into segments.
//!
//! A string takes its bytes, 5 bytes before them (its number and its length) and 8 for its place:
//! an allocation each would take 16 bytes more. A segment less than half of which is in use is
//! copied and freed, so that no change takes longer than to copy one segment, and at most about
//! half of the memory is waste.

/// The size of a segment. A longer string has one of its own.
const SEGMENT: usize = 64 * 1024;
/// The length byte of strings whose length follows in 4 bytes.
const LONG: u8 = u8::MAX;

/// Byte strings by number. Numbers are dense.
#[derive(Debug, Default)]
pub(crate) struct StringArena {
    segments: Vec<ArenaSegment>,
    /// The place of each string by its number.
    places: Vec<Option<StringLocation>>,
    /// The segment that strings are appended to.
    open: usize,
    /// Segments without bytes.
    free: Vec<usize>,
}

#[derive(Debug, Default)]
struct ArenaSegment {
    /// Entries: a number in 4 bytes, a length in 1 or 5 bytes, and the string.
    bytes: Vec<u8>,
    /// The bytes of the entries that places point to.
    used: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StringLocation {
    /// One more than the index of the segment, so that no place takes no more room than a place.
    segment: std::num::NonZeroU32,
    /// The entry's first byte.
    offset: u32,
}

impl StringLocation {
    fn new(segment: usize, offset: usize) -> StringLocation {
        let segment = u32::try_from(segment + 1).ok();
        StringLocation {
            segment: segment
                .and_then(std::num::NonZeroU32::new)
                .expect("fewer than 2^32 segments"),
            offset: u32::try_from(offset).expect("a segment of less than 4 GiB"),
        }
    }

    fn segment(self) -> usize {
        self.segment.get() as usize - 1
    }
}

impl StringArena {
    /// The string of a number.
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        let place = (*self.places.get(number as usize)?)?;
        let bytes = &self.segments[place.segment()].bytes;
        Some(read(&bytes[place.offset as usize..]).string)
    }

    /// Sets the string of a number.
    pub fn set(&mut self, number: u32, string: &[u8]) {
        self.remove(number);
        let at = number as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, None);
        }
        self.append(number, string);
    }

    /// Removes the string of a number, if there is one.
    pub fn remove(&mut self, number: u32) {
        let Some(place) = self.places.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        let segment = &mut self.segments[place.segment()];
        segment.used -= read(&segment.bytes[place.offset as usize..]).size;
        self.tidy(place.segment());
    }

    fn append(&mut self, number: u32, string: &[u8]) {
        let size = size(string);
        let is_full = |segment: &ArenaSegment| {
            !segment.bytes.is_empty() && segment.bytes.len() + size > SEGMENT
        };
        let before = self.open;
        if self.segments.get(before).is_none_or(is_full) {
            self.open = self.free.pop().unwrap_or(self.segments.len());
            if self.open == self.segments.len() {
                self.segments.push(ArenaSegment::default());
            }
            // Only the first grows with its strings: there may be few.
            if self.segments.len() > 1 {
                self.segments[self.open].bytes = Vec::with_capacity(size.max(SEGMENT));
            }
        }
        let segment = &mut self.segments[self.open];
        self.places[number as usize] = Some(StringLocation::new(self.open, segment.bytes.len()));
        write(&mut segment.bytes, number, string);
        segment.used += size;
        if before != self.open {
            self.tidy(before);
        }
    }

    /// Copies the strings of a segment that wastes more than half of its bytes, and frees it.
    fn tidy(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        if at == self.open || segment.used * 2 > segment.bytes.len() {
            return;
        }
        let ArenaSegment { bytes, .. } = std::mem::take(segment);
        let mut offset = 0;
        while offset < bytes.len() {
            let entry = read(&bytes[offset..]);
            if self.places[entry.number as usize] == Some(StringLocation::new(at, offset)) {
                self.append(entry.number, entry.string);
            }
            offset += entry.size;
        }
        self.free.push(at);
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let bytes: usize = self.segments.iter().map(|s| s.bytes.capacity()).sum();
        bytes
            + self.segments.capacity() * size_of::<ArenaSegment>()
            + self.places.capacity() * size_of::<Option<StringLocation>>()
            + self.free.capacity() * size_of::<usize>()
    }
}

struct ArenaEntry<'a> {
    number: u32,
    string: &'a [u8],
    /// The bytes of the entry with all that comes before the string.
    size: usize,
}

fn size(string: &[u8]) -> usize {
    4 + if string.len() < usize::from(LONG) {
        1
    } else {
        5
    } + string.len()
}

fn write(bytes: &mut Vec<u8>, number: u32, string: &[u8]) {
    bytes.extend(number.to_le_bytes());
    match u8::try_from(string.len()) {
        Ok(len) if len < LONG => bytes.push(len),
        _ => {
            bytes.push(LONG);
            let len = u32::try_from(string.len()).expect("values are smaller than 2 GiB");
            bytes.extend(len.to_le_bytes());
        }
    }
    bytes.extend(string);
}

/// Reads the entry that `bytes` begin with.
fn read(bytes: &[u8]) -> ArenaEntry<'_> {
    let word = |at: usize| {
        let bytes: [u8; 4] = std::array::from_fn(|byte| bytes[at + byte]);
        u32::from_le_bytes(bytes)
    };
    let (start, len) = match bytes[4] {
        LONG => (9, word(5) as usize),
        len => (5, usize::from(len)),
    };
    ArenaEntry {
        number: word(0),
        string: &bytes[start..start + len],
        size: start + len,
    }
}
