//! TFTP for machines that boot from the network: the sockets around [`netboot::tftp`].
//!
//! Anybody who can send a packet can start a transfer, with any sender address. So a transfer that was never answered is cheap and
//! the first to go, and what is sent to an address that does not answer is little.

mod download;
mod room;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use netboot::tftp::{First, ReadRequest, Refusal, Settings};
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::download::Download;
use self::room::{Admission, Place, Room};

/// RFC 2347 ends requests at 512 bytes. What is beyond this is cut off.
const LONGEST_REQUEST: usize = 1500;
/// What transfers in flight get when everything stops.
const GRACE: Duration = Duration::from_secs(5);

/// The files that there are, and who is told what happens to them. Both are called often and must not wait.
pub trait Files: Send + Sync + 'static {
    /// The file of that name, for that client. The name is no path, see [`ReadRequest::name`].
    fn open(&self, name: &str, client: SocketAddr) -> Option<Bytes>;

    /// Something happened. The number of events is not limited, for the senders of packets may be anybody.
    fn report(&self, event: Event<'_>);
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// Who asked.
    pub client: SocketAddr,
    /// For which file, printable; empty if the request could not be read.
    pub name: &'a str,
    /// What became of it.
    pub what: What,
}

/// What became of a request. A transfer has one `Started`, and then one of those that follow it up to `Failed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A transfer of a file of that size.
    Started {
        /// In bytes.
        size: u64,
    },
    /// The client has all of it.
    Finished {
        /// In bytes.
        size: u64,
        /// Since the request.
        took: Duration,
        /// Blocks that were sent again. Many of them are a bad network.
        resent: u64,
    },
    /// The client stopped answering. If it never did (`acknowledged` is 0), a firewall may drop packets from or to high ports; if it
    /// has all but the end, only its last word may be lost.
    GaveUp {
        /// How many bytes have arrived.
        acknowledged: u64,
        /// Since the request.
        took: Duration,
    },
    /// The client sent an ERROR. Firmware does so on purpose after it has asked for the size of a file.
    Aborted {
        /// Its code.
        code: u16,
        /// Its message, cleaned.
        message: String,
        /// How many bytes have arrived.
        acknowledged: u64,
    },
    /// Ended without a word: for a newer request, or because the service stops.
    Dropped {
        /// How many bytes have arrived.
        acknowledged: u64,
    },
    /// The socket could not be used. The client is not told and asks again.
    Failed(io::ErrorKind),
    /// Answered with an ERROR.
    Refused(Refusal),
    /// Not answered, for there are as many transfers as [`Limits`] allow. The client asks again.
    Busy,
}

/// What clients may cost, and get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many transfers there may be. For one more, one that nobody answered or that is stalled ends.
    pub transfers: usize,
    /// How many of them to one address.
    pub per_address: usize,
    /// What is negotiated, and how long is waited.
    pub settings: Settings,
}

impl Default for Limits {
    fn default() -> Self {
        Self { transfers: 1000, per_address: 16, settings: Settings::default() }
    }
}

/// Opens a socket for a transfer.
type Ports = Arc<dyn Fn() -> io::Result<StdSocket> + Send + Sync>;

/// Where TFTP is served: a socket for requests, and one more for each transfer.
#[derive(Clone)]
pub struct Sockets {
    requests: Arc<StdSocket>,
    transfers: Ports,
}

impl Sockets {
    /// Requests come to this socket. Each transfer has a port of its own at the same address.
    pub fn at(requests: StdSocket) -> io::Result<Self> {
        let address = requests.local_addr()?.ip();
        Ok(Self::opened_by(requests, move || StdSocket::bind((address, 0))))
    }

    /// The same where sockets cannot be opened by anybody, such as in another network namespace.
    pub fn opened_by(
        requests: StdSocket,
        transfers: impl Fn() -> io::Result<StdSocket> + Send + Sync + 'static,
    ) -> Self {
        Self { requests: Arc::new(requests), transfers: Arc::new(transfers) }
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").field("requests", &self.requests).finish_non_exhaustive()
    }
}

struct Server {
    socket: UdpSocket,
    ports: Ports,
    files: Arc<dyn Files>,
    limits: Limits,
    room: Arc<Room>,
}

/// Answers requests that come to a socket until `stop` is cancelled; then transfers in flight get a few seconds.
///
/// If the address of a socket is the wildcard address, the routing table chooses where answers come from: on a machine with several addresses
/// in the clients' network, bind one socket to each, for clients ignore answers from an address that they did not ask.
pub async fn serve(sockets: Sockets, files: Arc<dyn Files>, limits: Limits, stop: CancellationToken) -> io::Result<()> {
    let socket = sockets.requests.try_clone()?;
    socket.set_nonblocking(true)?;
    let (socket, ports) = (UdpSocket::from_std(socket)?, sockets.transfers);
    let room = Room::new(limits.transfers, limits.per_address);
    let server = Arc::new(Server { socket, ports, files, limits, room });
    let transfers = TaskTracker::new();
    let mut packet = [0; LONGEST_REQUEST];
    loop {
        let received = tokio::select! {
            () = stop.cancelled() => break,
            received = server.socket.recv_from(&mut packet) => received,
        };
        match received {
            Ok((length, client)) => {
                if let Some((request, content, place)) = server.judge(&packet[..length], client).await {
                    transfers.spawn(server.clone().transfer(client, request, content, place));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot receive TFTP requests");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    server.room.end_unanswered();
    transfers.close();
    if timeout(GRACE, transfers.wait()).await.is_err() {
        server.room.end_all();
        transfers.wait().await;
    }
    Ok(())
}

impl Server {
    async fn judge(&self, packet: &[u8], client: SocketAddr) -> Option<(ReadRequest, Bytes, Place)> {
        let request = match First::of(packet) {
            First::Read(request) => request,
            First::Refused(refusal) => {
                self.refuse(client, refusal).await;
                return None;
            }
            First::Ignored => return None,
        };
        let Some(content) = self.files.open(&request.name, client) else {
            self.refuse(client, Refusal::NotFound(request.name)).await;
            return None;
        };
        match self.room.admit(client, &request) {
            Admission::Place(place) => Some((request, content, place)),
            Admission::Repeated => None,
            Admission::Full => {
                self.report(client, &request.name, What::Busy);
                None
            }
        }
    }

    async fn refuse(&self, client: SocketAddr, refusal: Refusal) {
        let mut datagram = Vec::new();
        refusal.write(&mut datagram);
        if let Err(error) = self.socket.send_to(&datagram, client).await {
            tracing::debug!(%client, %error, "cannot refuse a TFTP request");
        }
        let name = refusal.name().to_owned();
        self.report(client, &name, What::Refused(refusal));
    }

    async fn transfer(self: Arc<Self>, client: SocketAddr, request: ReadRequest, content: Bytes, place: Place) {
        self.report(client, &request.name, What::Started { size: content.len() as u64 });
        let opened = (self.ports)().and_then(|socket| {
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        });
        let what = match opened {
            Ok(socket) => {
                Download::new(socket, client, content).run(&request.options, &self.limits.settings, &place).await
            }
            Err(error) => What::Failed(error.kind()),
        };
        drop(place);
        self.report(client, &request.name, what);
    }

    fn report(&self, client: SocketAddr, name: &str, what: What) {
        self.files.report(Event { client, name, what });
    }
}
