//! Query parameters: `$expand`, `only`, `$top`, `$skip` and pages.

use serde_json::{Value, json};

use crate::personality::Query;
use crate::reply::Problem;

/// The parameters of a request.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|p| !p.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(name), decode(value))
                })
                .collect(),
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Percent decoding; what is not valid stays as it is.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        let hex = (byte == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(hex.unwrap_or(byte));
        i += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Which links are replaced by their targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    NoLinks,
    Links,
    All,
}

/// Applies the parameters that this BMC knows, and ignores the others. `get` reads another resource of the tree. The second value
/// is whether the body is no longer the plain resource.
pub(crate) fn apply(
    body: Value,
    path: &str,
    params: &Params,
    rules: &Query,
    get: &mut dyn FnMut(&str) -> Option<Value>,
) -> Result<(Value, bool), Problem> {
    let mut body = body;
    let mut changed = false;
    let collection = body.get("Members").is_some_and(Value::is_array);
    if rules.only
        && collection
        && params.get("only").is_some()
        && let Some([only]) = body["Members"].as_array().map(Vec::as_slice)
        && let Some(member) = link_of(only).and_then(&mut *get)
    {
        return Ok((member, false));
    }
    if collection {
        changed |= page(&mut body, path, params, rules);
    }
    if let (Some(expand), Some(asked)) = (rules.expand, params.get("$expand")) {
        let (which, levels) = parse_expand(asked)?;
        if levels > expand.max_levels {
            let text = format!("The value '{levels}' for the query parameter $expand is out of range.");
            return Err(Problem::bad_request("QueryParameterOutOfRange", text).args(&[&levels.to_string(), "$expand"]));
        }
        if !expand.links && which != Which::NoLinks {
            let text = "The query parameter $expand has a value that is not supported.";
            return Err(Problem::bad_request("QueryParameterValueError", text).args(&[asked, "$expand"]));
        }
        if collection || !expand.collections_only {
            inline(&mut body, which, levels, get);
            changed = true;
        }
    }
    Ok((body, changed))
}

fn parse_expand(text: &str) -> Result<(Which, u8), Problem> {
    let wrong = || {
        let message = format!("The value '{text}' for the query parameter $expand is a format it does not accept.");
        Problem::bad_request("QueryParameterValueFormatError", message).args(&[text, "$expand"])
    };
    let (which, rest) = text.split_at_checked(1).ok_or_else(wrong)?;
    let which = match which {
        "." => Which::NoLinks,
        "~" => Which::Links,
        "*" => Which::All,
        _ => return Err(wrong()),
    };
    if rest.is_empty() {
        return Ok((which, 1));
    }
    let levels = rest.strip_prefix("($levels=").and_then(|r| r.strip_suffix(')')).and_then(|n| n.parse().ok());
    levels.filter(|&n| n > 0).map(|n| (which, n)).ok_or_else(wrong)
}

/// A value that is nothing but a link.
fn link_of(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|o| o.len() == 1)?;
    object.get("@odata.id")?.as_str()
}

/// Replaces the links in the fields of a resource.
fn inline(body: &mut Value, which: Which, levels: u8, get: &mut dyn FnMut(&str) -> Option<Value>) {
    if levels > 0 {
        replace(body, which, levels, false, get);
    }
}

fn replace(value: &mut Value, which: Which, levels: u8, in_links: bool, get: &mut dyn FnMut(&str) -> Option<Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| follow(item, which, levels, in_links, get)),
        Value::Object(fields) => {
            for (name, child) in fields {
                // Settings objects and actions are references too, and not subordinate.
                if name != "Actions" && !name.starts_with('@') {
                    follow(child, which, levels, in_links || name == "Links", get);
                }
            }
        }
        _ => {}
    }
}

fn follow(value: &mut Value, which: Which, levels: u8, in_links: bool, get: &mut dyn FnMut(&str) -> Option<Value>) {
    let Some(link) = link_of(value) else { return replace(value, which, levels, in_links, get) };
    let wanted = match which {
        Which::NoLinks => !in_links,
        Which::Links => in_links,
        Which::All => true,
    };
    // References to a part of a resource (`#/Fans/0`) stay references.
    if wanted
        && !link.contains('#')
        && let Some(mut body) = get(link)
    {
        inline(&mut body, which, levels - 1, get);
        *value = body;
    }
}

