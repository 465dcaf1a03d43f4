//! Versions of Debian packages, in dpkg's order.

use std::cmp::Ordering;

/// Which of two versions is the newer one.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (split(left), split(right));
    left.0.cmp(&right.0).then_with(|| part(left.1, right.1)).then_with(|| part(left.2, right.2))
}

/// Whether it has only the letters that versions are made of.
pub(super) fn is_valid(version: &str) -> bool {
    version.starts_with(|first: char| first.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+-~:".contains(c))
}

/// Epoch, version of the program, revision of the package.
fn split(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (program, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch.parse().unwrap_or(0), program, revision)
}

/// Compares in turns what is no number and what is one.
fn part(mut left: &str, mut right: &str) -> Ordering {
    while !left.is_empty() || !right.is_empty() {
        let (left_word, left_rest) = cut(left, |c| !c.is_ascii_digit());
        let (right_word, right_rest) = cut(right, |c| !c.is_ascii_digit());
        let (left_number, left_rest) = cut(left_rest, |c| c.is_ascii_digit());
        let (right_number, right_rest) = cut(right_rest, |c| c.is_ascii_digit());
        let order = word(left_word).cmp(word(right_word)).then_with(|| number(left_number, right_number));
        if order.is_ne() {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
    Ordering::Equal
}

/// The beginning of which every letter is one of these, and the rest.
fn cut(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// A tilde sorts before the end, letters after it, everything else last.
fn word(text: &str) -> impl Iterator<Item = (u8, char)> {
    let ranked = text.chars().map(|c| match c {
        '~' => (0, c),
        c if c.is_ascii_alphabetic() => (2, c),
        c => (3, c),
    });
    ranked.chain([(1, ' ')])
}

fn number(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_dpkg_sorts_them() {
        let in_order = [
            "1.0~rc1-1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-2",
            "1.0-10",
            "1.0.0+git-20150424.a25a16d-3",
            "1.0.0+git-20190125.36a4c85-5.1",
            "1.21.1+git20220113.fbbdc3926+dfsg-4~bpo1",
            "1.21.1+git20220113.fbbdc3926+dfsg-4",
            "1:0.1",
        ];
        for (at, version) in in_order.iter().enumerate() {
            for (other_at, other) in in_order.iter().enumerate() {
                assert_eq!(compare(version, other), at.cmp(&other_at), "{version} {other}");
            }
        }
        assert_eq!(compare("1.00-1", "1.0-01"), Ordering::Equal);
    }

    #[test]
    fn a_version_is_one_word() {
        assert!(is_valid("1.0.0+git-20190125.36a4c85-5.1"));
        for wrong in ["", "x", "1.0\n", "1 0", "1/0"] {
            assert!(!is_valid(wrong), "{wrong:?}");
        }
    }
}
