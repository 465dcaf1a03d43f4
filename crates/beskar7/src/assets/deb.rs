//! Reads Debian packages: an ar archive of two compressed tar archives, one that describes the package and one with its files.
//!
//! Nothing is written here, and no name out of the package is ever used as a path.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};

use anyhow::{Context as _, anyhow, bail};
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use tar::Archive;

use super::LIMIT;

/// What decompressors may keep in memory.
const WINDOW: u64 = 80 << 20;

/// A package whose outer archive was read.
#[derive(Debug)]
pub(super) struct Deb<'a> {
    control: Member<'a>,
    data: Member<'a>,
}

impl<'a> Deb<'a> {
    /// Takes the outer archive apart.
    pub(super) fn parse(bytes: &'a [u8]) -> anyhow::Result<Self> {
        let members = members(bytes)?;
        let [first, rest @ ..] = members.as_slice() else { bail!("it is empty") };
        if first.name != "debian-binary" || !first.content.starts_with(b"2.") {
            bail!("it is no Debian package of format 2");
        }
        let find = |archive: &str| {
            let found = rest.iter().find(|member| member.name.starts_with(archive)).copied();
            found.with_context(|| format!("it has no {archive}xz, {archive}zst or {archive}gz"))
        };
        Ok(Self { control: find("control.tar.")?, data: find("data.tar.")? })
    }

    /// What the package says of itself, by field.
    pub(super) fn fields(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut files = self.control.pick(&["control"])?;
        let control = files.remove("control").context("it does not say what it is")?;
        let control = String::from_utf8(control).context("what it says of itself is not text")?;
        // Lines that begin with a space continue a field that nobody asks for.
        let fields = control.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_once(':'));
        Ok(fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    /// Those of these files that are in the package, by their path in it. Links are not.
    pub(super) fn pick(&self, wanted: &[&str]) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        self.data.pick(wanted)
    }
}

/// One member of the ar archive.
#[derive(Debug, Clone, Copy)]
struct Member<'a> {
    name: &'a str,
    content: &'a [u8],
}

impl Member<'_> {
    fn pick(&self, wanted: &[&str]) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        let mut unpacked = Bounded { inner: self.unpack()?, left: LIMIT };
        let picked = pick(&mut unpacked, wanted);
        // To the end, where checksums are, and where more may come than there should be.
        picked
            .and_then(|picked| io::copy(&mut unpacked, &mut io::sink()).map(|_| picked))
            .map_err(|error| anyhow!("its {} cannot be unpacked: {error}", self.name))
    }

    fn unpack(&self) -> anyhow::Result<Box<dyn Read + '_>> {
        let kind = self.name.rsplit('.').next();
        Ok(match kind {
            Some("gz") => Box::new(MultiGzDecoder::new(self.content)),
            Some("xz") => {
                let kibibytes = u32::try_from(WINDOW >> 10)?;
                Box::new(XzReader::new_mem_limit(self.content, true, kibibytes))
            }
            Some("zst") => {
                let decoder = StreamingDecoder::new_with_max_window_size(self.content, WINDOW);
                Box::new(decoder.map_err(|error| anyhow!("its {} cannot be unpacked: {error}", self.name))?)
            }
            _ => bail!("its {} is compressed in a way that is not known here", self.name),
        })
    }
}

fn pick(archive: &mut dyn Read, wanted: &[&str]) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = entry.path_bytes().into_owned();
        let path = path.strip_prefix(b"./").unwrap_or(&path);
        let Some(name) = wanted.iter().find(|name| name.as_bytes() == path) else { continue };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if content.len() as u64 != entry.size() {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("{name} ends too soon")));
        }
        if found.insert((*name).to_owned(), content).is_some() {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("it has {name} twice")));
        }
    }
    Ok(found)
}

/// Reads no more than this, and fails if there is more.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| {
            io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {} MiB when unpacked", LIMIT >> 20))
        })?;
        Ok(read)
    }
}

/// The members of an ar archive: after eight bytes, each has a head of sixty, and an even length.
fn members(bytes: &[u8]) -> anyhow::Result<Vec<Member<'_>>> {
    const HEAD: usize = 60;
    let mut rest = bytes.strip_prefix(b"!<arch>\n").context("it is no Debian package")?;
    let mut members = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_at_checked(HEAD).context("it ends too soon")?;
        if !head.ends_with(b"`\n") {
            bail!("it is damaged");
        }
        let text = |range| std::str::from_utf8(&head[range]).map(str::trim_end).context("it is damaged");
        let length: usize = text(48..58)?.parse().context("it is damaged")?;
        let (content, after) = after.split_at_checked(length).context("it ends too soon")?;
        members.push(Member { name: text(0..16)?.trim_end_matches('/'), content });
        rest = after.get(length % 2..).unwrap_or_default();
    }
    Ok(members)
}
