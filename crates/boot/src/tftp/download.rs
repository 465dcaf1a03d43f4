//! One transfer and its socket.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::pin;

use bytes::Bytes;
use netboot::tftp::packet::code;
use netboot::tftp::{Ended, Options, Packet, Progress, Replies, Reply, Settings, Transfer};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use super::What;
use super::room::Place;

/// What clients send during a transfer is 4 bytes long, or an ERROR.
const LONGEST_ANSWER: usize = 512;

pub(super) struct Download {
    socket: UdpSocket,
    client: SocketAddr,
    content: Bytes,
    /// What is sent next; kept for its memory.
    datagram: Vec<u8>,
}

impl Download {
    pub(super) fn new(socket: UdpSocket, client: SocketAddr, content: Bytes) -> Self {
        Self { socket, client, content, datagram: Vec::new() }
    }

    /// Transfers the file, unless the place is needed by somebody else.
    pub(super) async fn run(mut self, options: &Options, settings: &Settings, place: &Place) -> What {
        let begun = Instant::now();
        let size = self.content.len() as u64;
        let (mut transfer, opening) = Transfer::begin(options, size, settings, begun.elapsed());
        let ended = place.is_needed().run_until_cancelled(self.converse(&mut transfer, opening, begun, place)).await;
        let acknowledged = transfer.acknowledged();
        match ended {
            Some(Ok(Ended::Complete)) => What::Finished { size, took: begun.elapsed(), resent: transfer.resent() },
            Some(Ok(Ended::GaveUp)) => What::GaveUp { acknowledged, took: begun.elapsed() },
            Some(Ok(Ended::Aborted { code, message })) => What::Aborted { code, message, acknowledged },
            Some(Err(error)) => What::Failed(error.kind()),
            None => What::Dropped { acknowledged },
        }
    }

    async fn converse(
        &mut self,
        transfer: &mut Transfer,
        opening: Replies,
        begun: Instant,
        place: &Place,
    ) -> io::Result<Ended> {
        self.send(opening).await;
        let mut alarm = pin!(sleep_until(begun + transfer.deadline()));
        let mut packet = [0; LONGEST_ANSWER];
        loop {
            let progress = tokio::select! {
                received = self.socket.recv_from(&mut packet) => {
                    let (length, from) = received?;
                    if from == self.client {
                        let progress = transfer.on_packet(&packet[..length], begun.elapsed());
                        if matches!(progress, Progress::Send(_)) {
                            place.is_answered();
                        }
                        progress
                    } else {
                        self.turn_away(&packet[..length], from).await;
                        Progress::Wait
                    }
                }
                () = alarm.as_mut() => transfer.on_timeout(begun.elapsed()),
            };
            match progress {
                Progress::Send(replies) => self.send(replies).await,
                Progress::Wait => {}
                Progress::Ended(ended) => return Ok(ended),
            }
            alarm.as_mut().reset(begun + transfer.deadline());
        }
    }

    /// What cannot be sent counts as lost: a packet filter, a full queue and a route that flaps pass, and are tried again.
    async fn send(&mut self, replies: Replies) {
        for reply in replies {
            self.datagram.clear();
            match reply {
                Reply::OptionAck(options) => Packet::OptionAck(options).write(&mut self.datagram),
                Reply::Data { block, wants } => {
                    Packet::Data { block, content: part(&self.content, &wants) }.write(&mut self.datagram);
                }
            }
            if let Err(error) = self.socket.send_to(&self.datagram, self.client).await {
                tracing::debug!(client = %self.client, %error, "cannot send a TFTP packet");
            }
        }
    }

    /// Another port has no part in this transfer, and does not end it. ERRORs are never answered.
    async fn turn_away(&self, packet: &[u8], from: SocketAddr) {
        if matches!(Packet::read(packet), Ok(Packet::Error { .. }) | Err(_)) {
            return;
        }
        let mut datagram = Vec::new();
        Packet::Error { code: code::UNKNOWN_TRANSFER, message: b"unknown transfer ID" }.write(&mut datagram);
        if let Err(error) = self.socket.send_to(&datagram, from).await {
            tracing::debug!(%from, %error, "cannot send a TFTP packet");
        }
    }
}

fn part<'a>(content: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    content.get(index(range.start)..index(range.end)).unwrap_or_default()
}
