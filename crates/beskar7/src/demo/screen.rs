//! The fleet, live: a table that is drawn over itself on a terminal, and one line for each change elsewhere.

use std::collections::HashMap;

use tokio::time::Instant;

use super::Part;
use crate::dialects::Host;
use crate::output::{self, Paper};
use crate::table::{self, Cell, Column, Tone};

/// More rows would not fit; the rest is counted.
const ROWS: usize = 16;
const BAR: usize = 18;

const COLUMNS: [Column; 6] = [
    Column { title: "NAME", spare: 0 },
    Column { title: "STATE", spare: 0 },
    Column { title: "", spare: 0 },
    Column { title: "POWER", spare: 1 },
    Column { title: "MODEL", spare: 2 },
    Column { title: "DETAIL", spare: 0 },
];

pub(super) struct Screen {
    paper: Paper,
    begun: Instant,
    /// Lines that the last frame took, to be drawn over.
    drawn: usize,
    /// The last state of each host, for paper that cannot be drawn over.
    told: HashMap<String, String>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self { paper: Paper::stdout(), begun: Instant::now(), drawn: 0, told: HashMap::new() }
    }

    fn is_live(&self) -> bool {
        self.paper.width.is_some()
    }

    /// A new part: what was drawn before stays.
    pub(super) fn begin(&mut self, part: &Part) -> anyhow::Result<()> {
        self.drawn = 0;
        let (bold, plain) = if self.paper.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        output::line(&format!("\n{bold}{}{plain}  {}\n", part.title, part.says))
    }

    pub(super) fn show(
        &mut self,
        part: &Part,
        hosts: &[(String, Host)],
        arrived: usize,
        done: bool,
    ) -> anyhow::Result<()> {
        if self.is_live() { self.draw(part, hosts, arrived, done) } else { self.tell(hosts) }
    }

    fn draw(&mut self, part: &Part, hosts: &[(String, Host)], arrived: usize, done: bool) -> anyhow::Result<()> {
        let rows: Vec<_> = hosts.iter().take(ROWS).map(|(name, host)| row(part, name, host)).collect();
        let table = table::render(&COLUMNS, &rows, self.paper);
        let hidden = hosts.len().saturating_sub(ROWS);
        let more = if hidden > 0 { format!("… and {hidden} more\n") } else { String::new() };
        let mark = if done { "done" } else { "…" };
        let seconds = self.begun.elapsed().as_secs_f64();
        let arrived = arrived.min(part.hosts);
        let (whole, of) = (bar(arrived, part.hosts), part.hosts);
        let last = part.road.last().copied().unwrap_or_default();
        let frame = format!("{table}{more}{whole} {arrived}/{of} {last}, {seconds:.1} s {mark}\n");
        let over = if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
        self.drawn = frame.lines().count();
        output::print(&format!("{over}{frame}"))
    }

    fn tell(&mut self, hosts: &[(String, Host)]) -> anyhow::Result<()> {
        for (name, host) in hosts {
            let state = host.state.clone();
            let before = self.told.insert(name.clone(), state.clone());
            if !state.is_empty() && before.as_ref() != Some(&state) {
                let seconds = self.begun.elapsed().as_secs_f64();
                output::line(&format!("{seconds:>7.1} s  {name}  {state}"))?;
            }
        }
        Ok(())
    }
}

fn row(part: &Part, name: &str, host: &Host) -> Vec<Cell> {
    let state = host.state.as_str();
    let at = part.road.iter().position(|known| *known == state).map_or(0, |at| at + 1);
    let under_way = (at > 0 && at < part.road.len()).then_some(Tone::Odd);
    let waiting = host.waiting.as_ref().map(|waiting| waiting.message.as_str());
    let fault = host.fault.as_ref().map(|fault| fault.message.as_str());
    let model = host.hardware.as_ref().and_then(|hardware| hardware.model.as_deref());
    vec![
        Cell::from(name),
        Cell::toned(if state.is_empty() { "new" } else { state }, under_way),
        Cell::from(if at > 0 { bar(at, part.road.len()) } else { " ".repeat(BAR + 2) }),
        Cell::from(&host.power),
        Cell::from(model.unwrap_or_default()),
        Cell::from(fault.or(waiting).unwrap_or_default()),
    ]
}

fn bar(done: usize, of: usize) -> String {
    let filled = BAR * done.min(of) / of.max(1);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_full_at_the_end_and_never_fuller() {
        assert_eq!(bar(0, 3), "[------------------]");
        assert_eq!(bar(1, 3), "[######------------]");
        assert_eq!(bar(3, 3), "[##################]");
        assert_eq!(bar(5, 3), bar(3, 3));
        assert_eq!(bar(0, 0), bar(0, 3));
    }
}
