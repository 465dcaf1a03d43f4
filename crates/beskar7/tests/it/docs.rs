//! What the docs promise to list, they list.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::workspace;

fn doc(name: &str) -> String {
    fs::read_to_string(workspace().join("docs").join(name)).unwrap()
}

/// The source files of a folder of the engine, without its tests.
fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = workspace().join("crates/engine/src").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
}

/// A word such as `PoweringOff`.
fn is_reason(word: &str) -> bool {
    word.len() > 3 && word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(char::is_alphanumeric)
}

/// The reasons that faults have.
fn fault_reasons() -> BTreeSet<String> {
    let source = fs::read_to_string(workspace().join("crates/engine/src/failure.rs")).unwrap();
    let (_, body) = source.split_once("pub fn reason(self)").unwrap();
    let (body, _) = body.split_once("\n    }\n").unwrap();
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The reasons that waits have: the first word that is handed to whatever waits, or a constant that is.
fn wait_reasons() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let waiters = ["wait(", "wait_until(", "wait_for_others(", "await_boot(", "await_order(", ".look(", "in_transit("];
    for file in sources("host") {
        let source = fs::read_to_string(&file).unwrap();
        for waiter in waiters {
            for (at, _) in source.match_indices(waiter) {
                let call = &source[at..];
                let call = &call[..call.find(';').unwrap_or(call.len())];
                found.extend(call.split('"').nth(1).filter(|word| is_reason(word)).map(str::to_owned));
            }
        }
        for line in source.lines().filter(|line| line.contains("const ") && line.contains(": &str = \"")) {
            found.extend(line.split('"').nth(1).filter(|word| is_reason(word)).map(str::to_owned));
        }
        // Pairs of reason and sentence.
        for line in source.lines().filter(|line| line.contains("=> (\"")) {
            found.extend(line.split('"').nth(1).filter(|word| is_reason(word)).map(str::to_owned));
        }
    }
    found
}

/// The words in backquotes in the first column of the table that begins with this head.
fn listed(doc: &str, head: &str) -> BTreeSet<String> {
    let (_, table) = doc.split_once(head).unwrap_or_else(|| panic!("no table {head:?}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let first = rows.map(|row| row.split('|').nth(1).unwrap());
    first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_fault_and_every_wait_of_a_host_is_explained() {
    let (faults, waits) = (fault_reasons(), wait_reasons());
    assert!(faults.len() > 25 && waits.len() > 12, "nothing was found: {faults:?} {waits:?}");
    let tables = [
        (faults, "reference/faults.md", "| `status.fault.reason` |"),
        (waits, "reference/waits.md", "| `status.waiting.reason` |"),
    ];
    for (reasons, page, head) in tables {
        let listed = listed(&doc(page), head);
        let missing: Vec<_> = reasons.difference(&listed).collect();
        let invented: Vec<_> = listed.difference(&reasons).collect();
        assert!(missing.is_empty(), "docs/{page}: explain {missing:?}");
        assert!(invented.is_empty(), "docs/{page}: nothing says {invented:?} any more");
    }
}

#[test]
fn every_metric_is_explained() {
    let exposition = workspace().join("crates/controllers/src/metrics/exposition.txt");
    let listed = listed(&doc("reference/metrics.md"), "| metric |");
    let mut known = BTreeSet::new();
    for line in fs::read_to_string(exposition)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ").map(str::to_owned))
    {
        let (name, kind) = line.split_once(' ').unwrap();
        known.insert(if kind == "counter" { format!("{name}_total") } else { name.to_owned() });
    }
    assert_eq!(listed, known, "docs/reference/metrics.md");
}
