//! The test bed itself: do the real parts start, behave as others will rely on, and end?
#![allow(clippy::expect_used, reason = "clippy does not know that helpers of tests are tests")]

mod cluster;
mod leftovers;
mod redfish;
mod sushy;
mod vm;
