//! Where `hack/setup` put the programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of one part; the script itself knows the name, which is a hash of its recipe.
pub fn home(part: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/setup");
    let output = Command::new(&script)
        .args(["--print", part])
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "the test bed lacks a part: run `make setup`\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    PathBuf::from(said.trim())
}
