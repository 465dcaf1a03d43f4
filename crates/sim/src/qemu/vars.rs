//! The variables of UEFI firmware, as OVMF keeps them in its flash: a firmware volume with one store of authenticated variables.
//!
//! The layout is that of EDK II (`MdeModulePkg/Include/Guid/VariableFormat.h`). The store is read as a whole and written anew, without what
//! was deleted; what is behind it, such as the working block of fault-tolerant writes, stays as it is.

use std::ops::Range;

/// `EFI_AUTHENTICATED_VARIABLE_GUID`, as it lies in memory.
const STORE: [u8; 16] = *b"\x78\x2c\xf3\xaa\x7b\x94\x9a\x43\xa1\x80\x2e\x14\x4e\xc3\x77\x92";
/// `EFI_GLOBAL_VARIABLE`, to which boot options belong.
const GLOBAL: [u8; 16] = *b"\x61\xdf\xe4\x8b\xca\x93\xd2\x11\xaa\x0d\x00\xe0\x98\x03\x2b\x8c";

/// Length of the store's own header: its GUID, its size, its format and state, and six bytes for later.
const STORE_HEADER: usize = 28;
/// What is before the name of a variable.
const HEADER: usize = 60;
const START: [u8; 2] = [0xaa, 0x55];
/// States of a variable: it is valid, or it was until its successor was written, which never happened.
const ADDED: u8 = 0x3f;
const LEAVING: u8 = 0x3e;

/// Kept without power, and seen by the firmware's boot services and by the running system.
const ATTRIBUTES: u32 = 7;

/// What OVMF puts at the end of the boot options that it makes by itself: `mBmAutoCreateBootOptionGuid` of EDK II.
const MADE_BY_FIRMWARE: [u8; 16] = *b"\x4e\xac\x08\x81\x11\x9f\x59\x4d\x85\x0e\xe2\x1a\x52\x2c\x59\xb2";

/// The boot option that we write. Firmware and systems number theirs from 0 on.
const OPTION: u16 = 0xb007;

/// Why a file holds no variables that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VarsError {
    #[error("the file of UEFI variables has no firmware volume")]
    NoVolume,
    #[error("the file of UEFI variables has no store of authenticated variables")]
    NoStore,
    #[error("the variable at {0:#x} in the file of UEFI variables is cut off")]
    CutOff(usize),
    #[error("the UEFI variables do not fit into their file any more")]
    Full,
}

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    attributes: u32,
    /// A counter, a time and the index of a key, which are of no concern here.
    authentication: [u8; 28],
    vendor: [u8; 16],
    /// UTF-16, with the zero at its end.
    name: Vec<u8>,
    data: Vec<u8>,
}

/// A file of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vars {
    flash: Vec<u8>,
    /// Where the variables are.
    room: Range<usize>,
    variables: Vec<Variable>,
}

impl Vars {
    pub(crate) fn read(flash: Vec<u8>) -> Result<Self, VarsError> {
        if flash.get(0x28..0x2c) != Some(b"_FVH") {
            return Err(VarsError::NoVolume);
        }
        let store = usize::from(u16_at(&flash, 0x30).ok_or(VarsError::NoVolume)?);
        if flash.get(store..store + STORE.len()) != Some(&STORE[..]) {
            return Err(VarsError::NoStore);
        }
        let size = size_at(&flash, store + STORE.len()).ok_or(VarsError::NoStore)?;
        let room = store + STORE_HEADER..store.saturating_add(size);
        if room.is_empty() || room.end > flash.len() {
            return Err(VarsError::NoStore);
        }
        let variables = list(&flash, room.clone())?;
        Ok(Self { flash, room, variables })
    }

    /// The file with the variables as they are now.
    pub(crate) fn write(mut self) -> Result<Vec<u8>, VarsError> {
        let room = self.flash.get_mut(self.room).ok_or(VarsError::NoStore)?;
        // As flash is when it was erased.
        room.fill(0xff);
        let mut at = 0;
        for variable in &self.variables {
            let bytes = variable.bytes();
            room.get_mut(at..at + bytes.len()).ok_or(VarsError::Full)?.copy_from_slice(&bytes);
            at = (at + bytes.len()).next_multiple_of(4);
        }
        Ok(self.flash)
    }

