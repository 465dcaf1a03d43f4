//! Pages that list names list all of them, and none that does not exist. Names are read from the sources that define them.

use std::collections::BTreeSet;
use std::fs;

use api::beskar7::{conditions, phases, states};

use crate::workspace;

type Names = BTreeSet<String>;

fn doc(page: &str) -> String {
    fs::read_to_string(workspace().join("docs").join(page)).unwrap()
}

fn source(path: &str) -> String {
    fs::read_to_string(workspace().join("crates").join(path)).unwrap()
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    names.into_iter().map(str::to_owned).collect()
}

/// The part of a source from this line on, to the end of its block.
fn block<'a>(source: &'a str, begin: &str) -> &'a str {
    let (_, after) = source.split_once(begin).unwrap_or_else(|| panic!("no {begin:?}"));
    let line = source[..source.len() - after.len()].lines().next_back().unwrap();
    let indent = &line[..line.len() - line.trim_start().len()];
    after.split_once(&format!("\n{indent}}}")).unwrap_or_else(|| panic!("{begin:?} has no end")).0
}

/// What stands between double quotes.
fn quoted(text: &str) -> Names {
    names(text.split('"').skip(1).step_by(2))
}

/// What stands between backquotes.
fn backquoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The cells of one column of all tables that begin with this head.
fn column<'a>(doc: &'a str, head: &str, column: usize) -> Vec<&'a str> {
    let tables = doc.split(head).skip(1);
    let rows = tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    let cells: Vec<_> = rows.map(|row| row.split('|').nth(column).unwrap()).collect();
    assert!(!cells.is_empty(), "no table {head:?}");
    cells
}

/// The names in the first column of all tables that begin with this head.
fn listed(doc: &str, head: &str) -> Names {
    names(column(doc, head, 1).into_iter().flat_map(backquoted))
}

fn assert_lists(page: &str, listed: &Names, known: &Names) {
    let missing: Vec<_> = known.difference(listed).collect();
    let invented: Vec<_> = listed.difference(known).collect();
    assert!(missing.is_empty(), "docs/{page}: explain {missing:?}");
    assert!(invented.is_empty(), "docs/{page}: there is no {invented:?}");
}

fn faults() -> Names {
    quoted(block(&source("engine/src/failure.rs"), "pub fn reason(self)"))
}

/// What can be wrong with an image, and with serving it.
fn image_problems() -> Names {
    let in_boot = ["boot/src/fetch/error.rs", "boot/src/iso/error.rs", "boot/src/serve/problem.rs"];
    let mut all: Names = in_boot.iter().flat_map(|path| quoted(block(&source(path), "pub fn reason(&self)"))).collect();
    let check = source("controllers/src/depot/image_check.rs");
    let said = check.split("reason: \"").skip(1).map(|after| after.split('"').next().unwrap());
    all.extend(names(said));
    all
}

#[test]
fn every_fault_and_every_wait_of_a_host_is_explained() {
    let waits = source("engine/src/host/facts.rs");
    let waits = quoted(waits.split_once("pub const NAMES").unwrap().1.split_once("];").unwrap().0);
    let faults = faults();
    assert!(faults.len() > 25 && waits.len() > 12, "nothing was found: {faults:?} {waits:?}");
    let page = "reference/faults.md";
    assert_lists(page, &listed(&doc(page), "| `status.fault.reason` |"), &faults);
    let page = "reference/waits.md";
    assert_lists(page, &listed(&doc(page), "| `status.waiting.reason` |"), &waits);
}

#[test]
fn every_event_and_every_cause_is_explained() {
    // Entries of the timeline that are not worth an event. The timeline shows their messages, not their names.
    let timeline_only = names(["Acting", "LeftPost", "BootOverrideLetGo"]);
    let facts = source("engine/src/host/facts.rs");
    let happenings = quoted(block(block(&facts, "\nimpl Happening {"), "pub fn name(&self)"));
    assert!(happenings.is_superset(&timeline_only), "{happenings:?}");
    let mut events: Names = happenings.difference(&timeline_only).cloned().collect();
    let step = source("engine/src/host/step.rs");
    let power = block(&step, "pub fn is_about_power(&self)").split("Self::").skip(1);
    events.extend(names(power.map(|name| name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap())));
    for file in ["definition.rs", "rival.rs", "marks.rs"] {
        let source = source(&format!("controllers/src/{file}"));
        events.extend(quoted(source.split_once("const REASON").unwrap().1.lines().next().unwrap()));
    }
    assert!(events.len() > 15 && events.contains("PowerOff"), "{events:?}");
    let page = "reference/events.md";
    let mut explained = listed(&doc(page), "| reason |");
    // A host that enters a state sends an event of that name.
    explained.retain(|name| !states::ALL.contains(&name.as_str()));
    assert_lists(page, &explained, &events);

    let causes = quoted(block(&source("engine/src/host/cause.rs"), "pub fn name(&self)"));
    assert!(causes.len() > 5, "{causes:?}");
    assert_lists(page, &listed(&doc(page), "| cause |"), &causes);
}

