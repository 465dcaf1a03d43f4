//! The binary: command line, configuration, wiring.

mod access;
mod apply;
mod assets;
mod boot_args;
mod cli;
mod completion;
mod crds;
mod demo;
mod dhcp_args;
mod dialects;
mod hosts;
mod human;
mod limits;
mod logs;
mod machines;
mod output;
mod power;
mod program;
mod roles;
mod run;
mod runtime;
mod show;
mod shutdown;
mod sim;
mod standalone;
mod table;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Cli::parse().execute() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output (`head`, a pager) has seen enough.
        Err(error) if error.is::<output::NobodyReads>() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}
