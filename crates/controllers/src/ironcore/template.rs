//! What the system of a probe is configured with: a file with the few words of Go's templates that metal-operator fills in.

/// A template that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Name),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Image,
    Flags,
    SshPublicKey,
    PasswordHash,
}

impl Name {
    const ALL: [(&str, Self); 4] = [
        (".Image", Self::Image),
        (".Flags", Self::Flags),
        (".SSHPublicKey", Self::SshPublicKey),
        (".PasswordHash", Self::PasswordHash),
    ];
}

/// What is filled in.
pub(super) struct Values<'a> {
    pub(super) image: &'a str,
    pub(super) flags: &'a str,
    pub(super) ssh_public_key: &'a str,
    /// Made only where it is asked for.
    pub(super) password_hash: &'a dyn Fn() -> Result<String, String>,
}

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// There is nothing in it.
    #[error("it is empty; leave the flag out to use the template that comes with Beskar7")]
    Empty,
    /// The probe would not know where to report.
    #[error(
        "it does not contain {{{{.Flags}}}}, which tells the probe where to report; add it to the command line of the probe"
    )]
    NoFlags,
    /// Something that begins and does not end.
    #[error("line {line}: {{{{ without }}}}; close it")]
    Unclosed {
        /// Where it begins.
        line: usize,
    },
    /// Something that is not known here.
    #[error(
        "line {line}: {{{{{what}}}}} is unknown; use {{{{.Image}}}}, {{{{.Flags}}}}, {{{{.SSHPublicKey}}}} or {{{{.PasswordHash}}}}"
    )]
    Unknown {
        /// Where it is.
        line: usize,
        /// What is between the braces.
        what: String,
    },
}

impl Default for Template {
    /// Runs the probe in containerd, on a system that lives in memory.
    fn default() -> Self {
        Self::parse(include_str!("probe.yaml")).unwrap_or_else(|_| Self(Vec::new()))
    }
}

impl Template {
    /// Reads a template, as metal-operator's users have it.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let line = text[..text.len() - rest.len() + before.len()].matches('\n').count() + 1;
            let (inner, after) = after.split_once("}}").ok_or(TemplateError::Unclosed { line })?;
            // A dash takes away the white space beside it.
            let (inner, before) = match inner.strip_prefix('-') {
                Some(inner) if inner.starts_with(char::is_whitespace) => (inner, before.trim_end()),
                _ => (inner, before),
            };
            let (inner, after) = match inner.strip_suffix('-') {
                Some(inner) if inner.ends_with(char::is_whitespace) => (inner, after.trim_start()),
                _ => (inner, after),
            };
            pieces.push(Piece::Text(before.to_owned()));
            let what = inner.trim();
            let is_comment = what.starts_with("/*") && what.ends_with("*/");
            match Name::ALL.into_iter().find(|(word, _)| *word == what) {
                Some((_, name)) => pieces.push(Piece::Value(name)),
                None if is_comment => {}
                None => return Err(TemplateError::Unknown { line, what: what.to_owned() }),
            }
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        if pieces.contains(&Piece::Value(Name::Flags)) { Ok(Self(pieces)) } else { Err(TemplateError::NoFlags) }
    }

    pub(super) fn render(&self, values: &Values<'_>) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Value(Name::Image) => text.push_str(values.image),
                Piece::Value(Name::Flags) => text.push_str(values.flags),
                Piece::Value(Name::SshPublicKey) => text.push_str(values.ssh_public_key.trim_end()),
                Piece::Value(Name::PasswordHash) => text.push_str(&(values.password_hash)()?),
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let values = Values {
            image: "probe:1",
            flags: "--registry-url=u --server-uuid=s",
            ssh_public_key: "ssh-ed25519 AAAA x",
            password_hash: &|| Ok("$2a$10$x".to_owned()),
        };
        Template::parse(text).unwrap().render(&values).unwrap()
    }

    #[test]
    fn what_metal_operators_users_write_is_filled_in() {
        let table = [
            ("run {{.Image}} {{.Flags}}", "run probe:1 --registry-url=u --server-uuid=s"),
            ("{{ .Image }}\n{{ .Flags }}\n", "probe:1\n--registry-url=u --server-uuid=s"),
            (
                "hash: {{.PasswordHash}}\nkeys: [ {{.SSHPublicKey}} ]\n{{.Flags}}",
                "hash: $2a$10$x\nkeys: [ ssh-ed25519 AAAA x ]\n--registry-url=u --server-uuid=s",
            ),
            ("a  {{- .Image -}}  b {{.Flags}}", "aprobe:1b --registry-url=u --server-uuid=s"),
            ("{{/* the probe */}}x {{.Flags}}", "x --registry-url=u --server-uuid=s"),
        ];
        for (text, expected) in table {
            assert_eq!(rendered(text), expected);
        }
    }

    #[test]
    fn a_template_that_cannot_be_used_is_refused_with_the_line_and_the_remedy() {
        let table = [
            ("  \n", "it is empty; leave the flag out to use the template that comes with Beskar7"),
            (
                "variant: fcos",
                "it does not contain {{.Flags}}, which tells the probe where to report; add it to the command line of the probe",
            ),
            ("a\n{{.Flags", "line 2: {{ without }}; close it"),
            (
                "{{.Flags}}\n\n{{if .Image}}x{{end}}",
                "line 3: {{if .Image}} is unknown; use {{.Image}}, {{.Flags}}, {{.SSHPublicKey}} or {{.PasswordHash}}",
            ),
            (
                "{{.Flags}} {{.Nonsense}}",
                "line 1: {{.Nonsense}} is unknown; use {{.Image}}, {{.Flags}}, {{.SSHPublicKey}} or {{.PasswordHash}}",
            ),
        ];
        for (text, told) in table {
            assert_eq!(Template::parse(text).unwrap_err().to_string(), told);
        }
    }

    #[test]
    fn the_template_that_comes_with_us_is_yaml_and_runs_the_probe() {
        let text = Template::default().render(&Values {
            image: "probe:1",
            flags: "--registry-url=http://b/registry/p/t --server-uuid=s",
            ssh_public_key: "ssh-ed25519 AAAA x",
            password_hash: &|| Err("nobody asks for it".to_owned()),
        });
        let butane: serde_json::Value = serde_saphyr::from_str(&text.unwrap()).unwrap();
        assert_eq!((&butane["variant"], &butane["version"]), (&"fcos".into(), &"1.3.0".into()));
        let units = butane["systemd"]["units"].as_array().unwrap();
        let probe = units.iter().find(|unit| unit["name"] == "metalprobe.service").unwrap()["contents"].as_str();
        assert!(probe.unwrap().contains("probe:1 metalprobe ./launch.sh --registry-url=http://b/registry/p/t "));
    }
}
