//! What a certificate says about its subject and its time: the little of X.509 that is needed.
//!
//! Whether it can be believed is not decided here.

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) common_name: Option<String>,
    pub(super) organizations: Vec<String>,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    /// DNS names and addresses.
    pub(super) names: Vec<String>,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BOOLEAN: u8 = 0x01;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0]`: the version.
const VERSION: u8 = 0xa0;
/// `[3]`: the extensions.
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];

/// Reads a certificate; `None` if it is not one.
pub(super) fn facts(der: &[u8]) -> Option<Facts> {
    let mut certificate = Der(Der(der).take(SEQUENCE)?);
    let mut body = Der(certificate.take(SEQUENCE)?);
    body.take_if(VERSION)?;
    body.take(INTEGER)?;
    body.take(SEQUENCE)?;
    body.take(SEQUENCE)?;
    let mut validity = Der(body.take(SEQUENCE)?);
    let (not_before, not_after) = (validity.time()?, validity.time()?);
    let subject = Der(body.take(SEQUENCE)?);
    let mut facts = Facts { common_name: None, organizations: Vec::new(), not_before, not_after, names: Vec::new() };
    read_subject(subject, &mut facts)?;
    body.take(SEQUENCE)?;
    while let Some((tag, content)) = body.next()? {
        if tag == EXTENSIONS {
            read_extensions(Der(Der(content).take(SEQUENCE)?), &mut facts)?;
        }
    }
    Some(facts)
}

fn read_subject(mut subject: Der<'_>, facts: &mut Facts) -> Option<()> {
    while let Some((SET, set)) = subject.next()? {
        let mut set = Der(set);
        while let Some((SEQUENCE, pair)) = set.next()? {
            let mut pair = Der(pair);
            let kind = pair.take(OBJECT_ID)?;
            let (_, text) = pair.next()??;
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                COMMON_NAME => facts.common_name = Some(text),
                ORGANIZATION => facts.organizations.push(text),
                _ => {}
            }
        }
    }
    Some(())
}

fn read_extensions(mut extensions: Der<'_>, facts: &mut Facts) -> Option<()> {
    while let Some((SEQUENCE, extension)) = extensions.next()? {
        let mut extension = Der(extension);
        let kind = extension.take(OBJECT_ID)?;
        extension.take_if(BOOLEAN)?;
        let value = extension.take(OCTET_STRING)?;
        if kind == SUBJECT_ALT_NAME {
            let mut names = Der(Der(value).take(SEQUENCE)?);
            while let Some((tag, name)) = names.next()? {
                match tag {
                    DNS_NAME => facts.names.push(String::from_utf8_lossy(name).into_owned()),
                    IP_ADDRESS => facts.names.push(address(name)?.to_string()),
                    _ => {}
                }
            }
        }
    }
    Some(())
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
        _ => None,
    }
}

/// The rest of some DER.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element; `Some(None)` at the end, `None` if it is broken.
    #[expect(clippy::option_option, reason = "the end and a fault are two things, and both end the caller")]
    fn next(&mut self) -> Option<Option<(u8, &'a [u8])>> {
        let Some((&tag, rest)) = self.0.split_first() else { return Some(None) };
        let (&first, mut rest) = rest.split_first()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            let size = usize::from(first & 0x7f);
            // No certificate is longer than 16 MiB.
            let (digits, after) = rest.split_at_checked(size).filter(|(digits, _)| digits.len() <= 3)?;
            rest = after;
            digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Some((tag, content)))
    }

    /// The content of the next element, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()?.filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// Skips the next element if it has this tag.
    fn take_if(&mut self, tag: u8) -> Option<()> {
        if self.0.first() == Some(&tag) { self.take(tag).map(|_| ()) } else { Some(()) }
    }

    fn time(&mut self) -> Option<Timestamp> {
        let (tag, text) = self.next()??;
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
        let full = match tag {
            // Two digits of the year: 50 is 1950, 49 is 2049.
            UTC_TIME => format!("{}{text}", if text < "5" { "20" } else { "19" }),
            GENERALIZED_TIME => text.to_owned(),
            _ => return None,
        };
        let time = DateTime::strptime("%Y%m%d%H%M%SZ", full).ok()?;
        Offset::UTC.to_timestamp(time).ok()
    }
}
