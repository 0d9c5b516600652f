//! Bytes as hexadecimal digits, which is their form in JSON.

use bytes::Bytes;

/// Writes bytes, two digits each.
pub fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads bytes; `None` if the text is no such form.
pub fn read(text: &str) -> Option<Bytes> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    let pairs = digits.chunks_exact(2);
    let bytes = pairs.map(|pair| u8::try_from((pair[0] << 4) | pair[1]));
    bytes.collect::<Result<Vec<u8>, _>>().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_digits() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(read(&write(&all)), Some(Bytes::from(all)));
        assert_eq!(read(""), Some(Bytes::new()));
        for text in ["0", "0g", "é0"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
