//! What the docs promise to list, they list.

use std::collections::BTreeSet;
use std::fs;

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
