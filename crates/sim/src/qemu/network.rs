//! The network of the machines: a bridge in a network namespace of our own.
//!
//! A namespace belongs to threads, not to processes. One thread lives in it and does there what must be done inside, such as to open
//! sockets and to start machines; the rest of the process stays where it is.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::TcpSocket;

use super::error::QemuError;
use super::tools::find;

/// How many machines a lab can have. Each needs a good part of a core while it boots.
pub const MOST_MACHINES: u32 = 16;
/// Network cards of each machine.
pub(super) const CARDS: usize = 2;

/// Where machines find what is on the bridge.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const PREFIX_LENGTH: u8 = 24;

/// The bridge that all machines are connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its address, which is ours on this network.
    pub address: Ipv4Addr,
    /// Length of the network's prefix.
    pub prefix_length: u8,
}

impl Bridge {
    /// Name of the interface.
    pub const INTERFACE: &str = "br0";

    /// Whether an address is on this network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let network = |address: Ipv4Addr| address.to_bits() >> (32 - u32::from(self.prefix_length));
        network(address) == network(self.address)
    }
}

/// What machines are connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A bridge in a namespace of our own.
    Bridge(Bridge),
    /// QEMU's own user network, one for each machine: this system does not let us have a bridge.
    User {
        /// Why not, in the system's words.
        why: String,
    },
}

impl Network {
    /// What does not work, and what to do about it; `None` if everything does.
    pub fn limits(&self) -> Option<String> {
        let Self::User { why } = self else { return None };
        Some(format!(
            "No network of their own for the machines ({why}): each is in QEMU's user network, where it reaches this host as 10.0.2.2 and \
             where nothing but QEMU answers DHCP, so machines cannot boot from the network. Start as root, or allow user namespaces and \
             /dev/net/tun."
        ))
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// A network for machines. Clones are the same; it is gone when the last of them is dropped and the machines have ended.
#[derive(Clone, Debug)]
pub struct Lab(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    machines: u32,
    network: Network,
    /// Where /proc has its namespace.
    path: String,
    work: mpsc::Sender<Work>,
}

impl Lab {
    /// Makes a network for so many machines, a bridge if the system allows it.
    pub fn open(machines: u32) -> Result<Self, QemuError> {
        if machines > MOST_MACHINES {
            return Err(QemuError::TooMany { asked: machines, most: MOST_MACHINES });
        }
        let bridge = Bridge { address: ADDRESS, prefix_length: PREFIX_LENGTH };
        let (network, namespace) = match make_namespace(bridge, machines)? {
            Ok(namespace) => (Network::Bridge(bridge), Some(namespace)),
            Err(why) => (Network::User { why }, None),
        };
        let (work, orders) = mpsc::channel::<Work>();
        let (ready, is_ready) = mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("lab".to_owned())
            .spawn(move || {
                let entered = namespace.map_or(Ok(()), |namespace| {
                    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                });
                let path =
                    format!("/proc/{}/task/{}/ns/net", std::process::id(), rustix::thread::gettid().as_raw_nonzero());
                if ready.send(entered.map(|()| path)).is_ok() && entered.is_ok() {
                    for work in orders {
                        work();
                    }
                }
            })
            .map_err(QemuError::Network)?;
        let path = is_ready.recv().map_err(io::Error::other).and_then(|entered| Ok(entered?));
        Ok(Self(Arc::new(Inner { machines, network, path: path.map_err(QemuError::Network)?, work })))
    }

    /// What machines are connected to.
    pub fn network(&self) -> &Network {
        &self.0.network
    }

    /// How many machines have room in it.
    pub(super) fn machines(&self) -> u32 {
        self.0.machines
    }

    /// A command line that runs another command inside the network, for people who want to look into it.
    pub fn entry(&self) -> Option<String> {
        let Network::Bridge(_) = self.network() else { return None };
        // Root of our user namespace is nobody outside of it.
        let user = if std::env::var_os(ENTERED).is_some() {
            format!("--user=/proc/{}/ns/user --preserve-credentials ", std::process::id())
        } else {
            String::new()
        };
        Some(format!("nsenter {user}--net={}", self.0.path))
    }

    /// Runs something on the bridge's network and returns what it returned. Sockets that it opens stay there wherever they are used. It
    /// fails where there is no bridge: what is meant for machines must not end up on the network of this host.
    pub fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        match self.network().limits() {
            None => self.on_thread(work),
            Some(limits) => Err(io::Error::other(limits)),
        }
    }

    fn on_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (reply, answer) = mpsc::sync_channel(1);
        let work = Box::new(move || {
            // The asker waits for the answer, so it is still there.
            let _ = reply.send(work());
        });
        self.0.work.send(work).map_err(|_| io::Error::other("the network is closed"))?;
        answer.recv().map_err(|_| io::Error::other("the network is closed"))
    }

    /// A UDP socket on the bridge's network.
    pub fn bind_udp(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        self.inside(move || UdpSocket::bind(address))?
    }

    /// A TCP listener on the bridge's network.
    pub fn bind_tcp(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.inside(move || TcpListener::bind(address))?
    }

    /// A TCP socket that can reach an address: in the network if the address is there, else outside of it.
    pub(super) fn socket_to(&self, address: SocketAddr) -> io::Result<TcpSocket> {
        let new = move || if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        match self.network() {
            Network::Bridge(bridge) if bridge.contains(address.ip()) => self.inside(new)?,
            _ => new(),
        }
    }

