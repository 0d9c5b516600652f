//! The program as it is typed.

use std::process::Command;

fn bench(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annulus-bench"));
    let output = command.args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn a_data_set_is_described() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/ann-benchmarks.hdf5"
    );
    let (succeeded, text) = bench(&["data", "describe", file]);
    assert!(
        succeeded && text.contains("20 rows of 3 elements"),
        "{text}"
    );
}

#[test]
fn a_failed_command_prints_its_error() {
    let (succeeded, text) = bench(&["data", "describe", "nowhere.fbin"]);
    assert!(!succeeded);
    assert!(text.contains("annulus bench: nowhere.fbin: "), "{text}");
}
