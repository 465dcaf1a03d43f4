//! The OpenAPI v3 documents.
