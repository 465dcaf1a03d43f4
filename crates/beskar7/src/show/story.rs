//! A host as a text: what it is, what is going on, what it is made of, and what happened.

use api::beskar7::HardwareDetails;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::dialects::Host;
use crate::human;
use crate::output::Paper;
use crate::table::{self, Cell, Column, Tone};

/// How many lines of the past are shown.
const PAST: usize = 12;

/// The story; the kind is told where there are several.
pub(super) fn write(
    kind: Option<String>,
    meta: &ObjectMeta,
    host: &Host,
    events: &[Event],
    now: Timestamp,
    paper: Paper,
) -> String {
    let mut parts = vec![head(kind, meta, host, now, paper)];
    parts.extend(host.hardware.as_ref().map(|hardware| hardware_part(hardware, paper)));
    parts.push(conditions(host, now, paper));
    parts.push(past(host, now, paper));
    parts.push(reported(events, now, paper));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// When an event was last seen.
pub(super) fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let single = event.event_time.as_ref().map(|time| time.0);
    let legacy = event.last_timestamp.as_ref().map(|time| time.0);
    series.or(single).or(legacy).or(event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

fn head(kind: Option<String>, meta: &ObjectMeta, host: &Host, now: Timestamp, paper: Paper) -> String {
    let ago = |time: Timestamp| format!("for {}", human::span(time, now));
    let mut facts: Vec<(&str, Cell)> = Vec::new();
    let mut fact = |name, text: String| facts.push((name, Cell::from(text)));
    fact("Kind", kind.unwrap_or_default());
    fact("Namespace", meta.namespace.clone().unwrap_or_default());
    let state = Some(host.state.clone()).filter(|state| !state.is_empty());
    let state = state.unwrap_or_else(|| "nobody has looked at it yet: is the operator running?".into());
    fact("State", joined(", ", [Some(state), host.since.map(ago)]));
    fact("Power", joined(", ", [Some(host.power.clone()), host.power_request.clone()]));
    fact("Health", host.health.clone());
    fact("Claimed by", host.claimed_by.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string));
    fact("Order", host.order.clone().unwrap_or_default());
    let maintenance = host.maintenance.as_ref().map(|why| if why.is_empty() { "yes" } else { why });
    fact("Maintenance", maintenance.unwrap_or_default().to_owned());
    let bmc = host.hardware.as_ref().and_then(|hardware| hardware.bmc.as_ref());
    let firmware = bmc.map(|bmc| joined(" ", [bmc.vendor.clone(), bmc.model.clone(), bmc.firmware_version.clone()]));
    fact("BMC", joined(", ", [Some(host.bmc.clone()), firmware]));
    fact("Addresses", host.addresses.join(", "));
    if let Some(waiting) = &host.waiting {
        let left = host.time_left(now).map(|left| format!(" ({left})")).unwrap_or_default();
        fact("Waiting", format!("{}{left}: {}", waiting.reason, waiting.message));
    }
    if let Some(fault) = &host.fault {
        let next = fault.next_try.as_ref().map(|at| format!(" (next try in {})", human::span(now, at.0)));
        let text = format!("{}{}: {}", fault.reason, next.unwrap_or_default(), fault.message);
        facts.push(("Fault", Cell::toned(text, Some(Tone::Bad))));
    }
    let rows: Vec<Vec<Cell>> = facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![Cell::from(format!("{name}:")), value])
        .collect();
    format!("{}\n{}", human::one_line(meta.name.as_deref().unwrap_or_default()), untitled(&rows, paper))
}

