//! The architecture: crates depend only downwards. Development dependencies are free.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Who may use whom, and what the layer is for. A new crate or edge is a decision: write it down here.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    ("beskar7-engine", &[], "the engine decides and is pure: it knows nobody"),
    ("beskar7-api", &[], "the API is the resources' words: it knows nobody"),
    ("beskar7-store", &[], "the store knows bytes: neither objects nor HTTP"),
    ("beskar7-schema", &[], "schemas say what objects may be, whoever stores or serves them"),
    ("beskar7-cel", &["beskar7-schema"], "rules stand in schemas and know nothing of who asks"),
    (
        "beskar7-apiserver",
        &["beskar7-cel", "beskar7-schema", "beskar7-store"],
        "the API server and its clients must not share a mistake, nor does it know what it serves",
    ),
    ("beskar7-bmc", &["beskar7-engine"], "the BMC client fills in what the engine sees, and knows no Kubernetes"),
    ("beskar7-netboot", &[], "the protocols of network boot know packets: neither sockets nor hosts"),
    (
        "beskar7-boot",
        &["beskar7-engine", "beskar7-netboot"],
        "what servers boot is told in the engine's words, and knows no Kubernetes",
    ),
    ("beskar7-sim", &[], "the simulator must not share a mistake with the client it is tested with"),
    (
        "beskar7-controllers",
        &["beskar7-api", "beskar7-bmc", "beskar7-boot", "beskar7-engine", "beskar7-netboot"],
        "the controllers join resources, engine and hands; simulators and binaries are above or beside them",
    ),
    (
        "beskar7",
        &[
            "beskar7-api",
            "beskar7-apiserver",
            "beskar7-bmc",
            "beskar7-boot",
            "beskar7-controllers",
            "beskar7-engine",
            "beskar7-netboot",
            "beskar7-sim",
        ],
        "the binary wires; what only tests need does not belong into it",
    ),
    (
        "beskar7-bench",
        &["beskar7-api", "beskar7-bmc", "beskar7-boot", "beskar7-engine", "beskar7-sim", "beskar7-testkit"],
        "the benchmarks measure the binary from outside and the libraries from above; nobody builds on them",
    ),
    ("beskar7-conformance", &[], "the suite asks servers over the wire: it helps none of them"),
    (
        "beskar7-trials",
        &[
            "beskar7-api",
            "beskar7-apiserver",
            "beskar7-bmc",
            "beskar7-boot",
            "beskar7-controllers",
            "beskar7-sim",
            "beskar7-testkit",
        ],
        "tests and what they share, which joins everything; nobody builds on it",
    ),
    ("beskar7-testkit", &[], "the test bed is real parts: what it tests must not help it"),
];

/// Outside crates that a layer must not use: by the beginning of their names.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "beskar7-engine",
        &["kube", "k8s-openapi", "tokio", "hyper", "http", "axum", "reqwest", "tower", "futures", "rustls"],
        "the engine is pure: no Kubernetes, no network, no async",
    ),
    ("beskar7-apiserver", &["kube", "k8s-openapi"], "the API server and its clients must not share a mistake"),
    ("beskar7-store", &["kube", "k8s-openapi", "http", "hyper", "axum", "serde"], "the store knows bytes"),
    ("beskar7-schema", &["kube", "k8s-openapi", "tokio", "http", "hyper", "axum"], "schemas are pure"),
    ("beskar7-cel", &["kube", "k8s-openapi", "tokio", "http", "hyper", "axum"], "rules are pure"),
    ("beskar7-bmc", &["kube", "k8s-openapi"], "the BMC client knows no Kubernetes"),
    ("beskar7-boot", &["kube", "k8s-openapi"], "the boot service knows no Kubernetes"),
    ("beskar7-sim", &["kube", "k8s-openapi"], "the simulator knows no Kubernetes"),
];

/// Crate → its normal and build dependencies.
type Graph = BTreeMap<String, Vec<String>>;

