//! The differences that we live with. `docs/standalone.md` says the same to users, and a test keeps the two equal.

use conformance::KnownDifference;

pub(crate) const KNOWN_DIFFERENCES: &[KnownDifference] = &[];