#[test]
fn every_condition_and_every_reason_is_explained() {
    let page = "reference/conditions.md";
    let text = doc(page);
    assert_lists(page, &listed(&text, "| condition |"), &names(conditions::ALL));

    let reasons = quoted(block(&source("api/src/beskar7/conditions.rs"), "pub mod reason"));
    let mut explained: Names = listed(&text, "| reason |");
    let words = |cell: &str| names(backquoted(cell).filter(|word| word.chars().all(char::is_alphanumeric)));
    explained.extend(column(&text, "| condition |", 2).into_iter().flat_map(words));
    explained.extend(column(&text, "| condition |", 3).into_iter().flat_map(words));
    let others: Names = faults().into_iter().chain(image_problems()).chain(names(conditions::ALL)).collect();
    explained.retain(|word| reasons.contains(word) || !others.contains(word));
    assert_lists(page, &explained, &reasons);
}

#[test]
fn every_problem_with_an_image_is_explained() {
    let page = "use/boot-service.md";
    let served = quoted(block(&source("boot/src/serve/problem.rs"), "pub fn reason(&self)"));
    let known = image_problems().difference(&served).cloned().collect();
    assert_lists(page, &listed(&doc(page), "| reason | what to do |"), &known);
    let text = doc("reference/conditions.md");
    let row = text.lines().find(|line| line.starts_with("| `BootServed`")).unwrap();
    let missing: Vec<_> = served.iter().filter(|reason| !row.contains(&format!("`{reason}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/conditions.md: explain {missing:?} at BootServed");
}

#[test]
fn every_state_of_a_host_and_every_phase_of_a_machine_is_explained() {
    let page = "reference/physicalhost.md";
    assert_lists(page, &listed(&doc(page), "| `status.state` |"), &names(states::ALL));
    let page = "use/machines.md";
    let text = doc(page);
    let row = text.lines().find(|line| line.starts_with("| `phase` |")).unwrap();
    assert_lists(page, &names(backquoted(row).skip(1)), &names(phases::ALL));
}

#[test]
fn every_annotation_is_explained() {
    let source = source("api/src/beskar7/names.rs");
    let known = quoted(&source).into_iter().filter(|name| name.starts_with("beskar7.io/")).collect();
    let page = "reference/annotations.md";
    let mut listed = listed(&doc(page), "| annotation |");
    listed.retain(|name| name.starts_with("beskar7.io/"));
    assert_lists(page, &listed, &known);
}

#[test]
fn every_metric_is_explained() {
    let exposition = source("controllers/src/metrics/exposition.txt");
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let known = types.map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() });
    let page = "reference/metrics.md";
    assert_lists(page, &listed(&doc(page), "| metric |"), &known.collect());
}

/// Functions of all sources.
fn functions() -> Names {
    let mut folders = vec![workspace().join("crates")];
    let mut found = Names::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).unwrap();
                let named = text.split("fn ").skip(1).filter_map(|after| after.split('(').next());
                found.extend(named.map(str::to_owned));
            }
        }
    }
    found
}

#[test]
fn every_test_that_is_named_for_metal_operators_kinds_exists() {
    let text = doc("reference/ironcore.md");
    let is_test = |name: &&str| name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let tests: Names = text.lines().flat_map(|line| backquoted(line).filter(is_test).map(str::to_owned)).collect();
    assert!(tests.len() > 30, "{tests:?}");
    let functions = functions();
    let missing: Vec<_> = tests.difference(&functions).collect();
    assert!(missing.is_empty(), "docs/reference/ironcore.md: there is no test {missing:#?}");
}

#[test]
fn a_name_that_is_missing_or_invented_is_found() {
    let page =
        "# Page\n\n| fault | what |\n|---|---|\n| `A`, `B` | see `C` |\n\n| fault | what |\n|---|---|\n| `D` | – |\n";
    assert_eq!(listed(page, "| fault |"), names(["A", "B", "D"]));
    let source = "impl X {\n    fn name() {\n        match x {\n            A => \"A\",\n        }\n    }\n\n    fn other() { \"B\" }\n}\n";
    assert_eq!(quoted(block(source, "fn name()")), names(["A"]));
    let compare =
        |listed, known| std::panic::catch_unwind(move || assert_lists("page.md", &names(listed), &names(known)));
    assert!(compare(["A"], ["A"]).is_ok());
    assert!(compare(["A"], ["B"]).is_err());
}
