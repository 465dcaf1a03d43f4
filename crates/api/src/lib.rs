//! The resources that users write and read, and the CRDs that teach them to a Kubernetes API server.
//!
//! One module per dialect, plus [`capi`] for the shapes that Cluster API shares with its providers and [`boot`] for what our
//! own parts tell each other. Nothing is decided
//! here: a type says what a field means, [`crd`] turns the types into CRDs, and the controllers translate.

pub mod beskar7;
pub mod boot;
pub mod capi;
pub mod condition;
pub mod crd;
pub mod ironcore;
pub mod metal3;
mod wire;

pub use crd::{crds, crds_yaml, ironcore_crds, metal3_crds};
