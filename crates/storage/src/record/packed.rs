//! Elements of a collection in the bytes in which they are stored.
//!
//! A write to a row changes few of its elements. So the committer goes over the bytes of the others
//! and copies them in runs: no element gets memory of its own, and a collection that a write does
//! not change is copied whole. The bytes leave out the base of their record, so they come with it.

use bytes::Bytes;
use value::CqlType;

use super::element::{ByteCursor, DefaultStamp, put_element};
use super::{CellLifetime, CellRecord, CellView, ContentView, work};

/// Elements in their stored bytes, in the order of their paths. Each path comes once.
#[derive(Clone, Debug)]
pub(crate) struct EncodedElements {
    base: DefaultStamp,
    stored: Bytes,
    sums: ElementSummary,
}

/// An element of a collection: its path and its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CollectionElement<'a> {
    pub path: &'a [u8],
    pub cell: CellView<'a>,
}

/// Facts about all elements, so that most questions need no pass over them.
#[derive(Clone, Copy, Debug)]
struct ElementSummary {
    count: usize,
    /// Bytes of paths and values.
    bytes: usize,
    /// The least and the greatest timestamp.
    oldest: i64,
    newest: i64,
    tombstones: usize,
    /// The second at which the first element dies or died; `i64::MAX` for never.
    first_death_s: i64,
    /// The lifetime of the value that lives longest; `None` without values.
    longest: Option<CellLifetime>,
    /// The place of the last path in the stored bytes: its beginning and its end.
    last_path: (usize, usize),
}

impl ElementSummary {
    const NONE: ElementSummary = ElementSummary {
        count: 0,
        bytes: 0,
        oldest: i64::MAX,
        newest: i64::MIN,
        tombstones: 0,
        first_death_s: i64::MAX,
        longest: None,
        last_path: (0, 0),
    };

    /// Adds an element whose path ends at this place of the stored bytes.
    fn add(&mut self, path_end: usize, element: CollectionElement<'_>) {
        let CollectionElement { path, cell } = element;
        self.count += 1;
        self.bytes += path.len();
        self.oldest = self.oldest.min(cell.timestamp);
        self.newest = self.newest.max(cell.timestamp);
        self.last_path = (path_end - path.len(), path_end);
        match cell.content {
            ContentView::Value { value, lifetime } => {
                self.bytes += value.len();
                if let Some(expiry) = lifetime {
                    self.first_death_s = self.first_death_s.min(expiry.at_s);
                }
                let is_longer = self
                    .longest
                    .is_none_or(|longest| match (longest, lifetime) {
                        (Some(longest), Some(lifetime)) => longest.at_s < lifetime.at_s,
                        (longest, None) => longest.is_some(),
                        (None, Some(_)) => false,
                    });
                if is_longer {
                    self.longest = Some(lifetime);
                }
            }
            ContentView::Tombstone { local_s } => {
                self.tombstones += 1;
                self.first_death_s = self.first_death_s.min(local_s);
            }
        }
    }
}

impl EncodedElements {
    /// Reads so many elements. `whole` has the bytes of the cursor.
    pub(super) fn read(
        base: DefaultStamp,
        whole: &Bytes,
        count: usize,
        cursor: &mut ByteCursor<'_>,
    ) -> Option<EncodedElements> {
        let from = cursor.rest;
        let mut sums = ElementSummary::NONE;
        for _ in 0..count {
            let (path, cell) = cursor.element(&base)?;
            sums.add(
                offset(from, path) + path.len(),
                CollectionElement { path, cell },
            );
        }
        work::count(count);
        let stored = whole.slice_ref(&from[..from.len() - cursor.rest.len()]);
        Some(EncodedElements { base, stored, sums })
    }

    /// Packs elements, which are in the order of their paths, each path once.
    pub(super) fn of(base: DefaultStamp, cells: &[(Bytes, CellRecord)]) -> EncodedElements {
        let none = EncodedElements {
            base,
            stored: Bytes::new(),
            sums: ElementSummary::NONE,
        };
        let mut out = ElementWriter::new(&none, room(cells));
        for (path, cell) in cells {
            out.put(path, cell);
        }
        out.end()
    }

    pub(super) fn base(&self) -> DefaultStamp {
        self.base
    }

    /// The bytes of the elements, as a record of this base has them.
    pub(super) fn stored(&self) -> &[u8] {
        &self.stored
    }

    pub(crate) fn len(&self) -> usize {
        self.sums.count
    }

