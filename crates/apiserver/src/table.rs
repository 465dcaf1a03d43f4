//! Objects as rows of a table, and as metadata only.
