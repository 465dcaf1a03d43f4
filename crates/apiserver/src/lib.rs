//! An embeddable, durable API server that Kubernetes clients cannot tell from the real one, for the resources that it
//! serves.
//!
//! Objects are JSON from the wire to the store; nothing here is a typed Kubernetes object, and nothing here knows
//! Beskar7. Every resource takes one road: read ([`schema`]), decide ([`resource::Hooks`], [`cel`]), own
//! ([`ownership`]), store ([`store`]). Built-ins are resources whose definition is compiled in.

pub mod auth;
pub mod builtins;
pub mod catalogue;
pub mod clock;
pub mod crd;
pub mod discovery;
pub mod gc;
pub mod namespaces;
pub mod openapi;
pub mod ownership;
pub mod patch;
pub mod protobuf;
pub mod request;
pub mod resource;
pub mod selector;
pub mod server;
pub mod status;
pub mod table;
pub mod tls;
pub mod verbs;
pub mod watch;

pub use store;
