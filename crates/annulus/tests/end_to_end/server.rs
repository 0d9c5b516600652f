//! Starting and killing the real binary.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use test_support::Running;

const START: Duration = Duration::from_secs(60);

/// A running `annulus serve`, which is killed when this is dropped.
pub struct Server {
    process: Running,
    pub cql: SocketAddr,
    pub http: SocketAddr,
}

impl Server {
    /// Starts the binary on free ports and waits for its ready line.
    pub fn start(data_dir: &Path) -> Server {
        Server::start_with(data_dir, &[])
    }

    /// Starts the binary with more settings.
    pub fn start_with(data_dir: &Path, settings: &[&str]) -> Server {
        Server::start_command(&mut Server::command(data_dir, "warn", settings))
    }

    /// Starts the binary with a log filter, and writes its log to this file.
    pub fn start_logging(data_dir: &Path, filter: &str, log: &Path) -> Server {
        let log = File::create(log).expect("a file for the log");
        Server::start_command(Server::command(data_dir, filter, &[]).stderr(log))
    }

    /// Starts the binary with more environment variables.
    pub fn start_in(data_dir: &Path, environment: &[(&str, &Path)]) -> Server {
        let mut command = Server::command(data_dir, "error", &[]);
        Server::start_command(command.envs(environment.iter().copied()))
    }

    fn start_command(command: &mut Command) -> Server {
        let process = command.stdout(Stdio::piped()).spawn();
        let mut process = Running(process.expect("the binary starts"));
        let stdout = process.0.stdout.take().expect("stdout is piped");
        let (send, receive) = mpsc::sync_channel(1);
        // The thread ends with the process, whose stdout it reads to the end.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.contains("ready") {
                    let _ = send.try_send(line);
                }
            }
        });
        let line = receive
            .recv_timeout(START)
            .unwrap_or_else(|_| panic!("no ready line within {START:?}"));
        let addresses: Vec<SocketAddr> = line
            .split([' ', ','])
            .filter_map(|word| word.parse().ok())
            .collect();
        let [cql, http] = addresses[..] else {
            panic!("no two addresses in {line:?}");
        };
        Server { process, cql, http }
    }

    fn command(data_dir: &Path, log_filter: &str, settings: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annulus"));
        command
            .args([
                "serve",
                "--cql-port",
                "0",
                "--http-port",
                "0",
                "--log",
                log_filter,
            ])
            .arg("--data-dir")
            .arg(data_dir)
            .args(settings);
        command
    }

    /// Starts the binary and kills it after that time, ready or not. Callers choose times at which
    /// a start may be anywhere.
    pub fn start_and_kill_after(data_dir: &Path, settings: &[&str], time: Duration) {
        let process = Server::command(data_dir, "warn", settings)
            .stdout(Stdio::null())
            .spawn();
        Running(process.expect("the binary starts")).kill_after(time);
    }

    /// The process id.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    /// Kills the process by `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// Kills the process by `kill -9` after that time.
    pub fn kill_after(mut self, time: Duration) {
        self.process.kill_after(time);
    }

    /// Asks the process to stop, and waits until it has.
    pub fn stop(mut self) {
        let id = rustix::process::Pid::from_child(&self.process.0);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is told");
        let status = self.process.0.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Opens a session of the driver.
    pub async fn connect(&self) -> Session {
        SessionBuilder::new()
            .known_node_addr(self.cql)
            .build()
            .await
            .expect("the driver connects")
    }
}
