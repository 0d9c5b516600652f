//! The place after which the next page of rows begins.

use bytes::Bytes;

use super::SearchError;
use crate::indexes::IndexContent;

/// The bytes of a cursor: the incarnation of the index's content, and an id, both big-endian.
const CURSOR_BYTES: usize = size_of::<u64>() + size_of::<u32>();

/// The end of a page: the id of its last row. Ids mean nothing to another content, such as that of
/// the same index after it was built again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageCursor {
    incarnation: u64,
    /// The id of the last row.
    pub last: u32,
}

impl PageCursor {
    /// The end of a page of this content.
    pub(super) fn of(content: &IndexContent, last: u32) -> PageCursor {
        PageCursor {
            incarnation: content.incarnation(),
            last,
        }
    }

    /// The cursor as clients get it.
    pub(super) fn bytes(self) -> Bytes {
        let incarnation = self.incarnation.to_be_bytes();
        Bytes::from([&incarnation[..], &self.last.to_be_bytes()].concat())
    }

    /// Reads a cursor, which must be of this content.
    pub(super) fn read(bytes: &[u8], content: &IndexContent) -> Result<PageCursor, SearchError> {
        let cursor = PageCursor::of_bytes(bytes);
        let cursor =
            cursor.ok_or_else(|| SearchError::Unsuitable("after: no end of a page".to_owned()))?;
        match cursor.incarnation == content.incarnation() {
            true => Ok(cursor),
            false => Err(SearchError::Unsuitable(
                "after: the page before is of another state of the index, which was built or opened \
                 again since: begin with the first page"
                    .to_owned(),
            )),
        }
    }

    fn of_bytes(bytes: &[u8]) -> Option<PageCursor> {
        let bytes: [u8; CURSOR_BYTES] = bytes.try_into().ok()?;
        let (incarnation, last) = bytes.split_at(size_of::<u64>());
        Some(PageCursor {
            incarnation: u64::from_be_bytes(incarnation.try_into().ok()?),
            last: u32::from_be_bytes(last.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::{identity, in_memory};

    #[test]
    fn a_cursor_is_of_one_content() {
        let identity = identity("idx");
        let content =
            || IndexContent::new(&identity.options, identity.keys.clone(), &in_memory()).unwrap();
        let (one, other) = (content(), content());
        let cursor = PageCursor::of(&one, 7);
        assert_eq!(PageCursor::read(&cursor.bytes(), &one), Ok(cursor));
        for (bytes, content) in [
            (cursor.bytes(), &other),
            (cursor.bytes().slice(1..), &one),
            (Bytes::new(), &one),
        ] {
            let read = PageCursor::read(&bytes, content);
            assert!(matches!(read, Err(SearchError::Unsuitable(_))), "{bytes:?}");
        }
    }
}
