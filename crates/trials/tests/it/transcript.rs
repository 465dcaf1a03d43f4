//! What users see, word for word. `BESKAR7_BLESS=1` takes over what changed.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use trials::story::HOST;
use trials::world::{World, claim, instant_bmc};

const IMAGE: &str = "http://images.example.com/flatcar.iso";

/// What `kubectl get`, `get -o wide` and `describe` show of one host, once it has been told by these events.
async fn transcript(world: &World, events: &[&str]) -> String {
    for reason in events {
        world.wait_for_event(reason).await;
    }
    let mut text = String::new();
    for command in ["get ph", "get ph -o wide", "describe ph"] {
        let words: Vec<_> = command.split(' ').chain([HOST, "-n", &world.namespace]).collect();
        let shown = world.cluster().kubectl(&words).await.ok();
        let shown = tame(&shown.replace(&world.namespace, "lab"));
        write!(text, "$ kubectl {command} {HOST}\n{shown}\n").unwrap();
    }
    text
}

/// The same text in every run: without ages, times, ids and versions that are made up.
fn tame(text: &str) -> String {
    let (objects, events) = text.split_at(text.find("Events:").unwrap_or(text.len()));
    let mut lines: Vec<_> = objects.lines().map(tame_line).collect();
    // Columns of events are as wide as their ages are long, and those of one second come in any order.
    let cells =
        |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("  ");
    let mut events: Vec<_> = events.lines().map(|line| tame_line(&cells(line)).trim_end().to_owned()).collect();
    if let Some(events) = events.get_mut(3..) {
        events.sort();
    }
    lines.append(&mut events);
    lines.join("\n") + "\n"
}

fn tame_line(line: &str) -> String {
    let key = line.trim_start().split(':').next().unwrap_or_default();
    if ["UID", "Resource Version"].contains(&key) {
        return format!("{}: (made up)", line.split(':').next().unwrap_or_default());
    }
    let mut tame = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let word: &str =
            rest.split(|c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c)).next().unwrap_or_default();
        let replaced = match word {
            "" => None,
            _ if is_time(word) => Some("2026-01-31T12:00:00Z".to_owned()),
            _ if is_digest(word) => Some("0123456789abcdef0123".to_owned()),
            _ if is_checksum(word) => Some("0123456789abcdef".to_owned()),
            _ if is_age(word) => Some(format!("{:<width$}", "9s", width = word.len())),
            _ => Some(word.to_owned()),
        };
        tame += &replaced.unwrap_or_else(|| letter.to_string());
        rest = &rest[word.len().max(letter.len_utf8())..];
    }
    tame.trim_end().to_owned()
}

fn is_time(word: &str) -> bool {
    word.parse::<jiff::Timestamp>().is_ok()
}

fn is_checksum(word: &str) -> bool {
    word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_digest(word: &str) -> bool {
    word.len() == 20 && word.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_age(word: &str) -> bool {
    word.strip_suffix('s').is_some_and(|number| number.len() <= 2 && number.parse::<u8>().is_ok())
}

#[track_caller]
fn assert_golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("BESKAR7_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(text == known, "{name} changed; run with BESKAR7_BLESS=1 if it should\n{text}");
}

#[tokio::test]
async fn a_healthy_host() {
    let world = World::new("healthy").await;
    world.available_host(HOST).await;
    assert_golden("healthy.txt", &transcript(&world, &["Available"]).await);
}

#[tokio::test]
async fn a_host_with_a_wrong_password() {
    let world = World::new("password").await;
    world.add_bmc(HOST, instant_bmc(HOST));
    world.create_secret("bmc", "admin", "guess").await;
    world.create_host(HOST, json!({})).await;
    world.wait_for_fault(HOST, "AuthenticationFailed").await;
    assert_golden("wrong-password.txt", &transcript(&world, &["AuthenticationFailed"]).await);
}

#[tokio::test]
async fn a_provisioned_host() {
    let world = World::new("provisioned").await;
    world.available_host(HOST).await;
    world.patch_spec(HOST, claim("worker-0", IMAGE)).await;
    world.wait_for_state(HOST, "Provisioned").await;
    let events = ["Available", "Claimed", "Provisioning", "Provisioned"];
    assert_golden("provisioned.txt", &transcript(&world, &events).await);
}
