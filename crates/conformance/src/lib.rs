//! One suite of API behaviour, asked of two servers: the real kube-apiserver is the judge of ours.
