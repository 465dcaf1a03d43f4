//! The resources that are compiled in.