/// Cuts a collection to a page.
fn page(body: &mut Value, path: &str, params: &Params, rules: &Query) -> bool {
    let number = |name| params.get(name).and_then(|n| n.parse::<usize>().ok());
    let (skip, top) = (number("$skip").unwrap_or(0), number("$top"));
    let size = match (top, rules.page_size) {
        (Some(top), Some(size)) => Some(top.min(size)),
        (top, size) => top.or(size),
    };
    let Some(members) = body["Members"].as_array_mut() else { return false };
    if skip == 0 && size.is_none_or(|size| members.len() <= size) {
        return false;
    }
    let total = members.len();
    members.drain(..skip.min(total));
    members.truncate(size.unwrap_or(total));
    let next = skip + members.len();
    if top.is_none() && next < total {
        body["Members@odata.nextLink"] = json!(format!("{path}?$skip={next}"));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personality::Expand;

    fn tree(path: &str) -> Option<Value> {
        match path {
            "/c/1" => Some(json!({ "@odata.id": "/c/1", "Id": "1", "Sub": { "@odata.id": "/s" },
                "Links": { "Owner": { "@odata.id": "/o" } } })),
            "/s" => Some(json!({ "@odata.id": "/s", "Id": "s" })),
            "/o" => Some(json!({ "@odata.id": "/o", "Id": "o" })),
            _ => None,
        }
    }

    fn collection() -> Value {
        json!({ "@odata.id": "/c", "Members": [{ "@odata.id": "/c/1" }, { "@odata.id": "/c/2" }] })
    }

    fn rules() -> Query {
        Query {
            expand: Some(Expand { max_levels: 2, links: true, collections_only: false }),
            only: true,
            page_size: None,
        }
    }

    fn ask(query: &str, rules: &Query) -> Result<Value, Problem> {
        apply(collection(), "/c", &Params::parse(Some(query)), rules, &mut tree).map(|(body, _)| body)
    }

    #[test]
    fn one_level_brings_the_members_that_exist() {
        let body = ask("$expand=.($levels=1)", &rules()).unwrap();
        assert_eq!(body["Members"][0]["Id"], "1");
        assert_eq!(body["Members"][0]["Sub"], json!({ "@odata.id": "/s" }));
        assert_eq!(body["Members"][1], json!({ "@odata.id": "/c/2" }));
    }

    #[test]
    fn a_dot_leaves_links_alone_and_a_star_does_not() {
        let body = ask("%24expand=.(%24levels%3D2)", &rules()).unwrap();
        assert_eq!(body["Members"][0]["Sub"]["Id"], "s");
        let body =
            apply(tree("/c/1").unwrap(), "/c/1", &Params::parse(Some("$expand=.")), &rules(), &mut tree).unwrap();
        assert_eq!(body.0["Links"]["Owner"], json!({ "@odata.id": "/o" }));
        let body =
            apply(tree("/c/1").unwrap(), "/c/1", &Params::parse(Some("$expand=*")), &rules(), &mut tree).unwrap();
        assert_eq!(body.0["Links"]["Owner"]["Id"], "o");
    }

    #[test]
    fn too_deep_is_refused_and_unannounced_is_ignored() {
        assert!(ask("$expand=.($levels=3)", &rules()).is_err());
        let body = ask("$expand=.($levels=1)", &Query { expand: None, ..rules() }).unwrap();
        assert_eq!(body, collection());
    }

    #[test]
    fn pages_lead_to_the_next() {
        let rules = Query { page_size: Some(1), ..rules() };
        let body = ask("", &rules).unwrap();
        assert_eq!(body["Members"].as_array().unwrap().len(), 1);
        assert_eq!(body["Members@odata.nextLink"], "/c?$skip=1");
        let body = ask("$skip=1", &rules).unwrap();
        assert_eq!(body["Members"][0]["@odata.id"], "/c/2");
        assert!(body.get("Members@odata.nextLink").is_none());
    }
}
