//! Child processes that cannot outlive the test process.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};

type Order = (Command, mpsc::SyncSender<io::Result<Child>>);

/// A running program with a log file; it is killed when this is dropped or when the test process ends.
pub(crate) struct Process {
    name: String,
    child: Mutex<Child>,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; its output goes to `<dir>/<name>.log`.
    pub(crate) fn start(name: &str, dir: &Path, program: &Path, arguments: &[impl AsRef<OsStr>]) -> Self {
        let log = dir.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).expect("a log file in the scratch directory");
        // The kernel sends the signal when the parent dies, whatever it died of.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second handle of the log file"))
            .stderr(output);
        let child = spawn_from_steady_thread(command)
            .unwrap_or_else(|error| panic!("cannot start {name} ({}): {error}", program.display()));
        Process { name: name.to_owned(), child: Mutex::new(child), log }
    }

    /// `Err` with the tail of the log when the program has ended.
    pub(crate) fn alive(&self) -> Result<(), String> {
        let status = self.child.lock().expect("nobody panics with the child").try_wait();
        match status {
            Ok(None) => Ok(()),
            ended => Err(format!("{} ended ({ended:?}); its last words:\n{}", self.name, self.log_tail())),
        }
    }

    /// The last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Both only fail when it is dead already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// "Parent" means the thread that started the child, and a test's thread ends long before the process: one thread
/// that never ends starts them all.
fn spawn_from_steady_thread(command: Command) -> io::Result<Child> {
    static STEADY: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let orders = STEADY.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || {
                for (mut command, reply) in orders {
                    // The asker waits for the answer, so it is still there.
                    let _ = reply.send(command.spawn());
                }
            })
            .expect("a thread for child processes");
        sender
    });
    let (reply, answer) = mpsc::sync_channel(1);
    orders.send((command, reply)).expect("the spawner thread never ends");
    answer.recv().expect("the spawner thread answers every order")
}
