//! Text tables in the way of kubectl: no lines, and nothing is wider than the terminal.

use crate::human;
use crate::output::Paper;

/// Between two columns.
const GAP: usize = 2;
/// The last column is worth showing with this much room; before, others go.
const READABLE: usize = 40;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its head.
    pub(crate) title: &'static str,
    /// Columns with a higher number go first when the terminal is narrow; those with zero never do.
    pub(crate) spare: u8,
}

/// Something to be seen at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Needs somebody.
    Bad,
    /// Worth a look.
    Odd,
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// Text in a tone.
    pub(crate) fn toned(text: impl Into<String>, tone: Option<Tone>) -> Self {
        Self { tone, ..Self::from(text) }
    }

    /// Whether nothing stands in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn write(&self, room: Option<usize>, colour: bool) -> String {
        let text = match room {
            Some(room) if self.width() > room => self.text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
            _ => self.text.clone(),
        };
        match self.tone {
            Some(Tone::Bad) if colour => format!("\x1b[31m{text}\x1b[0m"),
            Some(Tone::Odd) if colour => format!("\x1b[33m{text}\x1b[0m"),
            _ => text,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: human::one_line(&text.into()), tone: None }
    }
}

/// Lays a table out. Columns in which nothing stands are left out; the last one is cut where the paper ends.
pub(crate) fn render(columns: &[Column], rows: &[Vec<Cell>], paper: Paper) -> String {
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(Cell::width).max().unwrap_or(0);
    let mut shown: Vec<(usize, usize)> = (0..columns.len())
        .filter_map(|at| Some((at, width(at))).filter(|(_, width)| *width > 0))
        .map(|(at, width)| (at, width.max(columns[at].title.len())))
        .collect();
    if let Some(limit) = paper.width {
        make_room(columns, &mut shown, limit);
    }
    let heads: Vec<Cell> = columns.iter().map(|column| Cell::from(column.title)).collect();
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        text.push_str(&write_row(row, &shown, paper));
        text.push('\n');
    }
    text
}

/// Lays rows out without heads.
pub(crate) fn rows(rows: &[Vec<Cell>], paper: Paper) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(Cell::width).max().unwrap_or(0);
    let shown: Vec<(usize, usize)> = (0..columns).map(|at| (at, width(at))).collect();
    rows.iter().map(|row| write_row(row, &shown, paper) + "\n").collect()
}

/// Leaves columns out until the last one has room.
fn make_room(columns: &[Column], shown: &mut Vec<(usize, usize)>, limit: usize) {
    loop {
        let Some(((_, last), others)) = shown.split_last() else { return };
        let taken: usize = others.iter().map(|(_, width)| width + GAP).sum();
        if taken + READABLE.min(*last) <= limit {
            return;
        }
        let Some(most) = shown.iter().map(|(at, _)| columns[*at].spare).max().filter(|spare| *spare > 0) else {
            return;
        };
        shown.retain(|(at, _)| columns[*at].spare < most);
    }
}

fn write_row(row: &[Cell], shown: &[(usize, usize)], paper: Paper) -> String {
    let mut line = String::new();
    let mut taken = 0;
    for (position, (at, width)) in shown.iter().enumerate() {
        let Some(cell) = row.get(*at) else { continue };
        let last = position + 1 == shown.len();
        let room = paper.width.filter(|_| last).map(|limit| limit.saturating_sub(taken).max(1));
        line.push_str(&cell.write(room, paper.colour));
        if !last {
            line.extend(std::iter::repeat_n(' ', width - cell.width() + GAP));
            taken += width + GAP;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column { title: "NAME", spare: 0 },
        Column { title: "NOTE", spare: 0 },
        Column { title: "MODEL", spare: 1 },
        Column { title: "DETAIL", spare: 0 },
    ];

    fn rows() -> Vec<Vec<Cell>> {
        let row = |name: &str, model: &str, detail: &str| vec![name.into(), "".into(), model.into(), detail.into()];
        vec![
            row("a", "PowerEdge", ""),
            row("server-01", "X", "the connection to port 443 was refused, and it stays so"),
        ]
    }

    #[test]
    fn elsewhere_nothing_is_cut_and_empty_columns_are_left_out() {
        let table = render(&COLUMNS, &rows(), Paper::default());
        assert_eq!(
            table,
            "NAME       MODEL      DETAIL\n\
             a          PowerEdge\n\
             server-01  X          the connection to port 443 was refused, and it stays so\n"
        );
    }

    #[test]
    fn on_a_terminal_the_last_column_is_cut() {
        let table = render(&COLUMNS, &rows(), Paper { width: Some(64), colour: false });
        assert_eq!(table.lines().last(), Some("server-01  X          the connection to port 443 was refused, a…"));
        assert!(table.lines().all(|line| line.chars().count() <= 64), "{table}");
    }

    #[test]
    fn on_a_narrow_terminal_columns_that_can_be_spared_go_first() {
        let table = render(&COLUMNS, &rows(), Paper { width: Some(53), colour: false });
        assert_eq!(table.lines().last(), Some("server-01  the connection to port 443 was refused, a…"));
        // Narrower than anything sensible: no panic, and still one line per row.
        assert_eq!(render(&COLUMNS, &rows(), Paper { width: Some(3), colour: false }).lines().count(), 3);
    }

    #[test]
    fn what_a_bmc_said_cannot_paint_the_terminal() {
        let row = vec!["a\x1b[2J\nb".into(), "".into(), "X".into(), "y".into()];
        assert!(render(&COLUMNS, &[row], Paper::default()).contains("\na [2J b  X      y\n"));
    }

    #[test]
    fn colours_do_not_shift_columns() {
        let row = vec![Cell::toned("bad", Some(Tone::Bad)), "".into(), "X".into(), "y".into()];
        let table = render(&COLUMNS, &[row], Paper { width: None, colour: true });
        assert_eq!(table, "NAME  MODEL  DETAIL\n\x1b[31mbad\x1b[0m   X      y\n");
    }
}
