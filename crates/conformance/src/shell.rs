//! Programs that a story runs, and what they print.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::target::Target;

/// Far more than any script takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where a story's programs run.
pub(crate) struct Desk {
    dir: TempDir,
    path: String,
    namespace: String,
}

impl Desk {
    pub(crate) fn new(target: &Target, namespace: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("beskar7-desk-").tempdir().expect("a directory for a story");
        let mut path: Vec<PathBuf> = target.tools().to_vec();
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path =
            std::env::join_paths(path).expect("directories without colons").into_string().expect("UTF-8 in PATH");
        let desk = Desk { dir, path, namespace: namespace.to_owned() };
        desk.write("kubeconfig", &target.kubeconfig_in(namespace).to_string());
        desk
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.dir.path().join(name), content)
            .unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
    }

    pub(crate) async fn run(&self, script: &str, judge: bool) -> Run {
        let running = Command::new("bash")
            .args(["-c", script])
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.dir.path())
            .env("KUBECONFIG", self.dir.path().join("kubeconfig"))
            .env("NAMESPACE", &self.namespace)
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(PATIENCE, running).await;
        let (status, stdout, stderr) = match output {
            Ok(output) => {
                let output = output.expect("bash starts");
                (output.status.code(), output.stdout, output.stderr)
            }
            Err(slow) => (None, Vec::new(), slow.to_string().into_bytes()),
        };
        let text = |bytes: Vec<u8>| self.normalised(&String::from_utf8_lossy(&bytes));
        Run { script: script.to_owned(), judge, status, stdout: text(stdout), stderr: text(stderr) }
    }

    /// Ages, the places of files and the width of columns differ from run to run.
    fn normalised(&self, text: &str) -> String {
        let text = text.replace(&self.dir.path().display().to_string(), "<dir>");
        let text = AGE.replace_all(&text, "$1<age>$2");
        let text = DIFF_DIRECTORY.replace_all(&text, "$1-<random>");
        let text = DIFF_TIME.replace_all(&text, "<time>");
        // What client-go logs about its connections depends on the moment.
        let lines = text.lines().filter(|line| !LOG_LINE.is_match(line)).map(|line| {
            let content = line.trim_start();
            let (indent, content) = line.split_at(line.len() - content.len());
            format!("{indent}{}", COLUMN_GAP.replace_all(content, "  "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// What a script printed, and how it ended.
pub struct Run {
    script: String,
    judge: bool,
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// On the real server, the script succeeds.
    #[track_caller]
    pub fn ok(&self) -> &Self {
        self.assert(self.status == Some(0), "success");
        self
    }

    /// On the real server, the script fails.
    #[track_caller]
    pub fn fails(&self) -> &Self {
        self.assert(self.status != Some(0), "a failure");
        self
    }

    /// On the real server, this is printed somewhere.
    #[track_caller]
    pub fn prints(&self, words: &str) -> &Self {
        self.assert(self.stdout.contains(words) || self.stderr.contains(words), words);
        self
    }

    #[track_caller]
    fn assert(&self, holds: bool, expected: &str) {
        assert!(
            holds || !self.judge,
            "with the real server it ends otherwise\n  script   {}\n  expected {expected}\n  answered {:?}\n{}\n{}",
            self.script,
            self.status,
            self.stdout,
            self.stderr,
        );
    }

    pub(crate) fn record(&self) -> Value {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        json!({"exit": self.status, "stdout": lines(&self.stdout), "stderr": lines(&self.stderr)})
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of our own")
}

static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)(^|[\s(])(?:(?:\d+[smhd]){1,2}|<unknown>)($|[\s)])"));

static DIFF_DIRECTORY: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(LIVE|MERGED|kubectl-edit)-\d+"));

static DIFF_TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000"));

static LOG_LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ "));

static COLUMN_GAP: LazyLock<Regex> = LazyLock::new(|| regex(" {2,}"));
