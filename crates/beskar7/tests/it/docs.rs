//! What the docs promise to list, they list.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::workspace;

fn doc(name: &str) -> String {
    fs::read_to_string(workspace().join("docs").join(name)).unwrap()
}

/// The reasons that faults have.
fn fault_reasons() -> BTreeSet<String> {
    let source = fs::read_to_string(workspace().join("crates/engine/src/failure.rs")).unwrap();
    let (_, body) = source.split_once("pub fn reason(self)").unwrap();
    let (body, _) = body.split_once("\n    }\n").unwrap();
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names that waits have.
fn wait_reasons() -> BTreeSet<String> {
    let source = fs::read_to_string(workspace().join("crates/engine/src/host/facts.rs")).unwrap();
    let (_, body) = source.split_once("pub const NAMES").unwrap();
    let (body, _) = body.split_once("];\n").unwrap();
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
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
    let doc = doc("physicalhost.md");
    let (faults, waits) = (fault_reasons(), wait_reasons());
    assert!(faults.len() > 25 && waits.len() > 12, "nothing was found: {faults:?} {waits:?}");
    for (reasons, head) in [(faults, "| `status.fault.reason` |"), (waits, "| `status.waiting.reason` |")] {
        let listed = listed(&doc, head);
        let missing: Vec<_> = reasons.difference(&listed).collect();
        let invented: Vec<_> = listed.difference(&reasons).collect();
        assert!(missing.is_empty(), "docs/physicalhost.md, table {head}: explain {missing:?}");
        assert!(invented.is_empty(), "docs/physicalhost.md, table {head}: nothing says {invented:?} any more");
    }
}

#[test]
fn every_metric_is_explained() {
    let exposition = workspace().join("crates/controllers/src/metrics/exposition.txt");
    let listed = listed(&doc("metrics.md"), "| metric |");
    let mut known = BTreeSet::new();
    for line in fs::read_to_string(exposition)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ").map(str::to_owned))
    {
        let (name, kind) = line.split_once(' ').unwrap();
        known.insert(if kind == "counter" { format!("{name}_total") } else { name.to_owned() });
    }
    assert_eq!(listed, known, "docs/metrics.md");
}

#[test]
fn every_file_that_the_docs_link_to_exists() {
    let folder = workspace().join("docs");
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let local = !link.is_empty() && !link.contains("://");
            assert!(!local || Path::new(&folder).join(link).exists(), "{}: {link}", path.display());
        }
    }
}
