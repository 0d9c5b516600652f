//! One column of all rows.

use std::borrow::Cow;

use ann::IdSet;
use value::{CqlType, join_elements, join_entries, split_elements, split_entries, validate};

use crate::dictionary::TermDictionary;
use crate::strings::StringArena;

/// Represents null among codes.
const NULL: u32 = u32::MAX;
/// Number of bytes of a key's code before the value in a map's term.
const KEY: usize = size_of::<u32>();

/// One column of all rows.
#[derive(Debug)]
pub(crate) struct TermColumn {
    cql_type: CqlType,
    /// Ids whose value is not null.
    present: IdSet,
    /// The values, or the elements of collections. A map's term is the code of a key and a value.
    pub terms: TermDictionary,
    /// The keys of a map.
    pub keys: Option<TermDictionary>,
    rows: RowCodes,
}

/// The codes of the terms of each row.
#[derive(Debug)]
enum RowCodes {
    /// One each, or [`NULL`].
    Value(Vec<u32>),
    /// Those of a collection, in its order, each in 4 bytes.
    Collection(StringArena),
}

impl TermColumn {
    pub fn new(cql_type: CqlType) -> Self {
        let (terms, keys, rows) = match &cql_type {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                let elements = TermDictionary::new((**element).clone(), 0);
                (elements, None, RowCodes::Collection(StringArena::default()))
            }
            CqlType::Map { key, value, .. } => {
                let entries = TermDictionary::new((**value).clone(), KEY);
                let keys = TermDictionary::new((**key).clone(), 0);
                (
                    entries,
                    Some(keys),
                    RowCodes::Collection(StringArena::default()),
                )
            }
            other => {
                let values = TermDictionary::new(other.clone(), 0);
                (values, None, RowCodes::Value(Vec::new()))
            }
        };
        TermColumn {
            cql_type,
            present: IdSet::default(),
            terms,
            keys,
            rows,
        }
    }

    pub fn cql_type(&self) -> &CqlType {
        &self.cql_type
    }

    pub fn is_collection(&self) -> bool {
        matches!(self.rows, RowCodes::Collection(_))
    }

    /// Ids whose value is not null.
    pub fn present(&self) -> &IdSet {
        &self.present
    }

    /// The value of an id; `None` for null.
    pub fn value(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        if let RowCodes::Value(codes) = &self.rows {
            let code = codes.get(id as usize).filter(|code| **code != NULL)?;
            return Some(Cow::Borrowed(self.terms.term(*code)));
        }
        let codes = self.present.contains(id).then(|| self.codes(id))?;
        let bytes = match &self.keys {
            None => {
                let elements = codes.map(|code| self.terms.term(code)).collect::<Vec<_>>();
                join_elements(elements.into_iter())
            }
            Some(keys) => {
                let entry = |code| (keys.term(self.key(code)), self.terms.value(code));
                let entries = codes.map(entry).collect::<Vec<_>>();
                join_entries(entries.into_iter())
            }
        };
        Some(Cow::Owned(bytes.into()))
    }

    /// Whether an id has a term with one of these codes, which ascend.
    pub fn has_any(&self, id: u32, codes: &[u32]) -> bool {
        self.codes(id)
            .any(|code| codes.binary_search(&code).is_ok())
    }

    /// The codes of an id.
    fn codes(&self, id: u32) -> impl Iterator<Item = u32> {
        let (value, elements) = match &self.rows {
            RowCodes::Value(codes) => (codes.get(id as usize).filter(|code| **code != NULL), None),
            RowCodes::Collection(rows) => (None, rows.get(id)),
        };
        let (elements, _) = elements.unwrap_or_default().as_chunks();
        let elements = elements.iter().map(|code| u32::from_le_bytes(*code));
        value.copied().into_iter().chain(elements)
    }

    /// The code of the key in an entry of a map.
    fn key(&self, code: u32) -> u32 {
        let key = self.terms.term(code).first_chunk();
        u32::from_be_bytes(*key.expect("an entry begins with its key's code"))
    }

    /// Sets the value of an id. Bytes that are no value of the column's type become null.
    pub fn set(&mut self, id: u32, value: Option<&[u8]>) {
        let value = value.filter(|value| validate(&self.cql_type, value).is_ok());
        if self.value(id).as_deref() == value {
            return;
        }
        self.clear(id);
        let Some(value) = value else { return };
        self.present.insert(id);
        match &mut self.rows {
            RowCodes::Value(codes) => {
                let at = id as usize;
                if codes.len() <= at {
                    codes.resize(at + 1, NULL);
                }
                codes[at] = self.terms.add(value, id);
            }
            RowCodes::Collection(rows) => {
                let mut codes = Vec::new();
                let mut add = |term: &[u8]| codes.extend(self.terms.add(term, id).to_le_bytes());
                match &mut self.keys {
                    None => {
                        let elements = split_elements(value).unwrap_or_default();
                        elements.iter().for_each(|element| add(element));
                    }
                    Some(keys) => {
                        for (key, value) in split_entries(value).unwrap_or_default() {
                            let key = keys.add(&key, id).to_be_bytes();
                            add(&[&key[..], &value].concat());
                        }
                    }
                }
                rows.set(id, &codes);
            }
        }
    }

    /// Makes the value of an id null.
    pub fn clear(&mut self, id: u32) {
        if !self.present.remove(id) {
            return;
        }
        // A list may have an element twice, but the id is removed from it once.
        let mut codes = self.codes(id).collect::<Vec<_>>();
        codes.sort_unstable();
        codes.dedup();
        if self.keys.is_some() {
            let mut keys = codes.iter().map(|code| self.key(*code)).collect::<Vec<_>>();
            keys.sort_unstable();
            keys.dedup();
            if let Some(of) = &mut self.keys {
                keys.into_iter().for_each(|key| of.remove(key, id));
            }
        }
        codes
            .into_iter()
            .for_each(|code| self.terms.remove(code, id));
        match &mut self.rows {
            RowCodes::Value(codes) => codes[id as usize] = NULL,
            RowCodes::Collection(rows) => rows.remove(id),
        }
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let rows = match &self.rows {
            RowCodes::Value(codes) => codes.capacity() * size_of::<u32>(),
            RowCodes::Collection(rows) => rows.memory_bytes(),
        };
        let keys = self.keys.as_ref().map_or(0, TermDictionary::memory_bytes);
        rows + self.present.memory_bytes() + self.terms.memory_bytes() + keys
    }
}
