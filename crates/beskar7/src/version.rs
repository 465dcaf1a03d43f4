//! `beskar7 version`: which build this is, for bug reports.

use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  # For a bug report
  beskar7 version";

/// The Makefile sets it; it is no part of the sources, so that the same sources give the same binary anywhere.
const COMMIT: Option<&str> = option_env!("BESKAR7_COMMIT");

pub(crate) fn execute() -> anyhow::Result<()> {
    output::print(&text(COMMIT))
}

fn text(commit: Option<&str>) -> String {
    let commit = commit.filter(|commit| !commit.is_empty()).unwrap_or("unknown (not built with make)");
    format!("beskar7 {}\ncommit: {commit}\ntarget: {}\n", env!("CARGO_PKG_VERSION"), target())
}

/// Architecture, system and C library: `musl` is the static binary, `gnu` needs the system's libraries.
fn target() -> String {
    let library = if cfg!(target_env = "musl") {
        "musl"
    } else if cfg!(target_env = "gnu") {
        "gnu"
    } else {
        "other"
    };
    format!("{}-{}-{library}", std::env::consts::ARCH, std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn the_commit_is_shown_if_the_build_knew_it() {
        assert!(text(Some("54bde0cfd38a-dirty")).contains("\ncommit: 54bde0cfd38a-dirty\n"));
        for unknown in [None, Some("")] {
            assert!(text(unknown).contains("\ncommit: unknown (not built with make)\n"));
        }
    }
}
