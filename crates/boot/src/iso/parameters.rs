//! The kernel parameters that are to be added.

use std::fmt;

use super::IsoError;

/// The longest kernel command line on x86 (`COMMAND_LINE_SIZE` is 2048, with the closing zero). Others take no less.
pub(crate) const KERNEL_LINE_LIMIT: usize = 2047;

/// GRUB and isolinux put the kernel's path before what is configured.
pub(crate) const BOOT_IMAGE: usize = "BOOT_IMAGE=".len();

/// Kernel parameters that every boot loader passes on unchanged.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Parameters(Vec<Parameter>);

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Parameter(String);

impl Parameters {
    /// Takes words such as `config_url=https://…` or `quiet`, in the order in which the kernel shall see them.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Result<Self, IsoError> {
        let parameters = words.into_iter().map(|word| Parameter::new(word.into())).collect::<Result<Vec<_>, _>>()?;
        let bytes = parameters.iter().map(|parameter| parameter.0.len() + 1).sum::<usize>() + BOOT_IMAGE;
        if bytes > KERNEL_LINE_LIMIT {
            return Err(IsoError::KernelLineTooLong { path: None, bytes, limit: KERNEL_LINE_LIMIT });
        }
        Ok(Self(parameters))
    }

    /// All of them, in a line.
    pub(crate) fn line(&self) -> String {
        self.0.iter().map(|parameter| parameter.0.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// None, to look at a configuration without changing it.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// Those that a kernel line with these words still needs, so that the last word about each key is ours.
    ///
    /// Some keys are given several times on purpose (`console=`), so all values of one key stay or come together.
    pub(crate) fn missing_from(&self, words: &[&[u8]]) -> Vec<&str> {
        let is_there = |key: &str| {
            let theirs = words.iter().filter(|word| key_of(word) == key.as_bytes()).copied();
            let ours = self.0.iter().filter(|parameter| parameter.key() == key).map(|parameter| parameter.0.as_bytes());
            let (theirs, ours): (Vec<_>, Vec<_>) = (theirs.collect(), ours.collect());
            theirs.ends_with(&ours)
        };
        self.0.iter().filter(|parameter| !is_there(parameter.key())).map(|parameter| parameter.0.as_str()).collect()
    }
}

impl Parameter {
    fn new(word: String) -> Result<Self, IsoError> {
        let why = if word.is_empty() || word.starts_with('=') {
            "it has no name"
        } else if !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            "only visible ASCII characters are allowed, and no spaces"
        } else if word.contains(['"', '\'', '\\', '`']) {
            "boot loaders do not agree on quotes and backslashes; leave them out or percent-encode them"
        } else if word.starts_with('#') || matches!(word.as_str(), "-" | "--" | "---") {
            "boot loaders take it for something else"
        } else {
            return Ok(Self(word));
        };
        Err(IsoError::ParameterInvalid { key: String::from_utf8_lossy(key_of(word.as_bytes())).into_owned(), why })
    }

    fn key(&self) -> &str {
        self.0.split('=').next().unwrap_or_default()
    }
}

fn key_of(word: &[u8]) -> &[u8] {
    word.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// Keys only: values may be tickets.
impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(Parameter::key)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_boot_loader_would_misread_are_refused() {
        for word in
            ["", "=x", "a b", "a=\tb", "a=\"b\"", "a='b'", "a=b\\c", "ä=1", "a=\u{7f}", "#a", "--", "---", "a\n"]
        {
            assert!(matches!(Parameters::new([word]), Err(IsoError::ParameterInvalid { .. })), "{word:?}");
        }
        for word in ["quiet", "config_url=https://a:1/b?c=d&e={f};g#h$i", "init=/bin/sh", "-x", "a="] {
            assert!(Parameters::new([word]).is_ok(), "{word:?}");
        }
    }

    #[test]
    fn a_line_that_the_kernel_would_cut_off_is_refused() {
        let fits = KERNEL_LINE_LIMIT - BOOT_IMAGE - 1;
        assert!(Parameters::new(["x".repeat(fits)]).is_ok());
        let error = Parameters::new(["x".repeat(fits + 1)]).unwrap_err();
        assert_eq!(error, IsoError::KernelLineTooLong { path: None, bytes: 2048, limit: 2047 });
        assert!(error.to_string().contains("2047"), "{error}");
    }

    #[test]
    fn neither_errors_nor_debug_output_show_values() {
        let error = Parameters::new(["url=https://secret ticket"]).unwrap_err();
        assert!(!error.to_string().contains("secret") && !format!("{error:?}").contains("secret"), "{error:?}");
        let parameters = Parameters::new(["url=https://secret"]).unwrap();
        assert_eq!(format!("{parameters:?}"), r#"["url"]"#);
    }

    #[test]
    fn only_what_is_missing_is_added() {
        for (ours, line, missing) in [
            (vec!["a=1"], "", vec!["a=1"]),
            (vec!["a=1"], "a=1", vec![]),
            (vec!["a=1"], "a=1 b", vec![]),
            (vec!["a=1"], "a=2", vec!["a=1"]),
            (vec!["a=1"], "a=1 a=2", vec!["a=1"]),
            (vec!["a=1"], "a=12", vec!["a=1"]),
            (vec!["a"], "a=1", vec!["a"]),
            (vec!["quiet"], "quiet", vec![]),
            (vec!["console=tty0", "console=ttyS0"], "console=tty0 x console=ttyS0", vec![]),
            (
                vec!["console=tty0", "console=ttyS0"],
                "console=ttyS0 console=tty0",
                vec!["console=tty0", "console=ttyS0"],
            ),
        ] {
            let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
            assert_eq!(Parameters::new(ours).unwrap().missing_from(&words), missing, "{line}");
        }
    }
}
