//! The only place that writes to standard output and standard error.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

/// Standard output was closed by whoever read it.
#[derive(Debug)]
pub(crate) struct NobodyReads;

impl std::fmt::Display for NobodyReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for NobodyReads {}

/// Writes text to standard output as it is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(NobodyReads.into()),
        Err(error) => Err(anyhow::Error::new(error).context("cannot write to standard output")),
    }
}

/// Writes one line to standard output.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}

/// Writes one line to standard error, for what is not the result: questions, hints.
pub(crate) fn remark(text: &str) {
    // There is nowhere left to complain.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Tells why we end.
pub(crate) fn complain(error: &anyhow::Error) {
    remark(&format!("error: {error:#}"));
}

/// Asks a question that only `y` or `yes` answers with yes.
pub(crate) fn confirm(question: &str) -> anyhow::Result<bool> {
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// What is printed on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Paper {
    /// Columns of the terminal; `None` elsewhere, where nothing is cut.
    pub(crate) width: Option<usize>,
    /// Whether colours show.
    pub(crate) colour: bool,
}

impl Paper {
    /// What standard output is.
    pub(crate) fn stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::default();
        }
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            width: terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0),
            colour: !set("NO_COLOR") && !dumb,
        }
    }
}
