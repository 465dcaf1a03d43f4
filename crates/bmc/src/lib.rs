//! bmc
