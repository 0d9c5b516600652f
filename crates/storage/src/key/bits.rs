//! Bytes of components as they are written and read.

use bytes::Bytes;

/// The error for bytes that are no value of their type.
#[derive(Debug)]
pub(crate) struct NotOfType;

/// Flips all bits, so that bytes sort the other way round.
pub(super) fn flip(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

/// Reads encoded components. `mask` is FF where the bits of a component are flipped, else 00.
pub(super) struct ComponentReader<'a> {
    pub(super) rest: &'a [u8],
    pub(super) mask: u8,
}

impl ComponentReader<'_> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first ^ self.mask)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(bytes.map(|byte| byte ^ self.mask))
    }

    pub(super) fn bytes(&mut self, length: usize) -> Option<Vec<u8>> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes.iter().map(|byte| byte ^ self.mask).collect())
    }

    pub(super) fn escaped(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Some(out.into()),
                    0xff => out.push(0),
                    _ => return None,
                },
                byte => out.push(byte),
            }
        }
    }
}
