//! Protobuf as it is on the wire: numbered fields of four shapes. Nothing is copied, nothing recurses.

/// What is wrong with some bytes, in the words of Go's reader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("unexpected EOF")]
    End,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    Length,
    #[error("proto: {message}: illegal tag {tag} (wire type {wire})")]
    Tag { message: &'static str, tag: i32, wire: u64 },
    #[error("proto: {message}: wiretype end group for non-group")]
    EndGroup { message: &'static str },
    #[error("proto: unexpected end of group")]
    Group,
    #[error("proto: illegal wireType {0}")]
    WireType(u64),
    #[error("proto: wrong wireType = {wire} for field {}", go_name(field))]
    WrongWire { field: &'static str, wire: u8 },
    #[error("a time is out of range")]
    Time,
    #[error("{0}")]
    Json(String),
}

/// What Go calls a field.
fn go_name(field: &str) -> String {
    match field {
        "metadata" => "ObjectMeta".to_owned(),
        "uid" => "UID".to_owned(),
        "apiVersion" => "APIVersion".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
        }
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64,
    Bytes(&'a [u8]),
    /// A whole group, skipped: an old form that Kubernetes never uses.
    Group,
    Fixed32,
}

impl Wire<'_> {
    /// Its number on the wire.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Wire::Varint(_) => 0,
            Wire::Fixed64 => 1,
            Wire::Bytes(_) => 2,
            Wire::Group => 3,
            Wire::Fixed32 => 5,
        }
    }
}

/// The fields of a message, one after another.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    message: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], message: &'static str) -> Self {
        Self { rest: bytes, message }
    }

    /// The next field and its number; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        let wire = match kind {
            0 => Wire::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Wire::Fixed64
            }
            2 => Wire::Bytes(self.bytes()?),
            3 => {
                self.skip_group()?;
                Wire::Group
            }
            4 => return Err(Fault::EndGroup { message: self.message }),
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            other => return Err(Fault::WireType(other)),
        };
        Ok(Some((number, wire)))
    }

    fn tag(&mut self) -> Result<(u32, u64), Fault> {
        let tag = self.varint()?;
        let wire = tag & 7;
        // Go keeps 32 bits of the number, signed.
        let [a, b, c, d, ..] = (tag >> 3).to_le_bytes();
        let number = i32::from_le_bytes([a, b, c, d]);
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok((number, wire)),
            _ => Err(Fault::Tag { message: self.message, tag: number, wire }),
        }
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Fault::End)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Fault::Overflow)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = i64::from_ne_bytes(self.varint()?.to_ne_bytes());
        if length < 0 {
            return Err(Fault::Length);
        }
        self.take(usize::try_from(length).map_err(|_| Fault::Length)?)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Fault::End)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Skips to the end of a group whose begin has been read, and of all groups within.
    fn skip_group(&mut self) -> Result<(), Fault> {
        let mut depth = 1_usize;
        while depth > 0 {
            if self.rest.is_empty() {
                return Err(Fault::End);
            }
            let (_, kind) = self.tag()?;
            match kind {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => drop(self.bytes()?),
                3 => depth += 1,
                4 => depth = depth.checked_sub(1).ok_or(Fault::Group)?,
                5 => drop(self.take(4)?),
                other => return Err(Fault::WireType(other)),
            }
        }
        Ok(())
    }
}