#[test]
fn crates_depend_only_downwards() {
    let complaints = complaints(&graph());
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn a_wrong_edge_is_named_with_its_reason() {
    let mut graph = graph();
    graph.get_mut("beskar7-engine").unwrap().extend(["beskar7-api".to_owned(), "tokio-util".to_owned()]);
    graph.insert("beskar7-novelty".to_owned(), Vec::new());
    assert_eq!(
        complaints(&graph),
        [
            "beskar7-engine must not depend on beskar7-api: the engine decides and is pure: it knows nobody",
            "beskar7-engine must not depend on tokio-util: the engine is pure: no Kubernetes, no network, no async",
            "beskar7-novelty is in no layer yet: say in tests/it/layers.rs whom it may depend on, and why",
        ]
    );
}

/// Words of one dialect that the engine and the shared loops of the controllers must not know: which kinds it has, and how its users
/// ask for something. Nor do they name fields: no text has `spec.` in it.
const DIALECT_WORDS: &[&str] = &[
    "PhysicalHost",
    "Beskar7Machine",
    "Beskar7Cluster",
    "BareMetalHost",
    "Metal3",
    "ServerClaim",
    "ServerBootConfiguration",
    "beskar7.io/",
    "metal3.io/",
    "ironcore.dev/",
    "`beskar7 ",
    "api::beskar7",
    "api::metal3",
    "api::ironcore",
];

/// What may stand there all the same: the anchor is the same on the hosts of every dialect, and BootSessions are ours.
const EXCEPTIONS: &[&str] = &[r#"ANCHOR_ANNOTATION: &str = "beskar7.io/anchor""#, "spec.fetched.by of its BootSession"];

#[test]
fn the_engine_and_the_shared_loops_know_no_dialect() {
    let crates = crate::workspace().join("crates");
    let mut found = Vec::new();
    for folder in ["engine/src", "controllers/src"] {
        for file in shared_sources(&crates.join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = file.strip_prefix(&crates).unwrap().display().to_string();
            found.extend(dialect_words(&text).into_iter().map(|line| format!("{name}: {line}")));
        }
    }
    assert!(found.is_empty(), "move these into the dialect's folder:\n{}\n", found.join("\n"));
}

#[test]
fn a_dialects_word_in_a_shared_loop_is_found_unless_a_test_uses_it() {
    let text = "//! PhysicalHost\nlet kind = \"PhysicalHost\";\nlet field = format!(\"set spec.online of {}\", spec.name);\nlet name = spec.name;\nuse api::beskar7::names;\n#[cfg(test)]\nmod tests {\n    use api::beskar7::PhysicalHost;\n}\n";
    assert_eq!(
        dialect_words(text),
        [
            r#"let kind = "PhysicalHost";"#,
            r#"let field = format!("set spec.online of {}", spec.name);"#,
            "use api::beskar7::names;"
        ]
    );
}

/// Lines of a source file with a word of a dialect, but for comments and tests.
fn dialect_words(text: &str) -> Vec<&str> {
    lines_with(DIALECT_WORDS, text)
}

fn lines_with<'a>(words: &[&str], text: &'a str) -> Vec<&'a str> {
    let code = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
    let code =
        code.filter(|line| !line.starts_with("//") && !EXCEPTIONS.iter().any(|exception| line.contains(exception)));
    let names_field = |line: &str| line.split('"').skip(1).step_by(2).any(|text| text.contains("spec."));
    code.filter(|line| names_field(line) || words.iter().any(|word| line.contains(word))).collect()
}

#[test]
fn the_commands_know_hosts_and_no_dialect() {
    let source = crate::workspace().join("crates/beskar7/src");
    let files = ["hosts", "show", "power", "demo", "standalone"].map(|folder| shared_sources(&source.join(folder)));
    let files = files.into_iter().flatten().chain(["access.rs", "sim.rs", "roles.rs"].map(|file| source.join(file)));
    // Commands may speak of `beskar7 hosts`, and show hardware and faults as plain data in the words of our API.
    let kinds: Vec<_> = DIALECT_WORDS.iter().copied().filter(|word| !word.contains("beskar7")).collect();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let found = lines_with(&kinds, &text);
        assert!(found.is_empty(), "move these from {} into dialects/:\n{}\n", file.display(), found.join("\n"));
    }
}

/// All sources but the folders of dialects and tests.
fn shared_sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["beskar7", "metal3", "ironcore", "simulation", "tests"].contains(&name) {
            found.extend(shared_sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") && !name.ends_with("tests.rs") && name != "foreign.rs" {
            found.push(path);
        }
    }
    found
}

fn complaints(graph: &Graph) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, dependencies) in graph {
        let Some((_, allowed, why)) = ALLOWED.iter().find(|(known, ..)| known == name) else {
            complaints
                .push(format!("{name} is in no layer yet: say in tests/it/layers.rs whom it may depend on, and why"));
            continue;
        };
        for dependency in dependencies {
            if graph.contains_key(dependency) && !allowed.contains(&dependency.as_str()) {
                complaints.push(format!("{name} must not depend on {dependency}: {why}"));
            }
            for (_, prefixes, why) in FORBIDDEN.iter().filter(|(known, ..)| known == name) {
                if prefixes.iter().any(|prefix| dependency.starts_with(prefix)) {
                    complaints.push(format!("{name} must not depend on {dependency}: {why}"));
                }
            }
        }
    }
    complaints
}

fn graph() -> Graph {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(crate::workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap();
        all.iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| text(&dependency["name"]))
            .collect()
    };
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (text(&package["name"]), dependencies(package))).collect()
}
