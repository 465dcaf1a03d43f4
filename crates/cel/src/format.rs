//! `'%s of %d'.format([a, b])`.

use super::convert::{show, show_double};
use super::strings::LONGEST;
use super::types::Type;
use super::value::{Evaluated, Fault, Val, type_name};

/// A piece of a template.
enum Piece {
    Text(char),
    Clause { letter: char, precision: Option<usize> },
}

fn pieces(template: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut letters = template.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            pieces.push(Piece::Text(letter));
            continue;
        }
        if letters.next_if_eq(&'%').is_some() {
            pieces.push(Piece::Text('%'));
            continue;
        }
        let precision = precision(&mut letters)?;
        let letter = letters.next().ok_or("unexpected end of string")?;
        if !matches!(letter, 's' | 'd' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X') {
            return Err(format!("could not parse formatting clause: unrecognized formatting clause \"{letter}\""));
        }
        pieces.push(Piece::Clause { letter, precision });
    }
    Ok(pieces)
}

/// What is wrong with a template and arguments of these types; with an argument if it is about that one.
pub(super) fn judge(template: &str, args: &[Type]) -> Result<(), (Option<usize>, String)> {
    let pieces = pieces(template).map_err(|why| (None, why))?;
    let clauses: Vec<char> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Clause { letter, .. } => Some(*letter),
            Piece::Text(_) => None,
        })
        .collect();
    for (index, clause) in clauses.iter().enumerate() {
        let of = args.get(index).ok_or_else(|| (None, format!("index {index} out of range")))?;
        let fits = match clause {
            's' => !matches!(of, Type::Object(_) | Type::Opaque(_) | Type::Optional(_)),
            'd' | 'o' => matches!(of, Type::Int | Type::Uint),
            'f' | 'e' => matches!(of, Type::Double | Type::Text),
            'b' => matches!(of, Type::Int | Type::Uint | Type::Bool),
            _ => matches!(of, Type::Int | Type::Uint | Type::Text | Type::Bytes),
        };
        if !fits && !matches!(of, Type::Dyn | Type::Var(_)) {
            return Err((Some(index), format!("error during formatting: {}, was given {of}", wanted(*clause))));
        }
    }
    if args.len() > clauses.len() {
        let (expected, got) = (clauses.len(), args.len());
        return Err((None, format!("too many arguments supplied to string.format (expected {expected}, got {got})")));
    }
    Ok(())
}

fn wanted(clause: char) -> &'static str {
    match clause {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    }
}

pub(super) fn format(template: &str, args: &[Val<'_>]) -> Evaluated<String> {
    let mut out = String::new();
    let mut used = 0;
    for piece in pieces(template).map_err(Fault::new)? {
        match piece {
            Piece::Text(letter) => out.push(letter),
            Piece::Clause { letter, precision } => {
                let arg = args.get(used).ok_or_else(|| Fault::new(format!("index {used} out of range")))?;
                used += 1;
                out.push_str(&clause(letter, precision, arg)?);
            }
        }
        if out.len() > LONGEST {
            return Err(Fault::OverBudget);
        }
    }
    Ok(out)
}

fn clause(letter: char, precision: Option<usize>, arg: &Val<'_>) -> Evaluated<String> {
    let wrong = || {
        let given = type_name(&arg.type_of());
        Fault::new(format!("error during formatting: {}, was given {given}", wanted(letter)))
    };
    Ok(match (letter, arg) {
        ('s', _) => string(arg)?,
        ('d', Val::Int(_) | Val::Uint(_)) => show(arg),
        ('d', Val::Double(number)) if !number.is_finite() => infinite(*number),
        ('f' | 'e', _) => match double(arg) {
            None => return Err(wrong()),
            Some(number) if !number.is_finite() => infinite(number),
            Some(number) if letter == 'f' => format!("{number:.*}", precision.unwrap_or(6)),
            Some(number) => scientific(number, precision.unwrap_or(6)),
        },
        ('b', Val::Bool(flag)) => u8::from(*flag).to_string(),
        ('x' | 'X', Val::Text(text)) => hex(text.as_bytes(), letter),
        ('x' | 'X', Val::Bytes(bytes)) => hex(bytes, letter),
        (_, Val::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", in_base(number.unsigned_abs(), letter))
        }
        (_, Val::Uint(number)) => in_base(*number, letter),
        _ => return Err(wrong()),
    })
}

fn in_base(number: u64, letter: char) -> String {
    match letter {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'X' => format!("{number:X}"),
        _ => format!("{number:x}"),
    }
}

fn precision(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    if letters.peek() != Some(&'.') {
        return Ok(None);
    }
    letters.next();
    let mut digits = String::new();
    while let Some(digit) = letters.peek().filter(|letter| letter.is_ascii_digit()) {
        digits.push(*digit);
        letters.next();
    }
    // A double has no more digits than this.
    match digits.parse::<usize>() {
        Ok(precision) if precision <= 1100 => Ok(Some(precision)),
        _ => Err("could not parse formatting clause: invalid precision".to_owned()),
    }
}

fn double(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(number) => Some(*number),
        #[expect(clippy::cast_precision_loss, reason = "it is shown as a double")]
        Val::Int(number) => Some(*number as f64),
        #[expect(clippy::cast_precision_loss, reason = "it is shown as a double")]
        Val::Uint(number) => Some(*number as f64),
        _ => None,
    }
}

fn infinite(number: f64) -> String {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
    .to_owned()
}

fn scientific(number: f64, precision: usize) -> String {
    let shown = format!("{number:.precision$e}");
    let Some((mantissa, exponent)) = shown.split_once('e') else { return shown };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn hex(bytes: &[u8], letter: char) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    let lower: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    if letter == 'X' { lower.to_uppercase() } else { lower }
}

/// `%s`, inside of containers as well.
fn string(value: &Val<'_>) -> Evaluated<String> {
    Ok(match value {
        Val::List(_) | Val::JsonList(..) => {
            let items: Vec<String> = value.items()?.iter().map(string).collect::<Evaluated<_>>()?;
            format!("[{}]", items.join(", "))
        }
        Val::Map(_) | Val::JsonMap(..) => {
            let mut entries = Vec::new();
            for key in value.keys() {
                let inner = value.entry(&key).unwrap_or_else(|| Err(Fault::no_such_overload()))?;
                entries.push(format!("{}: {}", string(&key)?, string(&inner)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Val::Double(number) if !number.is_finite() => infinite(*number),
        Val::Double(number) => show_double(*number),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Type(of) => type_name(of).to_owned(),
        Val::Optional(_) | Val::Quantity(_) | Val::Url(_) | Val::NamedFormat(_) => {
            let given = type_name(&value.type_of());
            return Err(Fault::new(format!("error during formatting: {}, was given {given}", wanted('s'))));
        }
        other => show(other),
    })
}
