//! How Go prints values: messages quote them, and people and tests compare messages.

use std::fmt::Write;

use serde_json::{Number, Value};

/// A value as it stands in `Invalid value: …`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        // Kubernetes replaces nil by the word, and then quotes the word.
        Value::Null => "\"null\"".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => shown_number(number),
        Value::String(text) => quoted(text),
        nested => {
            let mut out = String::new();
            write_syntax(&mut out, nested);
            out
        }
    }
}

/// `%v` of JSON.
pub(crate) fn go_value(value: &Value) -> String {
    let spaced = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => shown_number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", spaced(items.iter().map(go_value).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}:{}", go_value(value)));
            format!("map[{}]", spaced(fields.collect()))
        }
    }
}

/// `%q` of a string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(&mut out, text);
    out
}

/// `%v` of a float64: the shortest digits that name it, with an exponent where that is far from the point.
pub(crate) fn shown_float(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value.is_nan() {
            "NaN".to_owned()
        } else if value.is_infinite() {
            if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
        } else {
            "0".to_owned()
        };
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // Go changes to an exponent below 1e-4 and from 1e6 on.
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn shown_number(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => shown_float(number.as_f64().unwrap_or_default()),
    }
}

/// `%#v` of nested JSON.
fn write_syntax(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&shown_number(number)),
        Value::String(text) => write_quoted(out, text),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_syntax(out, item);
            }
            out.push('}');
        }
        Value::Object(fields) => {
            out.push_str("map[string]interface {}{");
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_quoted(out, key);
                out.push(':');
                write_syntax(out, field);
            }
            out.push('}');
        }
    }
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(character),
            _ => write_unusual(out, character),
        }
    }
    out.push('"');
}

/// What is outside of ASCII stands as it is where it can be seen, and as its number otherwise.
fn write_unusual(out: &mut String, character: char) {
    let code = u32::from(character);
    // Rust's idea of what a person can see: it escapes the rest in `Debug`.
    let visible = code > 0x7f && !character.is_whitespace() && character.escape_debug().len() == 1;
    // Writing to a string does not fail.
    let _ = match code {
        _ if visible => write!(out, "{character}"),
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_look_as_go_prints_them() {
        for (value, text) in [
            (json!(null), r#""null""#),
            (json!("a\"b\n\u{1}é\u{a0}"), r#""a\"b\n\x01é\u00a0""#),
            (json!(11), "11"),
            (json!(-3), "-3"),
            (json!(1.5), "1.5"),
            (json!(0.3), "0.3"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(100_000.0), "100000"),
            (json!(1_000_000.0), "1e+06"),
            (json!(2_000_000.5), "2.0000005e+06"),
            (json!(18_446_744_073_709_551_615_u64), "1.8446744073709552e+19"),
            (
                json!({"a": "x", "b": [1, null, true, 2.5]}),
                r#"map[string]interface {}{"a":"x", "b":[]interface {}{1, interface {}(nil), true, 2.5}}"#,
            ),
            (json!({}), "map[string]interface {}{}"),
        ] {
            assert_eq!(shown(&value), text);
        }
    }
}
