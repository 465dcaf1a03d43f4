//! Logs: for people on a terminal, JSON elsewhere.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

const DEFAULT_LEVEL: &str = "info";
/// The controller runtime wraps every line in a span that repeats the host. Whoever names it gets it all the same.
const QUIET: &str = "kube_runtime=warn";

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// How to write logs
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "auto", env = "BESKAR7_LOG_FORMAT")]
    log_format: LogFormat,
    /// What to log: error, warn, info, debug or trace; also by part, such as info,bmc=debug [default: $RUST_LOG, or info]
    #[arg(long, value_name = "LEVEL", env = "BESKAR7_LOG_LEVEL", value_parser = level)]
    log_level: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// human on a terminal, json elsewhere
    Auto,
    /// One line of text per entry
    Human,
    /// One JSON object per line
    Json,
}

fn level(text: &str) -> Result<String, String> {
    EnvFilter::builder()
        .parse(text)
        .map_err(|error| format!("{error}: write a level such as debug, or info,bmc=debug"))?;
    Ok(text.to_owned())
}

impl LogArgs {
    /// Starts to write logs, to standard error.
    pub(crate) fn install(&self) -> anyhow::Result<()> {
        let level = match &self.log_level {
            Some(level) => level.clone(),
            None => {
                std::env::var("RUST_LOG").ok().filter(|level| !level.is_empty()).unwrap_or(DEFAULT_LEVEL.to_owned())
            }
        };
        let filter = EnvFilter::builder()
            .parse(format!("{QUIET},{level}"))
            .map_err(|error| anyhow::anyhow!("$RUST_LOG: {error}"))?;
        let terminal = std::io::stderr().is_terminal();
        let human = match self.log_format {
            LogFormat::Auto => terminal,
            LogFormat::Human => true,
            LogFormat::Json => false,
        };
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            // It would complain on the same standard error that is broken, and panic.
            .log_internal_errors(false)
            .with_span_events(FmtSpan::NONE)
            .with_ansi(terminal);
        // Fails only if logs are written already.
        let _ = if human {
            logs.with_target(false).try_init()
        } else {
            logs.json().flatten_event(true).with_span_list(false).try_init()
        };
        Ok(())
    }
}
