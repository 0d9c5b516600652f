//! A tar file of a few small files (ustar, POSIX.1-1988).

/// The length of a header, and what contents are filled up to.
const BLOCK: usize = 512;

/// Makes an archive of files by their names, of 99 bytes at most.
pub fn tar(files: &[(&str, Vec<u8>)], modified_seconds: u64) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, contents) in files {
        archive.extend(header(name, contents.len(), modified_seconds));
        archive.extend(contents);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    // The end of an archive.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn header(name: &str, bytes: usize, modified_seconds: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    put(0, &name[..name.len().min(99)]);
    // Mode, user and group: for its owner only.
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{bytes:011o}"));
    put(136, &format!("{modified_seconds:011o}"));
    // The sum of all bytes is taken with blanks in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\0");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_a_header_and_whole_blocks_for_each_file() {
        let archive = tar(&[("a.txt", b"text".to_vec()), ("b", Vec::new())], 1);
        assert_eq!(archive.len(), 5 * BLOCK);
        assert!(archive.starts_with(b"a.txt\0"));
        assert_eq!(&archive[124..136], b"00000000004\0");
        assert_eq!(&archive[257..265], b"ustar\x0000");
        assert_eq!(&archive[BLOCK..BLOCK + 5], b"text\0");
        assert!(archive[2 * BLOCK..].starts_with(b"b\0"));
        assert!(archive[3 * BLOCK..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_sum_of_a_header_is_that_of_its_bytes() {
        let header = header("a.txt", 4, 0);
        let sum = str::from_utf8(&header[148..154]).unwrap();
        let sum = u32::from_str_radix(sum, 8).unwrap();
        let bytes = header.iter().enumerate();
        let summed = bytes.map(|(at, byte)| match (148..156).contains(&at) {
            true => u32::from(b' '),
            false => u32::from(*byte),
        });
        assert_eq!(summed.sum::<u32>(), sum);
    }
}
