//! Request bodies in Kubernetes' protobuf envelope, read as JSON.
