//! A test bed: a cluster that one process runs and many test processes use.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::Cluster;
use super::access::Access;
use crate::parts;
use crate::pki;
use crate::scratch::Scratch;

/// What a test process needs to know of a cluster that it did not start.
#[derive(Serialize, Deserialize)]
pub(super) struct Bed {
    kubeconfig: PathBuf,
    home: PathBuf,
    embedded: bool,
}

/// The test bed that `BESKAR7_BED` names.
pub(super) fn from_environment() -> Option<Bed> {
    let file = std::env::var_os("BESKAR7_BED").filter(|file| !file.is_empty())?;
    let file = Path::new(&file);
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("BESKAR7_BED: {}: {error}", file.display()));
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("BESKAR7_BED: {}: {error}", file.display())))
}

impl Bed {
    pub(super) fn of(cluster: &Cluster) -> Self {
        Self {
            kubeconfig: cluster.admin_kubeconfig().to_owned(),
            home: cluster.home.clone(),
            embedded: cluster.embedded,
        }
    }

    /// By rename, because somebody waits for the file.
    pub(super) fn write(&self, file: &Path) {
        let unfinished = file.with_extension("new");
        pki::write(&unfinished, serde_json::to_string(self).expect("paths of our own"));
        std::fs::rename(&unfinished, file).expect("the file of the test bed can be put in place");
    }

    pub(super) fn join(self) -> Cluster {
        Cluster {
            _controller_manager: None,
            apiserver: Mutex::new(None),
            _etcd: None,
            program: None,
            kubectl: parts::home("kube").join("bin/kubectl"),
            admin: Access::read(&self.kubeconfig),
            authority: None,
            shared: true,
            embedded: self.embedded,
            home: self.home,
            dir: Scratch::new("cluster"),
        }
    }
}
