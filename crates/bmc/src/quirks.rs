//! What differs between vendors, as data.

/// A family of BMC firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// By the book.
    Generic,
}
