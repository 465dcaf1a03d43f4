//! Objects as rows of a table, and as metadata only.

mod duration;

pub(crate) use duration::age;
