//! Writes an answer page by page, in the form that the user chose.

use super::format::{AnswerFormat, csv_header, csv_lines, json_lines};
use super::rows::{AnswerPage, AnswerValue};
use super::table::{ScreenForm, TableWidths, expanded, header, lines};

/// The column in which DESCRIBE answers with a statement.
const STATEMENT: &str = "create_statement";

/// An answer of which pages are written.
#[derive(Debug)]
pub(super) struct ShownAnswer {
    format: AnswerFormat,
    /// Whether the statement is a DESCRIBE.
    is_describe: bool,
    /// The rows written; `None` before a page.
    rows: Option<usize>,
    /// Whether rows are statements, which are not counted.
    is_of_statements: bool,
    /// The widths of the table's columns, once it has begun.
    widths: Option<TableWidths>,
}

impl ShownAnswer {
    /// An answer without pages yet.
    pub(super) fn new(format: AnswerFormat, is_describe: bool) -> ShownAnswer {
        ShownAnswer {
            format,
            is_describe,
            rows: None,
            is_of_statements: false,
            widths: None,
        }
    }

    /// The text of the next page.
    pub(super) fn page(&mut self, page: &AnswerPage, screen: ScreenForm) -> String {
        let before = self.rows;
        self.rows = Some(before.unwrap_or(0) + page.rows.len());
        let is_first = before.is_none();
        match self.format {
            AnswerFormat::Json => json_lines(page),
            AnswerFormat::Csv if is_first => csv_header(&page.columns) + &csv_lines(page),
            AnswerFormat::Csv => csv_lines(page),
            AnswerFormat::Table { is_expanded } => {
                if let Some(text) = self.statements(page) {
                    return text;
                }
                let blank = if is_first { "\n" } else { "" };
                let table = match is_expanded {
                    true => expanded(page, before.unwrap_or(0), screen),
                    false => self.table(page, before.unwrap_or(0), screen),
                };
                format!("{blank}{table}")
            }
        }
    }

    /// A page as a table. A page at a terminal has its own widths and names: those of the page
    /// before have scrolled away.
    fn table(&mut self, page: &AnswerPage, before: usize, screen: ScreenForm) -> String {
        if let (Some(widths), None) = (&self.widths, screen.width) {
            return lines(page, widths, screen);
        }
        match TableWidths::for_page(page, screen) {
            Some(widths) => {
                let text = header(page, &widths, screen) + &lines(page, &widths, screen);
                self.widths = Some(widths);
                text
            }
            None => expanded(page, before, screen),
        }
    }

    /// The statements of a DESCRIBE, which can be pasted; `None` for other answers.
    fn statements(&mut self, page: &AnswerPage) -> Option<String> {
        let mut columns = page.columns.iter();
        let position = columns.position(|column| column.name == STATEMENT)?;
        if !self.is_describe {
            return None;
        }
        self.is_of_statements = true;
        let mut text = String::new();
        for row in &page.rows {
            if let Some(Some(AnswerValue::Known(value::Value::Text(statement)))) = row.get(position)
            {
                text.push('\n');
                text.push_str(statement);
                text.push('\n');
            }
        }
        Some(text)
    }

    /// The text after the last page.
    pub(super) fn end(&self) -> String {
        match (self.format, self.rows) {
            (AnswerFormat::Table { .. }, Some(_)) if self.is_of_statements => "\n".to_owned(),
            (AnswerFormat::Table { .. }, Some(1)) => "\n(1 row)\n".to_owned(),
            (AnswerFormat::Table { .. }, Some(rows)) => format!("\n({rows} rows)\n"),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use value::{CqlType, Value};

    use super::super::rows::ShellColumn;
    use super::*;

    const FILE: ScreenForm = ScreenForm {
        width: None,
        has_colours: false,
    };

    fn page(name: &str, text: &str) -> AnswerPage {
        AnswerPage {
            columns: vec![ShellColumn {
                name: name.to_owned(),
                cql_type: Ok(CqlType::Text),
            }],
            rows: vec![vec![Some(AnswerValue::Known(Value::Text(text.to_owned())))]],
        }
    }

    #[test]
    fn names_are_written_once() {
        let table = AnswerFormat::Table { is_expanded: false };
        let mut writer = ShownAnswer::new(table, false);
        let mut text = writer.page(&page("a", "x"), FILE);
        text.push_str(&writer.page(&page("a", "long"), FILE));
        text.push_str(&writer.end());
        assert_eq!(text, "\n a\n---\n x\n long\n\n(2 rows)\n");
        let mut writer = ShownAnswer::new(AnswerFormat::Csv, false);
        let mut text = writer.page(&page("a", "x"), FILE);
        text.push_str(&writer.page(&page("a", "y"), FILE));
        text.push_str(&writer.end());
        assert_eq!(text, "a\nx\ny\n");
    }

    #[test]
    fn descriptions_are_statements() {
        let table = AnswerFormat::Table { is_expanded: false };
        let mut writer = ShownAnswer::new(table, true);
        let text = writer.page(&page(STATEMENT, "CREATE TABLE t (\n    a int\n);"), FILE);
        assert_eq!(text, "\nCREATE TABLE t (\n    a int\n);\n");
        assert_eq!(writer.end(), "\n");
        let mut writer = ShownAnswer::new(AnswerFormat::Json, true);
        let text = writer.page(&page(STATEMENT, "x"), FILE);
        assert_eq!(text, "{\"create_statement\": \"x\"}\n");
    }

    #[test]
    fn an_answer_without_rows_is_silent() {
        let table = AnswerFormat::Table { is_expanded: false };
        assert_eq!(ShownAnswer::new(table, false).end(), "");
    }
}
