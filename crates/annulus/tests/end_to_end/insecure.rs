//! `--insecure` always logs a warning.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use test_support::Running;

#[test]
fn every_start_with_it_warns() {
    let directory = tempfile::tempdir().unwrap();
    for start in ["the first", "the second"] {
        let mut process = Command::new(env!("CARGO_BIN_EXE_annulus"))
            .args(["serve", "--cql-port", "0", "--http-port", "0", "--insecure"])
            .args(["--log", "warn", "--data-dir"])
            .arg(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = process.stderr.take().expect("stderr is piped");
        let mut running = Running(process);
        let (send, receive) = mpsc::sync_channel(1);
        // The thread ends with the process, whose log it reads to the end.
        std::thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                if line.contains("WARN") && line.contains("--insecure") {
                    let _ = send.try_send(line);
                }
            }
        });
        let warning = receive.recv_timeout(Duration::from_secs(60));
        let warning = warning.unwrap_or_else(|_| panic!("{start} start says nothing"));
        assert!(warning.contains("read and change everything"), "{warning}");
        running.signal("-TERM");
        running.end(Duration::from_secs(60));
    }
}
