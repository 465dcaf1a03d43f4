//! Starts the built binary.

use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Long enough for a busy machine, short enough not to hide a hang.
const PATIENCE: Duration = Duration::from_mins(1);

/// What one run said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl Said {
    /// The output of a run that must succeed.
    pub(crate) fn ok(self) -> String {
        assert!(self.status.success(), "{self:#?}");
        self.stdout
    }

    /// What it complained of, in a run that must fail.
    pub(crate) fn error(self) -> String {
        assert!(!self.status.success(), "{self:#?}");
        self.stderr
    }
}

/// The binary, in an environment in which nothing tells it of any cluster.
fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beskar7"));
    command.args(arguments).env_clear().env("HOME", "/nonexistent").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs it to its end.
pub(crate) async fn beskar7(arguments: &[&str]) -> Said {
    beskar7_in(&[], arguments).await
}

/// Runs it to its end with these environment variables.
pub(crate) async fn beskar7_in(environment: &[(&str, &str)], arguments: &[&str]) -> Said {
    let run = command(arguments).envs(environment.iter().copied()).output();
    let output = tokio::time::timeout(PATIENCE, run).await.expect("it ends").expect("it starts");
    Said {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        status: output.status,
    }
}

/// One that goes on running. It is killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    seen: Vec<String>,
    _readers: JoinSet<()>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(command(arguments))
    }

    /// Starts another program than ours, or ours in another way.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let (sender, lines) = mpsc::unbounded_channel();
        let mut readers = JoinSet::new();
        readers.spawn(pass_on(child.stdout.take().unwrap(), sender.clone()));
        readers.spawn(pass_on(child.stderr.take().unwrap(), sender));
        Self { child, lines, seen: Vec::new(), _readers: readers }
    }

    /// Waits for a line, of either output, that contains `text`.
    pub(crate) async fn says(&mut self, text: &str) -> String {
        loop {
            match tokio::time::timeout(PATIENCE, self.lines.recv()).await {
                Ok(Some(line)) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                _ => panic!("it did not say {text:?}, but:\n{}", self.seen.join("\n")),
            }
        }
    }

    /// All that was said so far.
    pub(crate) fn said(&self) -> String {
        self.seen.join("\n")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap())).expect("it runs");
        kill_process(id, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) async fn ends(mut self) -> (ExitStatus, String) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        while let Some(line) = self.lines.recv().await {
            self.seen.push(line);
        }
        (status, self.seen.join("\n"))
    }
}

async fn pass_on(output: impl AsyncRead + Unpin, sender: mpsc::UnboundedSender<String>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if sender.send(line).is_err() {
            return;
        }
    }
}
