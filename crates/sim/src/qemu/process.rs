//! A running QEMU, and QMP, the protocol in which it is asked for things and tells of others.
//!
//! QMP is spoken over its standard input and output: there is no socket to wait for, and nobody else can open it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tracing::{debug, warn};

use super::network::Lab;

/// What QEMU itself complains about.
const LOG: &str = "qemu.log";

/// How a machine came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The guest wants to start again.
    Reboot,
    /// The guest has powered itself off, or the process was ended.
    Off,
    /// QEMU could not do its work.
    Failed(String),
}

/// A message of QMP.
#[derive(Debug, Deserialize)]
struct Message {
    event: Option<String>,
    data: Option<Value>,
    error: Option<Value>,
    /// The command that failed.
    id: Option<String>,
}

#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
    reboots: bool,
}

impl Process {
    pub(super) async fn start(
        name: &str,
        lab: &Lab,
        folder: &Path,
        (program, arguments): (&str, Vec<String>),
    ) -> io::Result<Self> {
        debug!(machine = name, command = %arguments.join(" "), "QEMU starts");
        let log = folder.join(LOG);
        let complaints = std::fs::File::create(&log)?;
        let mut child = lab.run_in(program, |command| {
            command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        })?;
        let (input, output) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or_else(|| io::Error::other("QEMU was started without pipes"))?;
        let output = BufReader::new(output).lines();
        let mut process = Self { name: name.to_owned(), child, input, output, log, reboots: false };
        // Until then it takes no other command.
        process.ask("qmp_capabilities", None).await;
        Ok(process)
    }

    /// Sends a command. What becomes of it is told later, and only if it fails.
    pub(super) async fn ask(&mut self, command: &str, arguments: Option<Value>) {
        let mut message = json!({ "execute": command, "id": command });
        if let Some(arguments) = arguments {
            message["arguments"] = arguments;
        }
        // A process that ends does not read any more, and its end is seen anyway.
        let _ = self.input.write_all(format!("{message}\n").as_bytes()).await;
    }

    /// Waits for the end. Dropping this future loses nothing.
    pub(super) async fn end(&mut self) -> End {
        while let Ok(Some(line)) = self.output.next_line().await {
            match serde_json::from_str(&line) {
                Ok(message) => self.read(message),
                Err(error) => debug!(machine = self.name, %error, line, "QEMU says something that is not QMP"),
            }
        }
        match self.child.wait().await {
            _ if self.reboots => End::Reboot,
            Ok(status) if status.code().is_some_and(|code| code != 0) => End::Failed(self.last_words()),
            Ok(_) => End::Off,
            Err(error) => End::Failed(error.to_string()),
        }
    }

    fn read(&mut self, message: Message) {
        if message.event.as_deref() == Some("SHUTDOWN") {
            self.reboots = message.data.is_some_and(|data| data["reason"] == "guest-reset");
        }
        if let Some(error) = message.error {
            let (command, why) = (message.id.unwrap_or_default(), error["desc"].as_str().unwrap_or_default());
            warn!(machine = self.name, command, why, "QEMU refused a command");
        }
    }

    /// Ends it at once.
    pub(super) async fn kill(mut self) {
        if let Err(error) = self.child.kill().await {
            warn!(machine = self.name, %error, "QEMU cannot be ended");
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().last().unwrap_or("it gave no reason").to_owned()
    }
}
