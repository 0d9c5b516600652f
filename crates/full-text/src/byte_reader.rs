//! Reading numbers and texts from the bytes of a file.

/// The bytes of a file that are still to be read. Every method gives `None` where they end too
/// early.
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { rest: bytes }
    }

    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// So many numbers of 32 bits.
    pub fn numbers(&mut self, count: usize) -> Option<impl Iterator<Item = u32> + 'a> {
        let bytes = self.take(count.checked_mul(size_of::<u32>())?)?;
        let (words, _) = bytes.as_chunks();
        Some(words.iter().copied().map(u32::from_le_bytes))
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_until_the_bytes_end() {
        let mut reader = ByteReader::new(&[1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 9]);
        assert_eq!(reader.u8(), Some(1));
        assert_eq!(reader.u16(), Some(2));
        assert!(reader.numbers(2).unwrap().eq([3, 4]));
        assert_eq!(reader.u32(), None);
        assert!(!reader.is_at_end());
        assert_eq!(reader.u8(), Some(9));
        assert!(reader.is_at_end());
        assert!(reader.numbers(usize::MAX).is_none());
    }
}
