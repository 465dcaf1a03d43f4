//! A cluster that the tests of many processes share: `test-bed FILE`.
//!
//! Writes FILE when the cluster is ready, for `BESKAR7_BED`, and runs until Ctrl-C or SIGTERM. The cluster is a real one, or
//! the embedded API server of the program that `BESKAR7_TEST_API` names.
#![allow(clippy::expect_used, reason = "its only user is a person who reads the message")]

use std::path::PathBuf;

use testkit::Cluster;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() {
    let file: PathBuf = std::env::args_os().nth(1).expect("name the file to write when the cluster is ready").into();
    let mut terminated = signal(SignalKind::terminate()).expect("a handler for SIGTERM");
    let _cluster = Cluster::start_bed(&file).await;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}
