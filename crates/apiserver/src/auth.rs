//! Who is calling: client certificates and bearer tokens.
