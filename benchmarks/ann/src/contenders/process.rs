//! Starts a contender's process and sends it requests.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, anyhow, bail};
use contender::{Built, Effort, Pick, Reply, Request, Searched, Width};

use super::Rival;

/// A contender's process, which ends when this is dropped.
pub struct Process {
    child: Child,
    /// The standard input of the process; `None` once it has been told to end.
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    name: String,
}

impl Process {
    /// Starts a contender with the data set in `folder`. `reuse` lets it load an index that was
    /// built earlier.
    pub fn start(rival: &Rival, folder: &Path, reuse: bool) -> anyhow::Result<Process> {
        let mut command = rival.command()?;
        command.arg("contend").arg(&rival.name).arg(folder);
        if reuse {
            command.arg("--reuse");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| command.get_program().display().to_string())?;
        Ok(Process {
            requests: child.stdin.take(),
            replies: BufReader::new(child.stdout.take().context("its standard output")?),
            child,
            name: rival.name.clone(),
        })
    }

    /// Builds the index, in place of an earlier one, on `threads` threads.
    pub fn build(&mut self, threads: usize) -> anyhow::Result<Built> {
        match self.ask(&Request::Build { threads })? {
            Reply::Built(built) => Ok(built),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Searches for the picked queries. Returns the results for each kind of queries.
    pub fn search(&mut self, k: usize, width: Width, pick: Pick) -> anyhow::Result<Vec<Searched>> {
        match self.ask(&Request::Search { k, width, pick })? {
            Reply::Searched(searched) => Ok(searched),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The mean effort of the searches, if the contender tells it.
    pub fn effort(&mut self, k: usize, width: Width, pick: Pick) -> anyhow::Result<Option<Effort>> {
        match self.ask(&Request::Effort { k, width, pick })? {
            Reply::Effort(effort) => Ok(effort),
            other => Err(self.unexpected(&other)),
        }
    }

    fn ask(&mut self, request: &Request) -> anyhow::Result<Reply> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        let requests = self
            .requests
            .as_mut()
            .context("the contender has been told to end")?;
        requests.write_all(line.as_bytes())?;
        line.clear();
        self.replies.read_line(&mut line)?;
        if line.is_empty() {
            bail!("{} ended: {}", self.name, self.child.wait()?);
        }
        match serde_json::from_str(&line)? {
            Reply::Failed(why) => bail!("{}: {why}", self.name),
            reply => Ok(reply),
        }
    }

    fn unexpected(&self, reply: &Reply) -> anyhow::Error {
        anyhow!("{} answered something else: {reply:?}", self.name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its standard input is closed. Its exit status does not matter any
        // more.
        self.requests = None;
        let _ = self.child.wait();
    }
}