    /// Starts a program on the bridge's network, or on this host's where there is no bridge. It is killed when this process or the network ends.
    pub fn run_in(
        &self,
        program: &str,
        arguments: impl FnOnce(&mut tokio::process::Command),
    ) -> io::Result<tokio::process::Child> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let mut command = tokio::process::Command::new("setpriv");
        // The kernel sends the signal when the thread that started the program ends: the one of the network.
        command.args(["--pdeathsig", "KILL", "--", program]);
        arguments(&mut command);
        // Ctrl-C in a terminal reaches a whole process group: it is for us to end programs in good order.
        command.process_group(0).kill_on_drop(true);
        self.on_thread(move || {
            let _runtime = runtime.enter();
            command.spawn()
        })?
    }
}

/// A namespace with a bridge, or the reason why there can be none.
fn make_namespace(bridge: Bridge, machines: u32) -> Result<Result<File, String>, QemuError> {
    find("setpriv", "util-linux")?;
    find("ip", "iproute2")?;
    let unshare = find("unshare", "util-linux")?;
    // It lives until its standard input is closed, and the namespace with it; then our thread is in it.
    let mut holder = Command::new(unshare)
        .args(["--net", "--", "sh", "-ec", &script(bridge, machines)])
        .env("PATH", super::tools::search_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(QemuError::Network)?;
    let mut said = String::new();
    if let Some(output) = holder.stdout.take() {
        BufReader::new(output).read_line(&mut said).map_err(QemuError::Network)?;
    }
    let namespace = if said.trim() == READY {
        File::open(format!("/proc/{}/ns/net", holder.id())).map_err(|error| error.to_string())
    } else {
        let mut complaint = String::new();
        if let Some(output) = holder.stderr.take() {
            BufReader::new(output).read_to_string(&mut complaint).map_err(QemuError::Network)?;
        }
        Err(complaint.lines().next().unwrap_or("it cannot be made").to_owned())
    };
    // This closes its standard input.
    holder.wait().map_err(QemuError::Network)?;
    Ok(namespace)
}

const READY: &str = "ready";

fn script(bridge: Bridge, machines: u32) -> String {
    let Bridge { address, prefix_length } = bridge;
    let name = Bridge::INTERFACE;
    let cards = (0..machines).flat_map(|machine| (0..CARDS).map(move |card| tap(machine, card)));
    let plug = |tap: String| format!("ip tuntap add dev {tap} mode tap; ip link set {tap} master {name} up\n");
    let taps = cards.map(plug).collect::<Vec<_>>().concat();
    // Not every system has IPv6.
    format!(
        "ip link set lo up
ip link add {name} type bridge stp_state 0 forward_delay 0
ip addr add {address}/{prefix_length} dev {name}
ip addr add fd77::1/64 dev {name} nodad 2>/dev/null || true
ip link set {name} up
[ -r /dev/net/tun ] && [ -w /dev/net/tun ] || {{ echo '/dev/net/tun is not accessible' >&2; exit 1; }}
{taps}echo {READY}
exec cat
"
    )
}

/// Name of the interface at the other end of a machine's network card.
pub(super) fn tap(machine: u32, card: usize) -> String {
    format!("tap{machine}n{card}")
}

/// Set in the environment of a process that [`enter_user_namespace`] has started anew.
const ENTERED: &str = "SIM_QEMU_USER_NAMESPACE";

/// Makes this process root of a user namespace of its own, where it may have a network for machines, by starting it anew. Does nothing for
/// root, nor where the system does not allow it. Call it before anything else: it starts the program from the beginning.
pub fn enter_user_namespace() -> Result<(), QemuError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let unshare = find("unshare", "util-linux")?;
    let mut attempt = Command::new(&unshare);
    attempt.args(["--user", "--map-root-user", "--net", "--", "true"]).stderr(Stdio::null());
    if !attempt.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(QemuError::Network)?;
    let mut again = Command::new(unshare);
    again.args(["--user", "--map-root-user", "--"]).arg(program).args(std::env::args_os().skip(1)).env(ENTERED, "1");
    // It returns only if it fails.
    Err(QemuError::Network(again.exec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_opened_on_the_hosts_own_network_where_there_is_no_bridge() {
        let (work, _orders) = mpsc::channel();
        let network = Network::User { why: "no permission".to_owned() };
        let lab = Lab(Arc::new(Inner { machines: 1, network, path: String::new(), work }));
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let why = lab.bind_udp(everywhere).unwrap_err().to_string();
        assert!(why.contains("(no permission)") && why.contains("cannot boot from the network"), "{why}");
        assert!(lab.bind_tcp(everywhere).is_err());
        assert_eq!(lab.entry(), None);
    }

    #[test]
    fn the_network_knows_its_addresses() {
        let bridge = Bridge { address: ADDRESS, prefix_length: PREFIX_LENGTH };
        assert!(bridge.contains(Ipv4Addr::new(10, 77, 0, 200).into()));
        assert!(!bridge.contains(Ipv4Addr::new(10, 77, 1, 1).into()));
        assert!(!bridge.contains(IpAddr::V6(ADDRESS.to_ipv6_mapped())));
    }

    #[test]
    fn every_card_of_every_machine_is_on_the_bridge() {
        let bridge = Bridge { address: ADDRESS, prefix_length: PREFIX_LENGTH };
        let script = script(bridge, 3);
        for tap in ["tap0n0", "tap0n1", "tap2n1"] {
            assert!(script.contains(&format!("ip link set {tap} master br0 up\n")), "{script}");
        }
        assert!(!script.contains("tap3"), "{script}");
    }
}
