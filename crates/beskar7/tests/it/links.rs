//! Every link in the docs leads somewhere: to a file that exists, and to a heading in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::workspace;

/// All Markdown files for readers: those in the root, and everything below `docs`.
fn pages() -> Vec<PathBuf> {
    let root = workspace().canonicalize().unwrap();
    let mut found = Vec::new();
    let mut folders = vec![root.join("docs")];
    found.extend(files(&root).into_iter().filter(|path| is_page(path)));
    while let Some(folder) = folders.pop() {
        let (deeper, here): (Vec<_>, Vec<_>) = files(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(deeper);
        found.extend(here.into_iter().filter(|path| is_page(path)));
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The anchors that a forge makes of headings: lower case, hyphens for spaces, without punctuation, numbered if repeated.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let mut anchors = BTreeSet::new();
    for heading in headings {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count = seen.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// The targets of links, not of what only looks like one in code.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).collect::<Vec<_>>().join("\n");
    // A piece of code may be wrapped, but ends with its paragraph.
    let plain: String = prose.split("\n\n").flat_map(|paragraph| paragraph.split('`').step_by(2)).collect();
    plain.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

/// `folder/../file` as `file`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => _ = path.pop(),
            component => path.push(component),
        }
        path
    })
}

/// What is wrong with the links of a page.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let folder = page.parent().unwrap();
    let mut wrong = Vec::new();
    for link in links(text).into_iter().filter(|link| !link.contains("://")) {
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = normal(&folder.join(file));
        if !target.exists() {
            wrong.push(format!("{}: {link}: no such file", page.display()));
            continue;
        }
        let headings = || if file.is_empty() { anchors(text) } else { anchors(&fs::read_to_string(target).unwrap()) };
        if !anchor.is_empty() && !headings().contains(anchor) {
            wrong.push(format!("{}: {link}: no such heading", page.display()));
        }
    }
    wrong
}

#[test]
fn every_link_in_the_docs_leads_to_a_file_and_a_heading() {
    let pages = pages();
    assert!(pages.len() > 20, "where are they? {pages:?}");
    let wrong: Vec<_> = pages.iter().flat_map(|page| broken(page, &fs::read_to_string(page).unwrap())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_link_to_a_missing_file_or_heading_is_found() {
    let page = workspace().canonicalize().unwrap().join("README.md");
    assert_eq!(broken(&page, "# A & b: `c`\n[x](#a--b-c) [y](docs/status.md) `[no](link)`").len(), 0);
    assert_eq!(broken(&page, "[x](docs/no-such-page.md)").len(), 1);
    assert_eq!(broken(&page, "[x](docs/status.md#no-such-heading)").len(), 1);
    assert_eq!(broken(&page, "```\n[x](none.md)\n```\n").len(), 0);
}

#[test]
fn every_page_can_be_reached_from_the_readme() {
    let root = workspace().canonicalize().unwrap();
    let mut reached = BTreeSet::new();
    let mut next = vec![root.join("README.md")];
    while let Some(page) = next.pop() {
        if !is_page(&page) || !page.exists() || !reached.insert(page.clone()) {
            continue;
        }
        let folder = page.parent().unwrap();
        let files = links(&fs::read_to_string(&page).unwrap());
        let files = files.iter().filter(|link| !link.contains("://")).filter_map(|link| link.split('#').next());
        next.extend(files.filter(|file| !file.is_empty()).map(|file| normal(&folder.join(file))));
    }
    let lost: Vec<_> = pages().into_iter().filter(|page| !reached.contains(page)).collect();
    assert!(lost.is_empty(), "nothing leads to {lost:?}");
}
