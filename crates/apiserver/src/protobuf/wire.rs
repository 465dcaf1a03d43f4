//! Protobuf as it is on the wire: numbered fields of four shapes. Nothing is copied, nothing recurses.

/// What is wrong with some bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the protobuf message {message:?} ends too early")]
    End { message: &'static str },
    #[error("the protobuf message {message:?} is malformed")]
    Malformed { message: &'static str },
    #[error("field {field:?} has another type in the protobuf message than in the API")]
    WrongWire { field: &'static str },
    #[error("a time is out of range")]
    Time,
    #[error("{0}")]
    Json(String),
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
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            _ => return Err(self.malformed()),
        };
        Ok(Some((number, wire)))
    }

    fn malformed(&self) -> Fault {
        Fault::Malformed { message: self.message }
    }

    fn tag(&mut self) -> Result<(u32, u64), Fault> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        number.map(|number| (number, tag & 7)).ok_or_else(|| self.malformed())
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Fault::End { message: self.message })?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.malformed())
    }

    fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| self.malformed())?)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Fault::End { message: self.message })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Skips to the end of a group whose begin has been read, and of all groups within.
    fn skip_group(&mut self) -> Result<(), Fault> {
        let mut depth = 1_usize;
        while depth > 0 {
            let (_, kind) = self.tag()?;
            match kind {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => drop(self.bytes()?),
                3 => depth += 1,
                4 => depth -= 1,
                5 => drop(self.take(4)?),
                _ => return Err(self.malformed()),
            }
        }
        Ok(())
    }
}
