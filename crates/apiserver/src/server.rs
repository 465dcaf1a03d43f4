//! The server: everything joined, in process or on a socket.
