//! One transfer.

use std::ops::Range;
use std::time::Duration;

use super::packet::{DEFAULT_BLKSIZE, LARGEST_BLKSIZE, Options, Packet, SMALLEST_BLKSIZE};
use super::request::clean;

/// Much less than block numbers until they start anew, so that what is not in a window is of the past.
const LARGEST_WINDOW: u16 = 1024;

/// What the server grants, and how long it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The largest block. Fragments are dropped by many firmwares, so that a block, 4 bytes of TFTP, 8 of UDP and 20 of IPv4 should
    /// fit into an Ethernet frame.
    pub blksize: u16,
    /// The most blocks until the next ACK, 1 to 1024.
    pub windowsize: u16,
    /// The wait until something is sent again; doubled each time. The client's `timeout` option replaces it.
    pub timeout: Duration,
    /// Where doubling ends.
    pub longest_timeout: Duration,
    /// How often the same is sent again to a client that has answered before.
    pub retries: u32,
    /// How often the same is sent again to a client that never answered. Its address may be somebody else's, and a client that
    /// exists repeats its request.
    pub opening_retries: u32,
}

impl Default for Settings {
    /// Silence ends a transfer after 40 seconds, an unanswered one after 12.
    fn default() -> Self {
        Self {
            blksize: 1468,
            windowsize: 64,
            timeout: Duration::from_millis(500),
            longest_timeout: Duration::from_secs(4),
            retries: 11,
            opening_retries: 4,
        }
    }
}

/// A file on its way to a client. Time is what passed since a start that the caller chooses.
#[derive(Debug)]
pub struct Transfer {
    size: u64,
    blksize: u16,
    windowsize: u16,
    /// Accepted options, until the client has acknowledged them.
    offer: Option<Options>,
    /// How many there are. The last one is short, and empty if the size is a multiple of the block size.
    blocks: u64,
    acknowledged: u64,
    /// What was sent for the first time; those after `acknowledged` may be lost.
    sent: u64,
    resent: u64,
    answered: bool,
    tries: u32,
    settings: Settings,
    deadline: Duration,
}

/// What a packet or the lack of one leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send these, in this order.
    Send(Replies),
    /// Nothing to do before the next packet or the deadline.
    Wait,
    /// The transfer is over; nothing is to be sent.
    Ended(Ended),
}

/// How a transfer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The client has acknowledged the last block.
    Complete,
    /// The client sent an ERROR. Firmware that only wants to know a file's size does so.
    Aborted {
        /// Its code.
        code: u16,
        /// Its message, cleaned.
        message: String,
    },
    /// The client does not answer any more.
    GaveUp,
}

/// One datagram to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// An OACK.
    OptionAck(Options),
    /// A DATA packet.
    Data {
        /// Its number on the wire.
        block: u16,
        /// Its content, as a range of the file.
        wants: Range<u64>,
    },
}

/// Datagrams to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    offer: Option<Options>,
    blocks: Range<u64>,
    blksize: u16,
    size: u64,
}

impl Transfer {
    /// Starts to send a file of that size: with an OACK if one of the options is understood, else with the first block.
    pub fn begin(asked: &Options, size: u64, settings: &Settings, now: Duration) -> (Self, Replies) {
        let largest = settings.blksize.clamp(SMALLEST_BLKSIZE, LARGEST_BLKSIZE);
        let offer = Options {
            blksize: asked.blksize.map(|blksize| blksize.clamp(SMALLEST_BLKSIZE, largest)),
            timeout: asked.timeout,
            tsize: asked.tsize.map(|_| size),
            windowsize: asked.windowsize.map(|blocks| blocks.min(settings.windowsize).clamp(1, LARGEST_WINDOW)),
        };
        let mut settings = *settings;
        if let Some(seconds) = offer.timeout {
            settings.timeout = Duration::from_secs(seconds.into());
        }
        let blksize = offer.blksize.unwrap_or(DEFAULT_BLKSIZE);
        let mut transfer = Self {
            size,
            blksize,
            windowsize: offer.windowsize.unwrap_or(1),
            offer: (!offer.is_empty()).then_some(offer),
            blocks: size / u64::from(blksize) + 1,
            acknowledged: 0,
            sent: 0,
            resent: 0,
            answered: false,
            tries: 0,
            settings,
            deadline: now + settings.timeout,
        };
        let replies = if transfer.offer.is_some() { transfer.outstanding() } else { transfer.next_window(now) };
        (transfer, replies)
    }

