//! What keeps the operator running, on a real API server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken test bed fails the test")]

mod leader;
