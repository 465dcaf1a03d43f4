//! The first packet of a client.

use super::packet::{self, Malformed, Mode, Options, Packet, code};

/// How much of what a client wrote is shown.
const SHOWN: usize = 128;
/// No file that is served has a longer name.
const LONGEST_NAME: usize = 255;

/// What the packet with which a client turns to the server's port leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// A file to look up.
    Read(ReadRequest),
    /// Something to answer with an ERROR.
    Refused(Refusal),
    /// Nothing that starts a transfer: never answered, so that two servers cannot keep each other busy.
    Ignored,
}

/// A file that a client wants to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// Without slashes in front, printable ASCII, without a `..` segment. Not a path: to be looked up among the names served.
    pub name: String,
    /// What to negotiate.
    pub options: Options,
}

/// Why a request gets an ERROR; the text is the message that the client may show. What the client wrote is cleaned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such file, or there cannot be one.
    #[error("file not found: {0}")]
    NotFound(String),
    /// A write request for this name.
    #[error("access violation: this server is read-only")]
    ReadOnly(String),
    /// A request for this name in a mode other than octet.
    #[error("transfer mode {} is not supported: use octet", mode.name())]
    Mode {
        /// The file.
        name: String,
        /// The mode.
        mode: Mode,
    },
    /// Not a request that can be read.
    #[error("illegal request: {0}")]
    Malformed(#[from] Malformed),
}

impl First {
    /// Judges a packet that came to the server's port.
    pub fn of(datagram: &[u8]) -> Self {
        match Packet::read(datagram) {
            Ok(Packet::Read(request)) => ReadRequest::of(&request).map_or_else(Self::Refused, Self::Read),
            Ok(Packet::Write(request)) => Self::Refused(Refusal::ReadOnly(clean(request.name))),
            Ok(Packet::Data { .. } | Packet::Ack(_) | Packet::Error { .. } | Packet::OptionAck(_))
            | Err(Malformed::Short) => Self::Ignored,
            Err(malformed) => Self::Refused(malformed.into()),
        }
    }
}

impl ReadRequest {
    fn of(request: &packet::Request<'_>) -> Result<Self, Refusal> {
        if request.mode != Mode::Octet {
            return Err(Refusal::Mode { name: clean(request.name), mode: request.mode });
        }
        let name = str::from_utf8(request.name).ok().map(|name| name.trim_start_matches('/'));
        match name.filter(|name| is_acceptable(name)) {
            Some(name) => Ok(Self { name: name.to_owned(), options: request.options }),
            None => Err(Refusal::NotFound(clean(request.name))),
        }
    }
}

fn is_acceptable(name: &str) -> bool {
    let printable = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'\\';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(printable) && name.split('/').all(|part| part != "..")
}

impl Refusal {
    /// The code of the ERROR.
    pub fn code(&self) -> u16 {
        match self {
            Self::NotFound(_) => code::NOT_FOUND,
            Self::ReadOnly(_) => code::ACCESS_VIOLATION,
            Self::Mode { .. } | Self::Malformed(_) => code::ILLEGAL_OPERATION,
        }
    }

    /// The name that was asked for, cleaned; empty if it could not be read.
    pub fn name(&self) -> &str {
        match self {
            Self::NotFound(name) | Self::ReadOnly(name) | Self::Mode { name, .. } => name,
            Self::Malformed(_) => "",
        }
    }

    /// Appends the ERROR.
    pub fn write(&self, out: &mut Vec<u8>) {
        Packet::Error { code: self.code(), message: self.to_string().as_bytes() }.write(out);
    }
}

/// What a client wrote, safe for logs and terminals: printable ASCII, everything else as a question mark, cut after 128 bytes.
pub fn clean(text: &[u8]) -> String {
    let shown = text.iter().take(SHOWN).map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '?' });
    shown.chain(if text.len() > SHOWN { "..." } else { "" }.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(name: &[u8], mode: Mode) -> First {
        let mut datagram = Vec::new();
        Packet::Read(packet::Request { name, mode, options: Options::default() }).write(&mut datagram);
        First::of(&datagram)
    }

    #[test]
    fn a_name_is_taken_with_or_without_a_slash_in_front() {
        for (asked, name) in [
            (&b"snponly.efi"[..], "snponly.efi"),
            (b"/snponly.efi", "snponly.efi"),
            (b"//x86/snponly.efi", "x86/snponly.efi"),
            (b"boot..efi", "boot..efi"),
            (b"Boot File", "Boot File"),
        ] {
            let expected = ReadRequest { name: name.to_owned(), options: Options::default() };
            assert_eq!(first(asked, Mode::Octet), First::Read(expected));
        }
    }

    #[test]
    fn names_that_no_file_has_are_not_found_and_shown_without_what_steers_a_terminal() {
        let long = [b'a'; 300];
        for (asked, shown) in [
            (&b""[..], ""),
            (b"/", "/"),
            (b"../etc/passwd", "../etc/passwd"),
            (b"/a/../../etc/shadow", "/a/../../etc/shadow"),
            (b"a/..", "a/.."),
            (b"..\\boot.ini", "..\\boot.ini"),
            (b"\\boot.ini", "\\boot.ini"),
            (b"a\x1b[2Jb\r\n\x7f", "a?[2Jb???"),
            ("größe".as_bytes(), "gr????e"),
            (b"\xff\xfe", "??"),
            (&long, &format!("{}...", "a".repeat(128))),
        ] {
            let First::Refused(refusal) = first(asked, Mode::Octet) else { panic!("{shown} was accepted") };
            assert_eq!(refusal, Refusal::NotFound(shown.to_owned()));
            let mut answer = Vec::new();
            refusal.write(&mut answer);
            let message = format!("file not found: {shown}");
            assert_eq!(Packet::read(&answer), Ok(Packet::Error { code: 1, message: message.as_bytes() }));
        }
    }

    #[test]
    fn only_reading_bytes_is_offered() {
        for mode in [Mode::Netascii, Mode::Mail] {
            let First::Refused(refusal) = first(b"a", mode) else { panic!("{mode:?} was accepted") };
            let expected = format!("transfer mode {} is not supported: use octet", mode.name());
            assert_eq!((refusal.code(), refusal.to_string(), refusal.name()), (4, expected, "a"));
        }
        let First::Refused(refusal) = First::of(b"\0\x02/a\x07\0octet\0") else { panic!("a write was accepted") };
        assert_eq!((refusal.code(), refusal.name()), (2, "/a?"));
    }

    #[test]
    fn what_cannot_be_read_is_illegal_and_what_belongs_to_a_transfer_is_not_answered() {
        for illegal in [&b"\0\x01a"[..], b"\0\x01a\0octet", b"\0\x01a\0morse\0", b"\0\x09a\0octet\0", b"GET /"] {
            assert!(
                matches!(First::of(illegal), First::Refused(refusal) if refusal.code() == 4),
                "{}",
                illegal.escape_ascii()
            );
        }
        for strange in [&b""[..], b"\0", b"\0\x03\0\x01a", b"\0\x04\0\x01", b"\0\x05\0\x01no\0", b"\0\x06", b"\0\x04"] {
            assert_eq!(First::of(strange), First::Ignored, "{}", strange.escape_ascii());
        }
    }
}
