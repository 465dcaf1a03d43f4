//! One suite of API behaviour, asked of two servers: the real kube-apiserver is the judge of ours.
//!
//! A case is a short [`Story`] of raw requests. It is told to both servers over HTTPS by the same small client; what they
//! answer is recorded, stripped of what must differ (identities, times, revisions), and compared.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "there is nobody to hand an error to: a broken test bed fails the test"
)]

mod answer;
mod compare;
mod normal;
mod shell;
mod story;
mod target;
mod watching;
mod wire;

pub use answer::Answer;
pub use compare::{Difference, KnownDifference, Step, differences, verdict};
pub use normal::normalise;
pub use shell::Run;
pub use story::Story;
pub use target::Target;
pub use watching::Watching;
pub use wire::Wire;