fn hardware_part(hardware: &HardwareDetails, paper: Paper) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut facts: Vec<(&str, String)> = Vec::new();
    let model = joined(" ", [hardware.manufacturer.clone(), hardware.model.clone()]);
    let serial = hardware.serial_number.as_ref().map(|serial| format!("serial {serial}"));
    let bios = hardware.bios_version.as_ref().map(|version| format!("BIOS {version}"));
    facts.push(("Model:", joined(", ", [Some(model), serial, bios])));
    facts.push(("System UUID:", text(&hardware.uuid)));
    let kinds = grouped(hardware.processors.iter().map(|cpu| text(&cpu.model)));
    let cores = hardware.cores.map(|cores| human::counted(cores as usize, "core"));
    facts.push(("Processors:", joined(", ", [Some(kinds), cores])));
    facts.push(("Accelerators:", grouped(hardware.accelerators.iter().map(|one| text(&one.model)))));
    let modules = Some(hardware.memory_modules.len()).filter(|count| *count > 0);
    let modules = modules.map(|count| format!("in {}", human::counted(count, "module")));
    facts.push(("Memory:", joined(" ", [hardware.memory_mib.map(|mib| format!("{} GiB", mib / 1024)), modules])));
    let rows: Vec<Vec<Cell>> = facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![Cell::from(name), Cell::from(value)])
        .collect();
    let drives = hardware.drives.iter().map(|drive| {
        let size = drive.capacity_bytes.map(|bytes| format!("{} GB", human::number(gigabytes(bytes))));
        let kind = joined(" ", [drive.protocol.clone(), drive.media.clone()]);
        cells([text(&drive.id), size.unwrap_or_default(), kind, text(&drive.model), text(&drive.serial_number)])
    });
    let nics = hardware.nics.iter().map(|nic| {
        let link = nic.link_up.map(|up| if up { "up" } else { "down" }.to_owned());
        let speed = nic.speed_mbps.map(|speed| format!("{speed} Mb/s"));
        let addresses = nic.ip_addresses.join(", ");
        cells([text(&nic.id), text(&nic.mac_address), link.unwrap_or_default(), speed.unwrap_or_default(), addresses])
    });
    let mut part = format!("Hardware\n{}", untitled(&rows, paper));
    part.push_str(&titled("\nDrives", ["ID", "SIZE", "KIND", "MODEL", "SERIAL"], &drives.collect::<Vec<_>>(), paper));
    part.push_str(&titled("\nNetwork", ["ID", "MAC", "LINK", "SPEED", "ADDRESSES"], &nics.collect::<Vec<_>>(), paper));
    part
}

fn gigabytes(bytes: u64) -> usize {
    usize::try_from(bytes / 1_000_000_000).unwrap_or(usize::MAX)
}

fn conditions(host: &Host, now: Timestamp, paper: Paper) -> String {
    let row = |condition: &api::capi::Condition| {
        // Info is worth knowing, not worrying about.
        let bad = !condition.is_true() && condition.severity == "Error";
        vec![
            Cell::from(&condition.type_),
            Cell::toned(&condition.status, bad.then_some(Tone::Bad)),
            Cell::from(&condition.reason),
            Cell::from(human::span(condition.last_transition_time.0, now)),
            Cell::from(&condition.message),
        ]
    };
    let rows: Vec<_> = host.conditions.iter().map(row).collect();
    titled("Conditions", ["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], &rows, paper)
}

fn past(host: &Host, now: Timestamp, paper: Paper) -> String {
    let skipped = host.timeline.len().saturating_sub(PAST);
    let rows = host.timeline.iter().skip(skipped).map(|entry| {
        cells([format!("{} ago", human::span(entry.at.0, now)), entry.state.clone(), entry.message.clone()])
    });
    titled("Timeline", ["WHEN", "STATE", "WHAT"], &rows.collect::<Vec<_>>(), paper)
}

fn reported(events: &[Event], now: Timestamp, paper: Paper) -> String {
    let rows = events.iter().skip(events.len().saturating_sub(PAST)).map(|event| {
        let when = last_seen(event).map(|at| format!("{} ago", human::span(at, now))).unwrap_or_default();
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let tone = (event.type_.as_deref() == Some("Warning")).then_some(Tone::Odd);
        vec![
            Cell::from(when),
            Cell::toned(text(&event.type_), tone),
            Cell::from(text(&event.reason)),
            Cell::from(text(&event.message)),
        ]
    });
    titled("Events", ["WHEN", "TYPE", "REASON", "MESSAGE"], &rows.collect::<Vec<_>>(), paper)
}

/// What several things are, and how many of each: `2 × Xeon`.
fn grouped(names: impl Iterator<Item = String>) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for name in names.filter(|name| !name.is_empty()) {
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => groups.push((name, 1)),
        }
    }
    groups.iter().map(|(name, count)| format!("{count} × {name}")).collect::<Vec<_>>().join(", ")
}

fn joined<const N: usize>(separator: &str, parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(separator)
}

fn cells<const N: usize>(texts: [String; N]) -> Vec<Cell> {
    texts.into_iter().map(Cell::from).collect()
}

/// A table without heads: facts.
fn untitled(rows: &[Vec<Cell>], paper: Paper) -> String {
    table::rows(rows, Paper { width: None, ..paper })
}

/// A table with a title above it; nothing without rows.
fn titled<const N: usize>(title: &str, heads: [&'static str; N], rows: &[Vec<Cell>], paper: Paper) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // Whole sentences, also on a narrow terminal: this is the place to read them.
    let paper = Paper { width: None, ..paper };
    format!("{title}\n{}", table::render(&heads.map(|title| Column { title, spare: 0 }), rows, paper))
}
