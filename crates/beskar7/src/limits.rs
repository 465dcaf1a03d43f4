//! Limits that the system sets.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Every BMC is a connection or two, and the usual limit of 1,024 open files is kept low only for the sake of old
/// programs that use `select`. We may raise it as far as the hard limit.
pub(crate) fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it is refused, what is allowed has to do.
    let _ = setrlimit(Resource::Nofile, limit);
}
