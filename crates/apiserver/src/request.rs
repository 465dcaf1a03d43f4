//! What a request asks for: path, query, body and accepted answers.

pub mod accept;
pub mod body;
pub(crate) mod drain;
pub(crate) mod go_json;
mod go_yaml;
pub mod path;
pub mod query;
#[cfg(test)]
mod tests;