    /// The next boot, and only that, fetches this URL and starts what it is; without a URL, no such order is left.
    pub(crate) fn boot_next(&mut self, url: Option<&str>) {
        let option = name(&format!("Boot{OPTION:04X}"));
        self.remove(&option);
        let next = name("BootNext");
        let ours = OPTION.to_le_bytes();
        if url.is_some() || self.variables.iter().any(|variable| variable.is(&next) && variable.data == ours) {
            self.remove(&next);
        }
        if let Some(url) = url {
            self.variables.push(Variable::global(option, boot_option(url)));
            self.variables.push(Variable::global(next, ours.to_vec()));
        }
    }

    /// Removes the boot options that firmware has made for the devices of an earlier boot. It makes them anew, but would leave the old ones
    /// where they are: after an HTTP boot, the network cards would go on trying HTTP first.
    pub(crate) fn forget_devices(&mut self) {
        let is_made = |variable: &Variable| variable.vendor == GLOBAL && variable.data.ends_with(&MADE_BY_FIRMWARE);
        let gone: Vec<Vec<u8>> =
            self.variables.extract_if(.., |variable| is_made(variable)).map(|one| one.name).collect();
        let order = name("BootOrder");
        if let Some(order) = self.variables.iter_mut().find(|variable| variable.is(&order)) {
            let stays = |option: &&[u8]| {
                let number = u16_at(option, 0).unwrap_or_default();
                !gone.contains(&name(&format!("Boot{number:04X}")))
            };
            order.data = order.data.chunks(2).filter(stays).collect::<Vec<_>>().concat();
        }
        // A variable without data does not exist.
        self.variables.retain(|variable| !variable.data.is_empty());
    }

    fn remove(&mut self, name: &[u8]) {
        self.variables.retain(|variable| !variable.is(name));
    }
}

impl Variable {
    fn global(name: Vec<u8>, data: Vec<u8>) -> Self {
        Self { attributes: ATTRIBUTES, authentication: [0; 28], vendor: GLOBAL, name, data }
    }

    fn is(&self, name: &[u8]) -> bool {
        self.vendor == GLOBAL && self.name == name
    }

    fn bytes(&self) -> Vec<u8> {
        let length = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes();
        [
            &START[..],
            &[ADDED, 0],
            &self.attributes.to_le_bytes(),
            &self.authentication,
            &length(&self.name),
            &length(&self.data),
            &self.vendor,
            &self.name,
            &self.data,
        ]
        .concat()
    }
}

/// The valid variables.
fn list(flash: &[u8], room: Range<usize>) -> Result<Vec<Variable>, VarsError> {
    let store = flash.get(..room.end).ok_or(VarsError::NoStore)?;
    let (mut valid, mut leaving) = (Vec::new(), Vec::new());
    let mut at = room.start;
    while store.get(at..at + START.len()) == Some(&START[..]) {
        let cut_off = VarsError::CutOff(at);
        let header = store.get(at..at + HEADER).ok_or(cut_off)?;
        let sizes = size_at(header, 36).zip(size_at(header, 40)).ok_or(cut_off)?;
        let name = at + HEADER..(at + HEADER).saturating_add(sizes.0);
        let data = name.end..name.end.saturating_add(sizes.1);
        let variable = Variable {
            attributes: u32_at(header, 4).ok_or(cut_off)?,
            authentication: array_at(header, 8).ok_or(cut_off)?,
            vendor: array_at(header, 44).ok_or(cut_off)?,
            name: store.get(name).ok_or(cut_off)?.to_vec(),
            data: store.get(data.clone()).ok_or(cut_off)?.to_vec(),
        };
        match header.get(2) {
            Some(&ADDED) => valid.push(variable),
            Some(&LEAVING) => leaving.push(variable),
            _ => {}
        }
        at = data.end.next_multiple_of(4);
    }
    leaving.retain(|old| !valid.iter().any(|new| (new.vendor, &new.name) == (old.vendor, &old.name)));
    valid.append(&mut leaving);
    Ok(valid)
}

/// `EFI_LOAD_OPTION`: attributes (active), the length of the path, a title, and the path: a URI that any network card may fetch.
fn boot_option(url: &str) -> Vec<u8> {
    let node = |kind: u8, subkind: u8, data: &[u8]| {
        let length = u16::try_from(data.len() + 4).unwrap_or(u16::MAX).to_le_bytes();
        [&[kind, subkind], &length[..], data].concat()
    };
    let path = [node(3, 24, url.as_bytes()), node(0x7f, 0xff, &[])].concat();
    let length = u16::try_from(path.len()).unwrap_or(u16::MAX).to_le_bytes();
    [&1_u32.to_le_bytes()[..], &length, &name("HttpBootUri"), &path].concat()
}

fn name(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn size_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}

#[cfg(test)]
#[path = "vars_tests.rs"]
mod tests;
