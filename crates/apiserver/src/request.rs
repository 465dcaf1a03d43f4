//! What a request asks for: path, query, body and accepted answers.

pub mod accept;
pub mod body;
pub(crate) mod drain;
pub mod path;
pub mod query;
#[cfg(test)]
mod tests;
