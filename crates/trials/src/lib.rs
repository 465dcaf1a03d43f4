//! Nothing but tests: the operator on real API servers, with simulated, emulated and virtual servers.
