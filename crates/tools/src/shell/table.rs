//! Rows as a table that fits the screen, or with a line for each cell.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::format::{cell_text, is_number, visible};
use super::rows::AnswerPage;

/// The least width to which a column is cut.
const NARROWEST: usize = 8;

/// Begin and end of what is not the text of a cell, on a terminal with colours.
const HEADER: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The screen that tables are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScreenForm {
    /// The columns of the terminal; `None` where the output is no terminal.
    pub width: Option<usize>,
    /// Whether colours may be used.
    pub has_colours: bool,
}

/// The widths of a table's columns, which later pages of the answer have, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableWidths(Vec<usize>);

impl TableWidths {
    /// The widths for a page. `None` if even narrow columns are too many for the screen.
    pub(super) fn for_page(page: &AnswerPage, screen: ScreenForm) -> Option<TableWidths> {
        let mut widths: Vec<usize> = page
            .columns
            .iter()
            .map(|column| visible(&column.name).width())
            .collect();
        for row in &page.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell_text(cell).width().max(*width);
            }
        }
        match screen.width {
            Some(screen) => fitted(widths, screen).map(TableWidths),
            None => Some(TableWidths(widths)),
        }
    }
}

/// Cuts the widest columns until all fit. Each has a blank on both sides, and a bar between two.
fn fitted(mut widths: Vec<usize>, screen: usize) -> Option<Vec<usize>> {
    let between = 3 * widths.len();
    let room = (screen + 1).saturating_sub(between);
    if widths
        .iter()
        .map(|width| (*width).min(NARROWEST))
        .sum::<usize>()
        > room
    {
        return None;
    }
    // The largest width that all may have: those that need less leave theirs to others.
    let mut left = room;
    let mut sorted = widths.clone();
    sorted.sort_unstable();
    let mut limit = usize::MAX;
    for (position, width) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - position);
        if *width > share {
            limit = share;
            break;
        }
        left -= width;
    }
    for width in &mut widths {
        *width = (*width).min(limit.max(1));
    }
    Some(widths)
}

/// The line of the names of columns, and the rule below it.
pub(super) fn header(page: &AnswerPage, widths: &TableWidths, screen: ScreenForm) -> String {
    let (bold, plain) = match screen.has_colours {
        true => (HEADER, PLAIN),
        false => ("", ""),
    };
    let names = page.columns.iter().zip(&widths.0).map(|(column, width)| {
        let name = cut(&visible(&column.name), *width);
        let padding = " ".repeat(width - name.width());
        format!(" {bold}{name}{plain}{padding} ")
    });
    let names = names.collect::<Vec<_>>().join("|");
    let rules = widths.0.iter().map(|width| "-".repeat(width + 2));
    let rules = rules.collect::<Vec<_>>().join("+");
    format!("{}\n{rules}\n", names.trim_end())
}

/// The rows.
pub(super) fn lines(page: &AnswerPage, widths: &TableWidths, screen: ScreenForm) -> String {
    let mut text = String::new();
    for row in &page.rows {
        let cells = row.iter().zip(&widths.0).zip(&page.columns);
        let cells = cells.map(|((cell, width), column)| {
            let shown = match screen.width {
                Some(_) => cut(&cell_text(cell), *width),
                // A file has room for all, and a later page may have wider values.
                None => cell_text(cell),
            };
            let padding = " ".repeat(width.saturating_sub(shown.width()));
            let shown = match cell.is_none() && screen.has_colours {
                true => format!("{DIM}{shown}{PLAIN}"),
                false => shown,
            };
            match is_number(column) {
                true => format!(" {padding}{shown} "),
                false => format!(" {shown}{padding} "),
            }
        });
        let line = cells.collect::<Vec<_>>().join("|");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Rows with a line for each cell. `before` is the number of rows on earlier pages.
pub(super) fn expanded(page: &AnswerPage, before: usize, screen: ScreenForm) -> String {
    let names = page.columns.iter().map(|column| visible(&column.name));
    let names: Vec<String> = names.collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let (bold, dim, plain) = match screen.has_colours {
        true => (HEADER, DIM, PLAIN),
        false => ("", "", ""),
    };
    let mut text = String::new();
    for (position, row) in page.rows.iter().enumerate() {
        text.push_str(&format!("{dim}@ row {}{plain}\n", before + position + 1));
        for (name, cell) in names.iter().zip(row) {
            let padding = " ".repeat(width - name.width());
            let shown = cell_text(cell);
            text.push_str(&format!(" {bold}{name}{plain}{padding} | {shown}\n"));
        }
    }
    text
}

/// A text of at most this width; a longer one ends with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        shown.push(c);
    }
    shown.push('\u{2026}');
    shown
}

#[cfg(test)]
mod tests {
    use value::{CqlType, Value};

    use super::super::rows::{AnswerValue, ShellColumn};
    use super::*;

    fn page() -> AnswerPage {
        let column = |name: &str, cql_type| ShellColumn {
            name: name.to_owned(),
            cql_type: Ok(cql_type),
        };
        let text = "a long text that fills more than the screen has";
        AnswerPage {
            columns: vec![column("id", CqlType::Int), column("title", CqlType::Text)],
            rows: vec![
                vec![
                    Some(AnswerValue::Known(Value::Int(1))),
                    Some(AnswerValue::Known(Value::Text(text.to_owned()))),
                ],
                vec![Some(AnswerValue::Known(Value::Int(22))), None],
            ],
        }
    }

    fn screen(width: Option<usize>) -> ScreenForm {
        ScreenForm {
            width,
            has_colours: false,
        }
    }

    #[test]
    fn a_table_fits_the_screen() {
        let (page, narrow) = (page(), screen(Some(24)));
        let widths = TableWidths::for_page(&page, narrow).unwrap();
        let text = header(&page, &widths, narrow) + &lines(&page, &widths, narrow);
        let expected =
            " id | title\n----+-------------------\n  1 | a long text that\u{2026}\n 22 | null\n";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.width() <= 24), "{text}");
    }

    #[test]
    fn a_file_gets_whole_cells() {
        let (page, wide) = (page(), screen(None));
        let widths = TableWidths::for_page(&page, wide).unwrap();
        assert!(lines(&page, &widths, wide).contains("than the screen has"));
    }

    #[test]
    fn a_screen_that_is_too_narrow_has_a_line_for_each_cell() {
        let (page, narrow) = (page(), screen(Some(12)));
        assert_eq!(TableWidths::for_page(&page, narrow), None);
        let text = expanded(&page, 10, narrow);
        assert!(
            text.starts_with("@ row 11\n id    | 1\n title | a long"),
            "{text}"
        );
    }

    #[test]
    fn widths_are_shared_fairly() {
        assert_eq!(fitted(vec![2, 4], 80), Some(vec![2, 4]));
        assert_eq!(fitted(vec![2, 100, 100], 40), Some(vec![2, 15, 15]));
        assert_eq!(fitted(vec![100; 10], 80), None);
    }

    #[test]
    fn wide_characters_take_two_places() {
        assert_eq!(
            cut("\u{65e5}\u{672c}\u{8a9e}", 5),
            "\u{65e5}\u{672c}\u{2026}"
        );
        assert_eq!(cut("abc", 3), "abc");
    }
}
