//! How TFTP looks on the wire.
//!
//! Reading is lenient where clients are known to be careless (padding after a request, an ERROR without its last NUL), takes
//! nothing out of the packet but slices, and never panics.

/// The block size when none was negotiated.
pub const DEFAULT_BLKSIZE: u16 = 512;
/// The smallest block size that RFC 2348 allows.
pub const SMALLEST_BLKSIZE: u16 = 8;
/// The largest block size that RFC 2348 allows.
pub const LARGEST_BLKSIZE: u16 = 65464;

/// Error codes of RFC 1350 that a server which only reads files has a use for.
pub mod code {
    /// See the message.
    pub const UNDEFINED: u16 = 0;
    /// File not found.
    pub const NOT_FOUND: u16 = 1;
    /// Access violation.
    pub const ACCESS_VIOLATION: u16 = 2;
    /// Illegal TFTP operation.
    pub const ILLEGAL_OPERATION: u16 = 4;
    /// Unknown transfer ID: the packet came from a port that has no part in the transfer.
    pub const UNKNOWN_TRANSFER: u16 = 5;
}

mod opcode {
    pub(super) const READ: u16 = 1;
    pub(super) const WRITE: u16 = 2;
    pub(super) const DATA: u16 = 3;
    pub(super) const ACK: u16 = 4;
    pub(super) const ERROR: u16 = 5;
    pub(super) const OPTION_ACK: u16 = 6;
}

/// One datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// RRQ
    Read(Request<'a>),
    /// WRQ
    Write(Request<'a>),
    /// DATA
    Data {
        /// Its number modulo 65,536; the first one is 1.
        block: u16,
        /// As long as the block size, or shorter and the last one.
        content: &'a [u8],
    },
    /// ACK: this block and all before it have arrived.
    Ack(u16),
    /// ERROR: the transfer is over.
    Error {
        /// One of [`code`], or what the client makes up.
        code: u16,
        /// Whatever the other side wrote: not to be shown before it is [cleaned](super::clean).
        message: &'a [u8],
    },
    /// OACK: the options that the server accepts.
    OptionAck(Options),
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Any bytes but NUL.
    pub name: &'a [u8],
    /// How to transfer the file.
    pub mode: Mode,
    /// What to negotiate.
    pub options: Options,
}

/// Transfer modes of RFC 1350.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Text with the line ends of Telnet.
    Netascii,
    /// Bytes.
    Octet,
    /// Obsolete since 1992.
    Mail,
}

/// The options that are understood. Values outside of what the RFCs allow are read as if the option were not there, with one
/// exception: a number too large for its type is read as the largest, which the server then lowers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Bytes in a block, at least 8.
    pub blksize: Option<u16>,
    /// Seconds until something is sent again, at least 1.
    pub timeout: Option<u8>,
    /// The size of the file; in requests of no meaning.
    pub tsize: Option<u64>,
    /// Blocks until the next ACK, at least 1.
    pub windowsize: Option<u16>,
}

/// A datagram that is not TFTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends within a field of fixed length.
    #[error("the packet is too short")]
    Short,
    /// Neither 1 to 6.
    #[error("unknown operation {0}")]
    Operation(u16),
    /// The name or the mode of a request has no end.
    #[error("the file name or the mode is not terminated")]
    Unterminated,
    /// None of the three modes that there are.
    #[error("unknown transfer mode")]
    Mode,
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    pub fn read(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = datagram;
        match number(&mut rest)? {
            opcode::READ => Ok(Self::Read(Request::read(rest)?)),
            opcode::WRITE => Ok(Self::Write(Request::read(rest)?)),
            opcode::DATA => Ok(Self::Data { block: number(&mut rest)?, content: rest }),
            opcode::ACK => Ok(Self::Ack(number(&mut rest)?)),
            opcode::ERROR => Ok(Self::Error { code: number(&mut rest)?, message: until_nul(rest) }),
            opcode::OPTION_ACK => Ok(Self::OptionAck(Options::read(rest))),
            other => Err(Malformed::Operation(other)),
        }
    }

    /// Appends the datagram. Names and messages end at their first NUL.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Read(request) => request.write(opcode::READ, out),
            Self::Write(request) => request.write(opcode::WRITE, out),
            Self::Data { block, content } => {
                out.extend(header(opcode::DATA, *block));
                out.extend_from_slice(content);
            }
            Self::Ack(block) => out.extend(header(opcode::ACK, *block)),
            Self::Error { code, message } => {
                out.extend(header(opcode::ERROR, *code));
                write_string(message, out);
            }
            Self::OptionAck(options) => {
                out.extend(opcode::OPTION_ACK.to_be_bytes());
                options.write(out);
            }
        }
    }
}

impl<'a> Request<'a> {
    fn read(mut rest: &'a [u8]) -> Result<Self, Malformed> {
        let name = string(&mut rest).ok_or(Malformed::Unterminated)?;
        let mode = string(&mut rest).ok_or(Malformed::Unterminated)?;
        let modes = [Mode::Netascii, Mode::Octet, Mode::Mail];
        let mode = modes.into_iter().find(|known| known.name().as_bytes().eq_ignore_ascii_case(mode));
        Ok(Self { name, mode: mode.ok_or(Malformed::Mode)?, options: Options::read(rest) })
    }

    fn write(&self, opcode: u16, out: &mut Vec<u8>) {
        out.extend(opcode.to_be_bytes());
        write_string(self.name, out);
        write_string(self.mode.name().as_bytes(), out);
        self.options.write(out);
    }
}

impl Mode {
    /// What it is called on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Netascii => "netascii",
            Self::Octet => "octet",
            Self::Mail => "mail",
        }
    }
}

impl Options {
    /// Whether there is nothing to negotiate.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Of an option that is there twice, the first that makes sense counts.
    fn read(mut rest: &[u8]) -> Self {
        let mut options = Self::default();
        while let (Some(name), Some(value)) = (string(&mut rest), string(&mut rest)) {
            let Some(value) = decimal(value) else { continue };
            let word = u16::try_from(value).unwrap_or(u16::MAX);
            let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
            if is("blksize") {
                options.blksize = options.blksize.or((word >= SMALLEST_BLKSIZE).then_some(word));
            } else if is("timeout") {
                options.timeout = options.timeout.or(u8::try_from(value).ok().filter(|seconds| *seconds > 0));
            } else if is("tsize") {
                options.tsize = options.tsize.or(Some(value));
            } else if is("windowsize") {
                options.windowsize = options.windowsize.or((word > 0).then_some(word));
            }
        }
        options
    }

    fn write(&self, out: &mut Vec<u8>) {
        let options = [
            ("blksize", self.blksize.map(u64::from)),
            ("timeout", self.timeout.map(u64::from)),
            ("tsize", self.tsize),
            ("windowsize", self.windowsize.map(u64::from)),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                write_string(name.as_bytes(), out);
                write_string(value.to_string().as_bytes(), out);
            }
        }
    }
}

fn header(opcode: u16, number: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (opcode.to_be_bytes(), number.to_be_bytes());
    [a, b, c, d]
}

fn number(rest: &mut &[u8]) -> Result<u16, Malformed> {
    let (bytes, after) = rest.split_first_chunk().ok_or(Malformed::Short)?;
    *rest = after;
    Ok(u16::from_be_bytes(*bytes))
}

/// The string at the front, if it has an end.
fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (string, after) = rest.split_at(end);
    *rest = &after[1..];
    Some(string)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Digits only; too many of them are the largest number.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, value))
}

fn write_string(string: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(until_nul(string));
    out.push(0);
}

#[cfg(test)]
mod tests;
