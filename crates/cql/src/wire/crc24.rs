//! The checksum of a segment's header: a CRC of 24 bits, which Cassandra chose for headers of up to
//! 8 bytes.

/// The register before the first byte.
const INITIAL: u32 = 0x0087_5060;

/// The polynomial, with the bit of the 24th power.
const POLYNOMIAL: u32 = 0x0197_4F0B;

/// The bit that leaves the register of 24 bits.
const OUT: u32 = 1 << 24;

/// The checksum of some bytes.
pub(super) fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = INITIAL;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..u8::BITS {
            crc <<= 1;
            if crc & OUT != 0 {
                crc ^= POLYNOMIAL;
            }
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksums that the official Python driver 3.30 computes (`cassandra.segment`).
    #[test]
    fn known_headers_have_their_checksum() {
        let known: [(&[u8], u32); 6] = [
            (b"", 0x87_5060),
            (b"\0\0\0", 0x7d_e777),
            (b"\x05\0\x02", 0x9a_9919),
            (b"\xff\xff\x03", 0x47_4025),
            (b"12345", 0x5e_cb02),
            (b"\xff\xff\xff\xff\x07", 0x57_6593),
        ];
        for (bytes, checksum) in known {
            assert_eq!(crc24(bytes), checksum, "{bytes:?}");
        }
    }
}
