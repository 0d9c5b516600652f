//! Texts of the shell that teach it.

/// Examples below the flags of `annulus shell --help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  annulus shell                                    statements at a prompt; \\? lists its commands
  annulus shell -k movies -e 'SELECT * FROM films LIMIT 3'
  annulus shell -e 'DESCRIBE TABLES' -e 'DESCRIBE movies.films'
  annulus shell -f schema.cql                      a file; `SOURCE 'schema.cql'` at the prompt
  annulus shell --json -e 'SELECT * FROM movies.films' | jq .title
  annulus shell --csv -e 'SELECT id, title FROM movies.films' > films.csv
  echo 'SELECT release_version FROM system.local;' | annulus shell
  annulus shell --cql db.example.com:9042 --ca ca.pem --user ada --password-file pw

A script ends at the first statement that fails, with exit code 1, and names its file and line.";

/// The answer to `\?`.
pub(super) const COMMANDS: &str = "\
Statements end with a semicolon and may have several lines. Tab completes, Ctrl-R searches earlier
statements, Ctrl-C drops a statement that is typed or that runs, Ctrl-D leaves.

  \\d                        the tables                     \\d NAME       how one thing is defined
  DESCRIBE ...              as the server answers: KEYSPACES, TABLES, TABLE t, INDEX i, SCHEMA
  EXPAND [ON | OFF], \\x     a line for each cell           \\timing       the time of each statement
  PAGING [ON | OFF | rows]  rows of a page                 CLEAR         the screen
  CONSISTENCY [level]       of reads and writes            SERIAL CONSISTENCY [level]
  TRACING [ON | OFF]        the steps of each statement    USE keyspace;
  SOURCE 'file', \\i file    statements of a file           \\q, EXIT      leave
  .import FILE... --table ks.t [--create]                  rows of Parquet, CSV, JSONL or npy
  .export ...                                              the other way

  SELECT title FROM movies.films ORDER BY embedding ANN OF [0.1, ...] LIMIT 5;       by vector
  SELECT title FROM movies.films WHERE id = 13;
  docs/cql.md has the language, docs/shell.md this shell.
";
