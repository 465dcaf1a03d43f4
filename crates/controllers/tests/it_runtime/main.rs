//! What keeps the operator running, on a real API server.

mod leader;
