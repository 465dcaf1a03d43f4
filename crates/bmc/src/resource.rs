//! A Redfish resource, read leniently: each field by itself, and a bad one is as good as none.

use serde_json::Value;

/// One resource as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resource {
    /// Where it was read from.
    pub(crate) uri: String,
    /// Its ETag, from the header or from the body.
    pub(crate) etag: Option<String>,
    pub(crate) body: Value,
}

impl Resource {
    /// A resource that stood inside another one.
    pub(crate) fn embedded(body: Value) -> Option<Self> {
        let uri = View(&body).link("")?;
        let etag = View(&body).text("/@odata.etag");
        Some(Self { uri, etag, body })
    }

    pub(crate) fn view(&self) -> View<'_> {
        View(&self.body)
    }

    /// The id: as stated, else the last part of the URI.
    pub(crate) fn id(&self) -> String {
        self.view().text("/Id").unwrap_or_else(|| last_segment(&self.uri).to_owned())
    }
}

pub(crate) fn last_segment(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// The path of a link on this BMC. A BMC may write its links with a host in front, and by a name that we do not use for it; a
/// path is only ever asked of the BMC that gave it.
pub(crate) fn path_of(link: &str) -> Option<String> {
    let link = link.trim();
    let path = match link.split_once("://") {
        Some((_, rest)) => rest.find('/').map(|at| &rest[at..])?,
        None => link,
    };
    match path.strip_prefix('/') {
        Some(rest) => (!rest.starts_with('/')).then(|| path.to_owned()),
        None => path.starts_with("redfish/").then(|| format!("/{path}")),
    }
}

/// Placeholders that vendors write into empty fields.
const PLACEHOLDERS: &[&str] = &[
    "n/a",
    "na",
    "none",
    "null",
    "unknown",
    "not specified",
    "not available",
    "not applicable",
    "no asset tag",
    "default string",
    "to be filled by o.e.m.",
    "system manufacturer",
    "system product name",
    "system serial number",
    "0123456789",
    "1234567890",
];

fn is_placeholder(text: &str) -> bool {
    PLACEHOLDERS.contains(&text.to_ascii_lowercase().as_str()) || text.chars().all(|c| matches!(c, '0' | '-' | '.'))
}

/// Lower case with hyphens; `None` for placeholders: BlueField has "" in NIC mode, boards without one have zeros.
pub(crate) fn uuid(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches('{').trim_end_matches('}').to_ascii_lowercase();
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.is_empty() || digits.chars().all(|c| c == '0') || digits.chars().all(|c| c == 'f') {
        return None;
    }
    if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Some(text);
    }
    Some([&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

/// Two URIs of the same resource may differ in case of the fixed parts and in a trailing slash (iLO mixes both).
pub(crate) fn same_uri(a: &str, b: &str) -> bool {
    a.trim_end_matches('/').eq_ignore_ascii_case(b.trim_end_matches('/'))
}

/// Looks into a JSON value by JSON pointers. Wrong types and nulls read as `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a>(pub(crate) &'a Value);

impl<'a> View<'a> {
    fn at(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(crate) fn has(self, pointer: &str) -> bool {
        self.0.pointer(pointer).is_some()
    }

    /// A non-empty text; numbers are taken as text (ZTE's `Socket`).
    pub(crate) fn text(self, pointer: &str) -> Option<String> {
        match self.at(pointer)? {
            Value::String(text) => {
                let text = text.trim();
                (!text.is_empty()).then(|| text.to_owned())
            }
            Value::Number(number) => Some(number.to_string()),
            other => odd(pointer, "a text", other),
        }
    }

    /// A text that identifies something, not a vendor's placeholder.
    pub(crate) fn identity(self, pointer: &str) -> Option<String> {
        self.text(pointer).filter(|text| !is_placeholder(text))
    }

    pub(crate) fn uuid(self) -> Option<String> {
        uuid(&self.text("/UUID")?)
    }

    /// A number; texts that contain one are taken too (sushy's `TotalCores: "1"`).
    pub(crate) fn number(self, pointer: &str) -> Option<u64> {
        let float = match self.at(pointer)? {
            Value::Number(number) => match number.as_u64() {
                Some(whole) => return Some(whole),
                None => number.as_f64()?,
            },
            Value::String(text) => match text.trim().parse::<u64>() {
                Ok(whole) => return Some(whole),
                Err(_) => text.trim().parse::<f64>().ok().or_else(|| odd(pointer, "a number", &Value::Null))?,
            },
            other => return odd(pointer, "a number", other),
        };
        whole(float)
    }

    /// A number with a fraction that matters (`TotalSystemMemoryGiB: 1.5`).
    pub(crate) fn float(self, pointer: &str) -> Option<f64> {
        match self.at(pointer)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            other => odd(pointer, "a number", other),
        }
    }

    pub(crate) fn small(self, pointer: &str) -> Option<u32> {
        self.number(pointer).and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn flag(self, pointer: &str) -> Option<bool> {
        match self.at(pointer)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
            other => odd(pointer, "true or false", other),
        }
    }

    /// A link: `{"@odata.id": …}`, or the URI itself.
    pub(crate) fn link(self, pointer: &str) -> Option<String> {
        let found = self.at(pointer)?;
        let text = match found {
            Value::Object(object) => object.get("@odata.id").or_else(|| object.get("href"))?.as_str(),
            Value::String(text) => Some(text.as_str()),
            other => return odd(pointer, "a link", other),
        };
        text.and_then(path_of)
    }

    /// The entries of a list; none when it is no list.
    pub(crate) fn list(self, pointer: &str) -> &'a [Value] {
        match self.at(pointer) {
            Some(Value::Array(entries)) => entries,
            Some(other) => odd(pointer, "a list", other).unwrap_or_default(),
            None => &[],
        }
    }

    pub(crate) fn links(self, pointer: &str) -> Vec<String> {
        match self.at(pointer) {
            // A single link where a list should be.
            Some(Value::Object(_)) => self.link(pointer).into_iter().collect(),
            _ => self.list(pointer).iter().filter_map(|entry| View(entry).link("")).collect(),
        }
    }

    pub(crate) fn texts(self, pointer: &str) -> Vec<String> {
        self.list(pointer).iter().filter_map(|entry| View(entry).text("")).collect()
    }

    /// The names of the members of an object.
    pub(crate) fn keys(self, pointer: &str) -> Vec<String> {
        self.at(pointer).and_then(Value::as_object).map(|object| object.keys().cloned().collect()).unwrap_or_default()
    }
}

fn odd<T>(pointer: &str, wanted: &str, found: &Value) -> Option<T> {
    let found = match found {
        Value::Null => "something else",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    tracing::debug!(field = pointer, "the BMC sent {found} instead of {wanted}; field ignored");
    None
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(crate) fn whole(float: f64) -> Option<u64> {
    (float.is_finite() && (0.0..9.0e15).contains(&float)).then_some(float.round() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_field_reads_as_none() {
        let body = json!({"a": null, "b": [], "c": "", "d": " x ", "e": "12", "f": 1.6, "g": -1, "h": "true", "i": {"@odata.id": ""},
            "j": {"@odata.id": "/x"}, "k": "nan", "l": [{"@odata.id": "/1"}, {}, null, 7, "/2"]});
        let view = View(&body);
        assert_eq!(view.text("/a"), None);
        assert_eq!(view.text("/b"), None);
        assert_eq!(view.text("/c"), None);
        assert_eq!(view.text("/d").as_deref(), Some("x"));
        assert_eq!(view.number("/e"), Some(12));
        assert_eq!(view.number("/f"), Some(2));
        assert_eq!(view.number("/g"), None);
        assert_eq!(view.number("/k"), None);
        assert_eq!(view.number("/d"), None);
        assert_eq!(view.flag("/h"), Some(true));
        assert_eq!(view.link("/i"), None);
        assert_eq!(view.link("/j").as_deref(), Some("/x"));
        assert_eq!(view.links("/l"), ["/1", "/2"]);
        assert_eq!(view.links("/j"), ["/x"]);
        assert!(view.list("/c").is_empty());
    }

    #[test]
    fn links_may_carry_a_host_in_front() {
        for link in ["/redfish/v1/Systems/1", "https://bmc-7.lan:8443/redfish/v1/Systems/1", "redfish/v1/Systems/1"] {
            assert_eq!(path_of(link).as_deref(), Some("/redfish/v1/Systems/1"), "{link}");
        }
        for link in ["", "Systems", "//evil.test/redfish", "https://bmc.lan", "mailto:x"] {
            assert_eq!(path_of(link), None, "{link}");
        }
    }

    #[test]
    fn uuids_are_of_one_form_and_name_something() {
        let dashed = "34383350-3131-584d-5133-303230393953";
        for text in
            ["34383350-3131-584D-5133-303230393953", "343833503131584D5133303230393953", &format!("{{{dashed}}}")]
        {
            assert_eq!(uuid(text).as_deref(), Some(dashed));
        }
        for text in ["", " ", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"] {
            assert_eq!(uuid(text), None, "{text}");
        }
        let of_a_mac = "00000000-0000-0000-0000-3cecef123456";
        assert_eq!(uuid(of_a_mac).as_deref(), Some(of_a_mac), "Supermicro makes one of a MAC address");
        assert_eq!(uuid("SYS-1").as_deref(), Some("sys-1"));
    }

    #[test]
    fn what_was_never_filled_in_is_not_an_identity() {
        let body = json!({"a": "To Be Filled By O.E.M.", "b": "N/A", "c": "000000", "d": "S1", "e": "Default string"});
        let said: Vec<_> = ["/a", "/b", "/c", "/d", "/e"].iter().filter_map(|p| View(&body).identity(p)).collect();
        assert_eq!(said, ["S1"]);
    }

    #[test]
    fn ilo_mixes_case_and_slashes() {
        assert!(same_uri("/redfish/v1/Systems/1", "/redfish/v1/systems/1/"));
        assert_eq!(last_segment("/redfish/v1/Systems/1/"), "1");
    }
}