    /// Bytes of paths and values.
    pub(super) fn bytes(&self) -> usize {
        self.sums.bytes
    }

    /// The greatest timestamp; `i64::MIN` for none.
    pub(super) fn newest(&self) -> i64 {
        self.sums.newest
    }

    /// The lifetime of the value that lives longest; `None` without values.
    pub(crate) fn longest(&self) -> Option<CellLifetime> {
        self.sums.longest
    }

    /// Whether each element is a value that lives at this second.
    pub(super) fn lives_at(&self, now_s: i64) -> bool {
        self.sums.tombstones == 0 && self.sums.first_death_s > now_s
    }

    /// Whether this is the very memory of another one, so that nothing differs.
    pub(crate) fn is_shared_with(&self, other: &EncodedElements) -> bool {
        self.base == other.base
            && self.stored.len() == other.stored.len()
            && std::ptr::eq(self.stored.as_ptr(), other.stored.as_ptr())
    }

    pub(crate) fn iter(&self) -> EncodedElementIter<'_> {
        work::count(self.sums.count);
        EncodedElementIter {
            base: self.base,
            cursor: ByteCursor::new(&self.stored),
        }
    }

    /// A copy of bytes that an element of this collection has, which shares their memory.
    pub(crate) fn share(&self, bytes: &[u8]) -> Bytes {
        self.stored.slice_ref(bytes)
    }

    /// The places at which the elements begin whose cells are wanted.
    pub(super) fn places(&self, is_wanted: impl Fn(CellView<'_>) -> bool) -> Vec<u32> {
        let mut places = Vec::with_capacity(self.sums.count);
        let mut walk = self.iter();
        loop {
            let at = self.stored.len() - walk.cursor.rest.len();
            match walk.next() {
                // The value of a row is far below 4 GiB.
                Some(element) if is_wanted(element.cell) => places.push(at as u32),
                Some(_) => {}
                None => return places,
            }
        }
    }

    /// The element that begins at a place.
    pub(super) fn at(&self, place: usize) -> Option<CollectionElement<'_>> {
        let cursor = ByteCursor::new(self.stored.get(place..)?);
        let base = self.base;
        EncodedElementIter { base, cursor }.next()
    }

    /// An element of this collection by itself.
    pub(super) fn copy(
        &self,
        CollectionElement { path, cell }: CollectionElement<'_>,
    ) -> (Bytes, CellRecord) {
        (self.stored.slice_ref(path), cell.to_owned(&self.stored))
    }

    /// Each element by itself.
    pub(super) fn unpack(&self) -> Vec<(Bytes, CellRecord)> {
        self.iter().map(|element| self.copy(element)).collect()
    }

    /// Drops the elements up to a timestamp.
    pub(super) fn drop_to(&mut self, timestamp: i64) {
        if self.sums.newest <= timestamp {
            self.stored = Bytes::new();
            self.sums = ElementSummary::NONE;
        } else if self.sums.oldest <= timestamp {
            self.retain(|element| element.cell.timestamp > timestamp);
        }
    }

    /// Drops the elements that were dead at a second. Returns whether there were any.
    pub(super) fn forget(&mut self, before_s: i64) -> bool {
        if self.sums.first_death_s > before_s {
            return false;
        }
        let count = self.len();
        self.retain(|element| !element.cell.died_by(before_s));
        self.len() < count
    }

    fn retain(&mut self, is_wanted: impl Fn(CollectionElement<'_>) -> bool) {
        let mut out = ElementWriter::new(self, 0);
        let mut walk = self.iter();
        loop {
            let at = self.stored.len() - walk.cursor.rest.len();
            let Some(element) = walk.next() else {
                break;
            };
            if is_wanted(element) {
                out.take(at, element);
            } else {
                out.pass(at, self.stored.len() - walk.cursor.rest.len());
            }
        }
        *self = out.end();
    }

    /// Merges elements, which are in the order of their paths, each path once.
    pub(super) fn merge(&mut self, new: &[(Bytes, CellRecord)], path_type: &CqlType) {
        let Some((first, _)) = new.first() else {
            return;
        };
        let mut out = ElementWriter::new(self, room(new));
        let (begin, end) = self.sums.last_path;
        if self.sums.count > 0 && value::compare(path_type, &self.stored[begin..end], first).is_ge()
        {
            self.merge_into(&mut out, new, path_type);
        } else {
            // All that is new comes after what is there, as in lists that grow.
            out.take_all(self.sums);
            for (path, cell) in new {
                out.put(path, cell);
            }
        }
        *self = out.end();
    }

    fn merge_into(
        &self,
        out: &mut ElementWriter<'_>,
        new: &[(Bytes, CellRecord)],
        path_type: &CqlType,
    ) {
        let mut new = new.iter().peekable();
        let mut walk = self.iter();
        loop {
            let at = self.stored.len() - walk.cursor.rest.len();
            let Some(element) = walk.next() else {
                break;
            };
            while let Some((path, cell)) =
                new.next_if(|(path, _)| value::compare(path_type, path, element.path).is_lt())
            {
                out.copy_to(at);
                out.put(path, cell);
            }
            let same =
                new.next_if(|(path, _)| value::compare(path_type, path, element.path).is_eq());
            match same {
                Some((path, cell)) if cell.view().wins_over(element.cell) => {
                    out.pass(at, self.stored.len() - walk.cursor.rest.len());
                    out.put(path, cell);
                }
                _ => out.take(at, element),
            }
        }
        out.copy_to(self.stored.len());
        for (path, cell) in new {
            out.put(path, cell);
        }
    }
}

