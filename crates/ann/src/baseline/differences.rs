//! The lines that differ between two texts.

/// The lines that only one of the texts has, `-` before those of `before` and `+` before those of
/// `after`, in their order. Each index of the baseline begins with a line without indent, which is
/// shown above its first difference.
pub(super) fn differences(before: &str, after: &str) -> String {
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let common = common_lengths(&before, &after);
    let (mut i, mut j) = (0, 0);
    let mut heading = None;
    let mut text = String::new();
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            if !after[j].starts_with(' ') {
                heading = Some(after[j]);
            }
            (i, j) = (i + 1, j + 1);
            continue;
        }
        if let Some(heading) = heading.take() {
            text += &format!("  {heading}\n");
        }
        let removed =
            i < before.len() && (j == after.len() || common[i + 1][j] >= common[i][j + 1]);
        if removed {
            text += &format!("- {}\n", before[i]);
            i += 1;
        } else {
            text += &format!("+ {}\n", after[j]);
            j += 1;
        }
    }
    text
}

/// The length of the longest common subsequence of `before[i..]` and `after[j..]`, at `[i][j]`.
fn common_lengths(before: &[&str], after: &[&str]) -> Vec<Vec<usize>> {
    let mut lengths = vec![vec![0; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            lengths[i][j] = match before[i] == after[j] {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    lengths
}

#[test]
fn lines_that_differ_are_shown_below_their_heading() {
    let before = "one\n  a\n  b\ntwo\n  c\n";
    let after = "one\n  a\n  b\ntwo\n  d\n  e\n";
    let expected = "  two\n-   c\n+   d\n+   e\n";
    assert_eq!(differences(before, after), expected);
    assert_eq!(differences(after, after), "");
}
