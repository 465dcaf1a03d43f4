//! The API server that is part of the binary, in the place of the real one.

use std::path::PathBuf;
use std::sync::Mutex;

use super::access::Access;
use super::{Cluster, Program, START_TIMEOUT, wait_until_ready};
use crate::parts;
use crate::scratch::{Scratch, free_port};
use crate::wait::wait_for;

/// The binary whose API server to use, if it is not to be the real one.
pub(super) fn path() -> Option<PathBuf> {
    let path = std::env::var_os("BESKAR7_TEST_API").filter(|path| !path.is_empty())?;
    let path = PathBuf::from(path);
    assert!(path.is_absolute() && path.is_file(), "BESKAR7_TEST_API is no path of a program: {}", path.display());
    Some(path)
}

pub(super) async fn start(path: PathBuf, shared: bool) -> Cluster {
    let dir = Scratch::new("cluster");
    let data = dir.join("data");
    let arguments = vec![
        "standalone".to_owned(),
        "--api-only".to_owned(),
        format!("--data={}", data.display()),
        format!("--listen=127.0.0.1:{}", free_port()),
        "--log-format=json".to_owned(),
        "--log-level=info,apiserver::audit=debug".to_owned(),
    ];
    let program = Program { name: "beskar7", path, arguments };
    let apiserver = program.start(&dir);
    let kubeconfig = data.join("kubeconfig");
    wait_for("the API server to write a kubeconfig", START_TIMEOUT, || async {
        apiserver.alive().unwrap_or_else(|why| panic!("the cluster does not start: {why}"));
        kubeconfig.is_file().then_some(())
    })
    .await;
    let admin = Access::read(&kubeconfig);
    wait_until_ready(&admin, &[&apiserver]).await;
    Cluster {
        _controller_manager: None,
        apiserver: Mutex::new(Some(apiserver)),
        _etcd: None,
        program: Some(program),
        kubectl: parts::home("kube").join("bin/kubectl"),
        admin,
        authority: None,
        shared,
        embedded: true,
        home: dir.to_path_buf(),
        dir,
    }
}
