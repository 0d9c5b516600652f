//! The table of the place of each id.

use std::sync::Arc;

/// Number of ids of a page.
const PAGE_IDS: usize = 512;

/// Where the document of an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPlace {
    /// The number of the segment, or of the documents that wait for one.
    pub part: u32,
    /// The number of the document in it.
    pub document: u32,
}

/// The place of an id that has none. No part has this number.
const VACANT: DocumentPlace = DocumentPlace {
    part: u32::MAX,
    document: u32::MAX,
};

type PlacePage = [DocumentPlace; PAGE_IDS];

/// The place of each id. Ids are dense, so the table is an array of pages; a copy of the table
/// shares them until one of the two changes.
#[derive(Clone, Default)]
pub(crate) struct PlaceTable {
    pages: Arc<Vec<Option<Arc<PlacePage>>>>,
    len: usize,
}

impl PlaceTable {
    /// The number of ids that have a place.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, id: u32) -> Option<DocumentPlace> {
        let (page, at) = split(id);
        let place = self.pages.get(page)?.as_ref()?[at];
        (place != VACANT).then_some(place)
    }

    /// Sets the place of an id, and returns the former one.
    pub fn set(&mut self, id: u32, place: DocumentPlace) -> Option<DocumentPlace> {
        let (page, at) = split(id);
        let pages = Arc::make_mut(&mut self.pages);
        if page >= pages.len() {
            pages.resize(page + 1, None);
        }
        let page = pages[page].get_or_insert_with(|| Arc::new([VACANT; PAGE_IDS]));
        let former = std::mem::replace(&mut Arc::make_mut(page)[at], place);
        let former = (former != VACANT).then_some(former);
        self.len += usize::from(former.is_none());
        former
    }

    /// Takes an id out, and returns the place that it had.
    pub fn remove(&mut self, id: u32) -> Option<DocumentPlace> {
        let former = self.get(id)?;
        let (page, at) = split(id);
        if let Some(Some(page)) = Arc::make_mut(&mut self.pages).get_mut(page) {
            Arc::make_mut(page)[at] = VACANT;
        }
        self.len -= 1;
        Some(former)
    }

    /// The ids that have a place, ascending, with their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, DocumentPlace)> + '_ {
        let pages = self.pages.iter().enumerate();
        let pages = pages.filter_map(|(number, page)| Some((number, page.as_ref()?)));
        pages.flat_map(|(number, page)| {
            let ids = (number * PAGE_IDS..).map(|id| id as u32);
            let places = ids.zip(page.iter().copied());
            places.filter(|(_, place)| *place != VACANT)
        })
    }

    pub fn memory_bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        self.pages.capacity() * size_of::<Option<Arc<PlacePage>>>() + pages * size_of::<PlacePage>()
    }
}

/// The page of an id, and its place there.
fn split(id: u32) -> (usize, usize) {
    (id as usize / PAGE_IDS, id as usize % PAGE_IDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(document: u32) -> DocumentPlace {
        DocumentPlace { part: 3, document }
    }

    #[test]
    fn a_copy_keeps_the_places_while_the_table_changes() {
        let mut table = PlaceTable::default();
        assert_eq!(table.set(7, place(0)), None);
        assert_eq!(table.set(2000, place(1)), None);
        assert_eq!(table.set(7, place(2)), Some(place(0)));
        let copy = table.clone();
        assert_eq!(table.remove(7), Some(place(2)));
        assert_eq!(table.remove(7), None);
        assert_eq!(table.remove(90_000), None);
        table.set(8, place(3));
        let all = |table: &PlaceTable| table.iter().collect::<Vec<_>>();
        assert_eq!(all(&copy), [(7, place(2)), (2000, place(1))]);
        assert_eq!(all(&table), [(8, place(3)), (2000, place(1))]);
        assert_eq!((copy.len(), table.len()), (2, 2));
        assert_eq!(table.get(7), None);
    }
}
