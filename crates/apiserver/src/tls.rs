//! The server's own authority and certificates, and the admin's kubeconfig.
