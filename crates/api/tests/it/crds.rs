//! The generated CRDs.

use std::path::Path;

#[test]
fn the_committed_crd_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../config/crd/infrastructure.cluster.x-k8s.io_physicalhosts.yaml");
    let generated = api::crds_yaml();
    if std::env::var_os("UPDATE_MANIFESTS").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "{} does not match the types: run `make manifests`", path.display());
}
