//! Rules for names, labels, annotations and the rest of `metadata`.
