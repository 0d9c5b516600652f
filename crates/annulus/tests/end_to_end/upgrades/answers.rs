//! Questions and their answers as text: one line a row, `column=value | ...`, with values as
//! literals.

use std::fmt::Write as _;

use scylla::client::session::Session;
use scylla::value::Row;

/// The prefix of a question whose rows may come in any order.
const UNORDERED: &str = "# ";

/// Questions with their answers.
#[derive(Debug, PartialEq)]
pub struct Answers(Vec<Answer>);

#[derive(Debug, PartialEq)]
struct Answer {
    question: String,
    rows: Vec<String>,
}

impl Answers {
    /// Reads what [`Answers::text`] wrote.
    pub fn parse(text: &str) -> Answers {
        let mut answers: Vec<Answer> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix("    ") {
                Some(row) => answers
                    .last_mut()
                    .expect("a question comes first")
                    .rows
                    .push(row.to_owned()),
                None => answers.push(Answer {
                    question: line.to_owned(),
                    rows: Vec::new(),
                }),
            }
        }
        Answers(answers)
    }

    /// Writes the questions and answers as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Answer { question, rows } in &self.0 {
            let _ = writeln!(text, "{question}");
            for row in rows {
                let _ = writeln!(text, "    {row}");
            }
        }
        text
    }

    /// The questions, in their order.
    pub fn questions(&self) -> Vec<&str> {
        self.0.iter().map(|answer| &*answer.question).collect()
    }

    /// Asks the questions and collects the answers.
    pub async fn ask(session: &Session, questions: &[&str]) -> Answers {
        let mut answers = Vec::new();
        for question in questions {
            answers.push(ask(session, question).await);
        }
        Answers(answers)
    }

    /// Describes the answers in which `others` differ from these.
    pub fn difference(&self, others: &Answers) -> String {
        let mut text = String::new();
        for (expected, given) in self.0.iter().zip(&others.0) {
            if expected != given {
                let _ = writeln!(
                    text,
                    "{}\n  recorded:\n    {}\n  given:\n    {}",
                    expected.question,
                    expected.rows.join("\n    "),
                    given.rows.join("\n    ")
                );
            }
        }
        text
    }
}

async fn ask(session: &Session, question: &str) -> Answer {
    let text = question.strip_prefix(UNORDERED).unwrap_or(question);
    let mut rows = match session
        .query_unpaged(super::making::spelt_out(text), ())
        .await
    {
        Ok(result) => {
            let result = result.into_rows_result().expect("rows");
            let names: Vec<String> = result
                .column_specs()
                .iter()
                .map(|column| column.name().to_owned())
                .collect();
            let rows = result.rows::<Row>().expect("columns of any types");
            rows.map(|row| line(&names, row.expect("values of the types")))
                .collect()
        }
        // The index may not be there yet.
        Err(error) => vec![format!("! {error}")],
    };
    if text != question {
        rows.sort_unstable();
    }
    Answer {
        question: question.to_owned(),
        rows,
    }
}

fn line(names: &[String], row: Row) -> String {
    let values = names.iter().zip(row.columns).map(|(name, value)| {
        let value = value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        // A row is one line.
        format!("{name}={}", value.escape_default())
    });
    values.collect::<Vec<_>>().join(" | ")
}
