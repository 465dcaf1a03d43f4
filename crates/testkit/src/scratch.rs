//! One directory per test process, gone when the process is, and ports that nobody else asks for.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::{Deref, Range};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// A directory for one part; removed when dropped, or at the latest when the process ends.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(purpose: &str) -> Self {
        let prefix = format!("{purpose}-");
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(root()).expect("a directory in the scratch root");
        Scratch(dir.keep())
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !keep() {
            // What cannot be removed now, the janitor removes later.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn keep() -> bool {
    std::env::var_os("BESKAR7_KEEP").is_some()
}

fn root() -> &'static Path {
    static ROOT: OnceLock<(PathBuf, Option<Child>)> = OnceLock::new();
    let (root, _) = ROOT.get_or_init(|| {
        let root = tempfile::Builder::new().prefix("beskar7-test-").tempdir().expect("a scratch directory").keep();
        let janitor = (!keep()).then(|| janitor(&root));
        (root, janitor)
    });
    root
}

/// Destructors do not run for statics, nor after SIGKILL, so somebody outside has to clean up: a shell that waits
/// for its input to close, which the kernel does when this process ends. It has its own session because Ctrl-C
/// reaches the whole process group, and tries more than once because a dying server may still write.
fn janitor(root: &Path) -> Child {
    Command::new("setsid")
        .args(["sh", "-c", r#"read -r _; for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$0" && exit; sleep 0.5; done"#])
        .arg(root)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("setsid and sh start")
}

/// A port on loopback that is free and that nobody else is given while this process lives.
///
/// It lies below the range from which the kernel takes ports for outgoing connections, so a server that is stopped
/// for a while finds its port still free.
pub fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    for _ in 0..1000 {
        let port = fastrand::u16(PORTS);
        if let Some(reservation) = reserve(port)
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        {
            RESERVED.lock().expect("nobody panics with the list of ports").push(reservation);
            return port;
        }
    }
    panic!("no free port in {PORTS:?}")
}

const PORTS: Range<u16> = 20_000..32_000;

/// Between the look and the server's start another test could take the port. So each is reserved by a socket of that
/// name, which exists once, leaves no file, and is gone when its process is.
fn reserve(port: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("beskar7-test-port-{port}")).expect("a short name");
    UnixListener::bind_addr(&name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_given_out_is_given_to_nobody_else() {
        let port = free_port();
        assert!(PORTS.contains(&port));
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
        assert!(reserve(port).is_none(), "another process would have got it, too");
    }
}