    /// Takes a packet that the client sent.
    pub fn on_packet(&mut self, datagram: &[u8], now: Duration) -> Progress {
        match Packet::read(datagram) {
            Ok(Packet::Ack(block)) => self.on_ack(block, now),
            Ok(Packet::Error { code, message }) => Progress::Ended(Ended::Aborted { code, message: clean(message) }),
            // Not worth to end a transfer for: whoever can guess the port may have sent it.
            Ok(Packet::Read(_) | Packet::Write(_) | Packet::Data { .. } | Packet::OptionAck(_)) | Err(_) => {
                Progress::Wait
            }
        }
    }

    /// Sends again what was not acknowledged until the deadline. Before it, there is nothing to do.
    pub fn on_timeout(&mut self, now: Duration) -> Progress {
        if now < self.deadline {
            return Progress::Wait;
        }
        let retries = if self.answered { self.settings.retries } else { self.settings.opening_retries };
        if self.tries >= retries {
            return Progress::Ended(Ended::GaveUp);
        }
        self.tries += 1;
        self.resent += self.sent - self.acknowledged;
        self.deadline = now + self.patience();
        Progress::Send(self.outstanding())
    }

    /// When to call [`on_timeout`](Self::on_timeout). Only progress defers it: packets that change nothing do not keep a transfer
    /// alive.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Whether the client has answered. Before that, its address may be somebody else's.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// How many bytes of the file have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.saturating_mul(self.blksize.into()).min(self.size)
    }

    /// How many blocks were sent more than once, counting each time.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    fn on_ack(&mut self, block: u16, now: Duration) -> Progress {
        if self.offer.is_some() {
            if block != 0 {
                return Progress::Wait;
            }
            self.offer = None;
            self.answered = true;
            return Progress::Send(self.next_window(now));
        }
        let new = u64::from(block.wrapping_sub(on_wire(self.acknowledged)));
        // 0 is the ACK before, once more. Answering it would double every packet from here to the end (the Sorcerer's Apprentice
        // bug); if the start of a window was lost, the deadline sends it again.
        if new == 0 || new > self.sent - self.acknowledged {
            return Progress::Wait;
        }
        self.acknowledged += new;
        self.answered = true;
        if self.acknowledged == self.blocks {
            return Progress::Ended(Ended::Complete);
        }
        Progress::Send(self.next_window(now))
    }

    /// The window after the last acknowledged block; within it may be what was sent before and lost.
    fn next_window(&mut self, now: Duration) -> Replies {
        self.resent += self.sent - self.acknowledged;
        self.sent = (self.acknowledged + u64::from(self.windowsize)).min(self.blocks);
        self.tries = 0;
        self.deadline = now + self.patience();
        self.outstanding()
    }

    fn outstanding(&self) -> Replies {
        let blocks = self.acknowledged..self.sent;
        Replies { offer: self.offer, blocks, blksize: self.blksize, size: self.size }
    }

    fn patience(&self) -> Duration {
        let Settings { timeout, longest_timeout, .. } = self.settings;
        timeout.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX)).min(longest_timeout.max(timeout))
    }
}

impl Iterator for Replies {
    type Item = Reply;

    fn next(&mut self) -> Option<Reply> {
        if let Some(options) = self.offer.take() {
            return Some(Reply::OptionAck(options));
        }
        let index = self.blocks.next()?;
        let start = index * u64::from(self.blksize);
        let wants = start..start.saturating_add(self.blksize.into()).min(self.size);
        Some(Reply::Data { block: on_wire(index + 1), wants })
    }
}

/// The number of a block modulo 65,536.
fn on_wire(block: u64) -> u16 {
    let [.., high, low] = block.to_be_bytes();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests;
