//! Tables of text for people.

/// Aligns the columns of all lines. The first line is the heading.
pub fn aligned<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heading.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let heading = heading.map(str::to_owned);
    for row in std::iter::once(&heading).chain(rows) {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            ["long enough".to_owned(), "x".to_owned()],
            ["é".to_owned(), String::new()],
        ];
        assert_eq!(
            aligned(["a", "bc"], &rows),
            "a            bc\nlong enough  x\né\n"
        );
    }
}
