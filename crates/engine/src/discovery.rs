//! How servers are found behind a BMC: which credentials are tried, and what the servers are called.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hardware::is_same_uuid;
use crate::host::Turn;
use crate::server::ListedSystem;

/// Credentials that are tried one after the other, each once: a BMC that refuses too many locks its account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tries {
    /// Distinguishes the list of credentials from every other one.
    pub list: String,
    /// How many of them the BMC has refused, from the first one on.
    pub refused: usize,
}

impl Tries {
    /// Which of the credentials of this list is to be tried, if one is left.
    pub fn next(&self, list: &str, len: usize) -> Option<usize> {
        let refused = if self.list == list { self.refused } else { 0 };
        (refused < len).then_some(refused)
    }

    /// What is remembered when the BMC has refused the one that was tried.
    #[must_use]
    pub fn refuse(&self, list: &str) -> Self {
        let refused = if self.list == list { self.refused } else { 0 };
        Self { list: list.to_owned(), refused: refused.saturating_add(1) }
    }
}

/// A server behind a BMC, as a resource of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its number: the same for the same UUID, however the BMC lists its systems, and never that of another one.
    pub number: u32,
    /// Its UUID, lower case.
    pub uuid: String,
    /// Its path in the Redfish service.
    pub uri: String,
}

/// Which numbers the systems of a BMC have, by UUID.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Numbers(BTreeMap<String, u32>);

impl Numbers {
    /// A server that is known to have this number. What is known already stays.
    pub fn know(&mut self, uuid: &str, number: u32) {
        if self.of(uuid).is_none() && !self.0.values().any(|taken| *taken == number) {
            self.0.insert(uuid.to_ascii_lowercase(), number);
        }
    }

    /// The turn of a server among those that are known, if there are several.
    pub fn turn(&self, uuid: &str) -> Option<Turn> {
        let place = self.0.keys().position(|known| is_same_uuid(known, uuid))?;
        let [place, of] = [place, self.0.len()].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        (of > 1).then_some(Turn { place, of })
    }

    fn of(&self, uuid: &str) -> Option<u32> {
        self.0.iter().find(|(known, _)| is_same_uuid(known, uuid)).map(|(_, number)| *number)
    }

    /// The systems that can be booted and told apart, with their numbers. New ones get numbers that nobody ever had.
    pub fn assign(&mut self, systems: &[ListedSystem]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        for system in systems.iter().filter(|system| system.bootable) {
            let Some(uuid) = system.uuid.as_deref().filter(|uuid| is_telling(uuid)) else { continue };
            if found.iter().any(|other| is_same_uuid(&other.uuid, uuid)) {
                continue;
            }
            let number = self.of(uuid).unwrap_or_else(|| {
                let next = self.0.values().max().map_or(0, |last| last.saturating_add(1));
                self.0.insert(uuid.to_ascii_lowercase(), next);
                next
            });
            found.push(Found { number, uuid: uuid.to_ascii_lowercase(), uri: system.uri.clone() });
        }
        found
    }
}

/// Whether a UUID tells one server from another: boards whose maker forgot to set one all have the same.
fn is_telling(uuid: &str) -> bool {
    let mut digits = uuid.chars().filter(char::is_ascii_alphanumeric);
    !digits.all(|digit| digit == '0' || digit.eq_ignore_ascii_case(&'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(id: &str, uuid: &str) -> ListedSystem {
        let uuid = (!uuid.is_empty()).then(|| uuid.to_owned());
        ListedSystem { uri: format!("/redfish/v1/Systems/{id}"), id: id.to_owned(), uuid, bootable: true }
    }

    fn numbers(found: &[Found]) -> Vec<(u32, &str)> {
        found.iter().map(|found| (found.number, found.uuid.as_str())).collect()
    }

    #[test]
    fn a_number_belongs_to_a_uuid_for_ever() {
        let mut known = Numbers::default();
        let [a, b, c] = ["a0-1", "b0-1", "c0-1"];
        assert_eq!(numbers(&known.assign(&[system("1", a), system("2", b)])), [(0, a), (1, b)]);
        assert_eq!(numbers(&known.assign(&[system("1", b), system("2", a)])), [(1, b), (0, a)], "reordered");
        assert_eq!(numbers(&known.assign(&[system("1", b)])), [(1, b)], "one less");
        assert_eq!(numbers(&known.assign(&[system("1", c), system("2", b)])), [(2, c), (1, b)], "another one");
        assert_eq!(numbers(&known.assign(&[system("1", a)])), [(0, a)], "it is back");
        let stored = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<Numbers>(&stored).unwrap(), known);
        assert_eq!(stored, r#"{"a0-1":0,"b0-1":1,"c0-1":2}"#);
    }

    #[test]
    fn what_servers_are_called_already_is_not_given_to_others() {
        let mut known = Numbers::default();
        known.know("B0-1", 3);
        known.know("b0-1", 0);
        known.know("c0-1", 3);
        assert_eq!(numbers(&known.assign(&[system("1", "a0-1"), system("2", "b0-1")])), [(4, "a0-1"), (3, "b0-1")]);
    }

    #[test]
    fn systems_without_a_boot_or_without_a_uuid_of_their_own_are_no_servers() {
        let enclosure = ListedSystem { bootable: false, ..system("1", "a0-1") };
        let unset = system("2", "00000000-0000-0000-0000-000000000000");
        let all = [enclosure, unset, system("3", ""), system("4", "d0-1"), system("5", "D0-1")];
        assert_eq!(numbers(&Numbers::default().assign(&all)), [(0, "d0-1")]);
    }

    #[test]
    fn each_of_several_credentials_is_tried_once_and_a_new_list_from_the_beginning() {
        let tries = Tries::default();
        assert_eq!(tries.next("list", 2), Some(0));
        let tries = tries.refuse("list");
        assert_eq!((tries.next("list", 2), tries.next("other", 2)), (Some(1), Some(0)));
        let tries = tries.refuse("list");
        assert_eq!(tries.next("list", 2), None);
        assert_eq!(tries.refuse("other").next("other", 2), Some(1));
        assert_eq!(Tries::default().next("empty", 0), None);
    }
}
