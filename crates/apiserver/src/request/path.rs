//! `/api/v1/namespaces/default/configmaps/a`.

/// Where a request goes, if it goes to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace, where one is named.
    pub namespace: Option<String>,
    /// The resource.
    pub plural: String,
    /// The object, where one is named.
    pub name: Option<String>,
    /// The subresource, where one is named.
    pub subresource: Option<String>,
    /// More of the path than any resource has.
    pub too_deep: bool,
    /// The old form of watching: `/api/v1/watch/…`.
    pub watch: bool,
}

impl Target {
    /// Reads a decoded path; `None` if it names no resource.
    pub fn parse(path: &str) -> Option<Self> {
        let mut parts =
            path.trim_start_matches('/').strip_suffix('/').unwrap_or(path.trim_start_matches('/')).split('/');
        let (group, version) = match parts.next()? {
            "api" => ("", parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut parts: Vec<&str> = parts.collect();
        let watch = parts.first() == Some(&"watch");
        if watch {
            parts.remove(0);
        }
        let mut namespace = None;
        // Only status and finalize are parts of a namespace; all else is inside it.
        if parts.first() == Some(&"namespaces") && !matches!(parts.get(2), None | Some(&("status" | "finalize"))) {
            namespace = Some(parts[1].to_owned());
            parts.drain(..2);
        }
        let mut parts = parts.into_iter();
        let plural = parts.next().filter(|plural| !plural.is_empty())?.to_owned();
        let name = parts.next().map(str::to_owned);
        let subresource = parts.next().map(str::to_owned);
        let too_deep = parts.next().is_some();
        let (group, version) = (group.to_owned(), version.to_owned());
        Some(Self { group, version, namespace, plural, name, subresource, too_deep, watch })
    }
}

/// Undoes percent-encoding. What is not UTF-8 afterwards cannot be a name here and becomes a replacement character.
pub fn decode(text: &str, plus_is_space: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => {
                if let (Some(high), Some(low)) = (char::from(*high).to_digit(16), char::from(*low).to_digit(16)) {
                    // Two hexadecimal digits always fit.
                    bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                    rest = after;
                } else {
                    bytes.push(b'%');
                }
            }
            (b'+', _) if plus_is_space => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
