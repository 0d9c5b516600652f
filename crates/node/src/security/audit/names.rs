//! Names in a line of the audit log. Statements may name what can't be there, by names of any
//! length.

/// The most bytes of a name in a line, which is the longest that a role has.
pub(super) const NAME_BYTES_MAX: usize = 1 << 10;

/// The beginning of a name, as much of it as a line shows.
pub(super) fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_between_characters() {
        assert_eq!(cut("films"), "films");
        let long = "é".repeat(NAME_BYTES_MAX);
        assert_eq!(cut(&long).len(), NAME_BYTES_MAX);
        assert_eq!(cut(&format!("x{long}")).len(), NAME_BYTES_MAX - 1);
    }
}
