//! Each file of `tests/refused` must not compile, with the message of the `.stderr` next to it.
//! `TRYBUILD=overwrite cargo test` writes the messages of another compiler.

#[test]
fn wrong_comparisons_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/refused/*.rs");
}
