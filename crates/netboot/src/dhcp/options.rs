//! The options of a message, and the check that all of them are inside it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::request::Ignored;

pub(super) const SUBNET_MASK: u8 = 1;
pub(super) const ROUTERS: u8 = 3;
pub(super) const DNS_SERVERS: u8 = 6;
pub(super) const DOMAIN_NAME: u8 = 15;
pub(super) const NTP_SERVERS: u8 = 42;
pub(super) const VENDOR_OPTIONS: u8 = 43;
pub(super) const REQUESTED_ADDRESS: u8 = 50;
pub(super) const LEASE_TIME: u8 = 51;
pub(super) const OVERLOAD: u8 = 52;
pub(super) const MESSAGE_TYPE: u8 = 53;
pub(super) const SERVER_ID: u8 = 54;
pub(super) const WANTED: u8 = 55;
pub(super) const MESSAGE: u8 = 56;
pub(super) const MAX_SIZE: u8 = 57;
pub(super) const RENEWAL_TIME: u8 = 58;
pub(super) const REBINDING_TIME: u8 = 59;
pub(super) const VENDOR_CLASS: u8 = 60;
pub(super) const CLIENT_ID: u8 = 61;
pub(super) const TFTP_SERVER: u8 = 66;
pub(super) const BOOT_FILE: u8 = 67;
pub(super) const USER_CLASS: u8 = 77;
pub(super) const RELAY_INFORMATION: u8 = 82;
pub(super) const ARCHITECTURES: u8 = 93;
pub(super) const NETWORK_INTERFACE: u8 = 94;
pub(super) const MACHINE_ID: u8 = 97;
/// Etherboot's, and therefore iPXE's.
pub(super) const ETHERBOOT: u8 = 175;
pub(super) const PAD: u8 = 0;
pub(super) const END: u8 = 255;

pub(super) const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Where the fields of the header are.
pub(super) const SNAME: std::ops::Range<usize> = 44..108;
pub(super) const FILE: std::ops::Range<usize> = 108..236;
/// Where the options begin, after the magic cookie.
pub(super) const OPTIONS: usize = 240;

/// The options by code. The pieces of one that comes several times are put together (RFC 3396): whatever may come only
/// once then has a wrong length, and counts as absent.
#[derive(Debug, Default)]
pub(super) struct Options(BTreeMap<u8, Vec<u8>>);

impl Options {
    /// All options of a message, including those in the fields of the names if option 52 says so.
    pub(super) fn of(message: &[u8]) -> Result<Self, Ignored> {
        let mut options = Self::default();
        options.take(message.get(OPTIONS..).unwrap_or_default())?;
        let overloaded = options.byte(OVERLOAD).unwrap_or(0);
        for (bit, field) in [(1, FILE), (2, SNAME)] {
            if matches!(overloaded, 1..=3) && overloaded & bit != 0 {
                options.take(message.get(field).unwrap_or_default())?;
            }
        }
        Ok(options)
    }

    /// The options in an option, such as 175. Nothing if they are not inside it.
    pub(super) fn within(value: &[u8]) -> Option<Self> {
        let mut options = Self::default();
        options.take(value).is_ok().then_some(options)
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Ignored> {
        loop {
            bytes = match bytes {
                // Some clients leave out the end.
                [] | [END, ..] => return Ok(()),
                [PAD, rest @ ..] => rest,
                [code, length, rest @ ..] => {
                    let (value, rest) = rest.split_at_checked(usize::from(*length)).ok_or(Ignored::Cut(*code))?;
                    self.0.entry(*code).or_default().extend_from_slice(value);
                    rest
                }
                [code] => return Err(Ignored::Cut(*code)),
            };
        }
    }

    pub(super) fn bytes(&self, code: u8) -> Option<&[u8]> {
        self.0.get(&code).map(Vec::as_slice)
    }

    pub(super) fn codes(&self) -> impl Iterator<Item = u8> {
        self.0.keys().copied()
    }

    /// The value of an option that has exactly this length.
    pub(super) fn exactly<const N: usize>(&self, code: u8) -> Option<[u8; N]> {
        self.bytes(code).and_then(|value| value.try_into().ok())
    }

    pub(super) fn byte(&self, code: u8) -> Option<u8> {
        self.exactly(code).map(|[byte]| byte)
    }

    pub(super) fn address(&self, code: u8) -> Option<Ipv4Addr> {
        self.exactly(code).map(|octets: [u8; 4]| Ipv4Addr::from(octets)).filter(|address| !address.is_unspecified())
    }
}