/// Writes the elements of a changed collection. Runs of elements that stay are copied at once.
struct ElementWriter<'a> {
    from: &'a EncodedElements,
    /// The bytes of `from` up to here are copied or left out.
    copied: usize,
    out: Vec<u8>,
    sums: ElementSummary,
}

impl<'a> ElementWriter<'a> {
    /// Begins, with room for so many bytes of new elements.
    fn new(from: &'a EncodedElements, new_bytes: usize) -> ElementWriter<'a> {
        ElementWriter {
            from,
            copied: 0,
            out: Vec::with_capacity(from.stored.len() + new_bytes),
            sums: ElementSummary::NONE,
        }
    }

    /// Takes an element that stays, which begins at this place.
    fn take(&mut self, at: usize, element: CollectionElement<'_>) {
        let begin = self.out.len() + (at - self.copied);
        let path_end = begin + offset(&self.from.stored[at..], element.path) + element.path.len();
        self.sums.add(path_end, element);
    }

    /// Takes all elements, whose sums are these.
    fn take_all(&mut self, sums: ElementSummary) {
        self.sums = sums;
        self.copy_to(self.from.stored.len());
    }

    /// Leaves out the bytes between two places.
    fn pass(&mut self, begin: usize, end: usize) {
        self.copy_to(begin);
        self.copied = end;
    }

    fn copy_to(&mut self, end: usize) {
        self.out
            .extend_from_slice(&self.from.stored[self.copied..end]);
        self.copied = end;
    }

    fn put(&mut self, path: &[u8], cell: &CellRecord) {
        work::count(1);
        let cell = cell.view();
        let at = self.out.len();
        put_element(&mut self.out, &self.from.base, path, cell);
        let mut written = ByteCursor::new(&self.out[at..]);
        if let Some((path, cell)) = written.element(&self.from.base) {
            let path_end = at + offset(&self.out[at..], path) + path.len();
            self.sums.add(path_end, CollectionElement { path, cell });
        }
    }

    fn end(mut self) -> EncodedElements {
        self.copy_to(self.from.stored.len());
        EncodedElements {
            base: self.from.base,
            stored: self.out.into(),
            sums: self.sums,
        }
    }
}

/// The elements of a collection one after the other.
#[derive(Clone, Debug)]
pub(crate) struct EncodedElementIter<'a> {
    base: DefaultStamp,
    cursor: ByteCursor<'a>,
}

impl<'a> Iterator for EncodedElementIter<'a> {
    type Item = CollectionElement<'a>;

    fn next(&mut self) -> Option<CollectionElement<'a>> {
        // The bytes were read once before, so they are whole.
        let (path, cell) = self.cursor.element(&self.base)?;
        Some(CollectionElement { path, cell })
    }
}

/// Bytes that elements take about.
fn room(cells: &[(Bytes, CellRecord)]) -> usize {
    let each = cells.iter();
    each.map(|(path, cell)| path.len() + cell.bytes() + 16)
        .sum()
}

/// The place of a part in a whole.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

impl Default for EncodedElements {
    fn default() -> EncodedElements {
        EncodedElements {
            base: DefaultStamp::default(),
            stored: Bytes::new(),
            sums: ElementSummary::NONE,
        }
    }
}

impl PartialEq for EncodedElements {
    fn eq(&self, other: &EncodedElements) -> bool {
        self.base == other.base && self.stored == other.stored
    }
}

impl Eq for EncodedElements {}
