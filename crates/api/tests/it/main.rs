//! What the types promise: the CRDs, the manifests of all generations, and how a real API server takes them.

mod crds;
