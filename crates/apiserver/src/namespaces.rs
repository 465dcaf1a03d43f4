//! The life of namespaces.
