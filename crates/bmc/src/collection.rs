//! Members of a collection: expanded where that works, walked where not; one broken member spoils nothing.

use std::collections::HashSet;

use futures::StreamExt as _;
use serde_json::Value;

use crate::client::{Care, Client};
use crate::error::Error;
use crate::resource::{Resource, View};

/// A BMC that pages on and on is not followed for ever.
const PAGES: usize = 50;
const MEMBERS: usize = 2048;

/// What a collection holds.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// With body, or only a link when `body` is null.
    entries: Vec<Resource>,
    /// Members that had not even a link.
    nameless: usize,
    /// Whether not all pages were read, or one of them was no list.
    is_cut: bool,
}

/// The members of a collection that could be read.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    pub(crate) found: Vec<Resource>,
    /// Listed, and always refused.
    pub(crate) lacking: usize,
    /// Listed, and not to be had now.
    pub(crate) unread: usize,
}

impl Members {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn uris(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.uri.as_str())
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.entries.retain(|entry| keep(&entry.uri));
    }

    /// Keeps the first ones.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
    }

    /// Whether there may be more members than are known.
    pub(crate) fn is_partial(&self) -> bool {
        self.nameless > 0 || self.is_cut
    }

    /// The bodies that are here already.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Resource> {
        self.entries.iter().filter(|entry| !entry.body.is_null())
    }
}

impl Client {
    /// Lists a collection, expanded where the BMC can.
    pub(crate) async fn list(&self, uri: &str, care: Care) -> Result<Members, Error> {
        if let Some(query) = self.service().await?.expand() {
            match self.list_pages(&with_query(uri, query), Care::Attempt).await {
                Ok(members) => {
                    if members.len() + members.nameless > 0 && members.bodies().next().is_none() {
                        tracing::debug!(
                            "{} announces $expand but ignores it; reading the members one by one",
                            self.origin()
                        );
                        self.service().await?.expand_does_not_work();
                    }
                    // Expanded to bodies that do not say where they are from.
                    if members.nameless == 0 {
                        return Ok(members);
                    }
                }
                // Refused with the query, or choked on it: it may work without. What is missing is so in any form, but for what
                // must be there.
                Err(error)
                    if error.refusal().is_some_and(|refusal| refusal.status != 404 || care == Care::Needed)
                        || is_choked(&error) =>
                {
                    let plain = self.list_pages(uri, care).await?;
                    tracing::debug!(
                        "{} announces $expand but fails ({error}); reading the members one by one",
                        self.origin()
                    );
                    let is_final = error.refusal().is_some_and(|refusal| !refusal.is_server_failure());
                    let service = self.service().await?;
                    if is_final {
                        service.expand_does_not_work();
                    } else {
                        service.expand_failed();
                    }
                    return Ok(plain);
                }
                Err(error) => return Err(error),
            }
        }
        self.list_pages(uri, care).await
    }

    /// Reads the members that have no body yet; members that the BMC cannot serve are left out.
    pub(crate) async fn bodies(&self, members: Members) -> Result<Vec<Resource>, Error> {
        let (found, errors) = self.read_members(members, Care::Optional).await;
        match errors.into_iter().find(|error| !error.is_about_this_resource()) {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// Reads the members that have no body yet; returns how many are listed and do not exist, and how many could not be read.
    pub(crate) async fn bodies_of(&self, members: Members) -> Result<Bodies, Error> {
        let (found, errors) = self.read_members(members, Care::Optional).await;
        let (mut lacking, mut unread) = (0, 0);
        for error in errors {
            match error {
                error if error.is_about_the_bmc() => return Err(error),
                error if error.says_it_is_missing() => lacking += 1,
                _ => unread += 1,
            }
        }
        Ok(Bodies { found, lacking, unread })
    }

    /// Reads the members that have no body yet, and returns why some could not be read.
    pub(crate) async fn read_members(&self, members: Members, care: Care) -> (Vec<Resource>, Vec<Error>) {
        let total = members.len();
        let read: Vec<Result<Resource, Error>> = futures::stream::iter(members.entries)
            .map(|entry| async move { if entry.body.is_null() { self.get(&entry.uri, care).await } else { Ok(entry) } })
            .buffered(2)
            .collect()
            .await;
        let (mut found, mut errors) = (Vec::with_capacity(total), Vec::new());
        for member in read {
            match member {
                Ok(resource) => found.push(resource),
                Err(error) => {
                    tracing::debug!("one of {total} members skipped: {error}");
                    errors.push(error);
                }
            }
        }
        (found, errors)
    }

    async fn list_pages(&self, uri: &str, care: Care) -> Result<Members, Error> {
        let mut members = Members::default();
        let mut page = Some(uri.to_owned());
        let mut turned: Vec<String> = Vec::new();
        let mut listed: HashSet<String> = HashSet::new();
        while let Some(uri) = page.take().filter(|uri| !turned.contains(uri)) {
            if turned.len() >= PAGES {
                members.is_cut = true;
                break;
            }
            let mut resource = self.get(&uri, care).await?;
            page = next_page(&resource.body);
            members.is_cut |= !is_list(&resource.body);
            turned.push(uri);
            for member in take_members(&mut resource.body) {
                if members.entries.len() >= MEMBERS {
                    tracing::warn!(
                        "a collection of {} has more than {MEMBERS} members; the rest is left out",
                        self.origin()
                    );
                    members.is_cut = true;
                    return Ok(members);
                }
                match entry(member) {
                    // A page may repeat what stood on the one before.
                    Some(entry) if !listed.insert(entry.uri.trim_end_matches('/').to_ascii_lowercase()) => {}
                    Some(entry) => members.entries.push(entry),
                    None => members.nameless += 1,
                }
            }
        }
        Ok(members)
    }
}

fn next_page(body: &Value) -> Option<String> {
    ["/Members@odata.nextLink", "/@odata.nextLink"].iter().find_map(|pointer| View(body).link(pointer))
}

/// Old services keep them elsewhere.
const MEMBERS_AT: [&str; 3] = ["/Members", "/Links/Members", "/Items"];

/// Whether it lists members, be it none.
fn is_list(body: &Value) -> bool {
    MEMBERS_AT.iter().any(|pointer| View(body).has(pointer))
}

fn take_members(body: &mut Value) -> Vec<Value> {
    for pointer in MEMBERS_AT {
        if let Some(Value::Array(members)) = body.pointer_mut(pointer).map(Value::take) {
            return members;
        }
    }
    Vec::new()
}

/// A member with its body, if that is complete (AMI expands to fragments without `Id` or `Name`, which every resource must have),
/// else its link.
fn entry(member: Value) -> Option<Resource> {
    let view = View(&member);
    let is_whole = view.text("/Id").is_some() && view.has("/Name") && !view.has("/@Message.ExtendedInfo");
    let resource = Resource::embedded(member)?;
    Some(if is_whole { resource } else { Resource { uri: resource.uri, ..Resource::default() } })
}

fn with_query(uri: &str, query: &str) -> String {
    let separator = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{separator}{query}")
}

fn is_choked(error: &Error) -> bool {
    matches!(error, Error::BadAnswer { .. } | Error::Unreachable { .. })
}

impl Client {
    /// Reads a resource with the resources that it links to in place of the links, where the BMC can.
    pub(crate) async fn get_expanded(&self, uri: &str, care: Care) -> Result<Resource, Error> {
        match self.service().await?.expand() {
            Some(query) => self.get(&with_query(uri, query), care).await,
            None => self.get(uri, care).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nvidia_dpu_has_null_members_and_old_services_keep_them_elsewhere() {
        assert!(take_members(&mut json!({"Members": null})).is_empty());
        assert!(take_members(&mut json!({"Members": "x"})).is_empty());
        assert_eq!(take_members(&mut json!({"Links": {"Members": [1]}})).len(), 1);
        for list in [json!({"Members": null}), json!({"Members": []}), json!({"Links": {"Members": []}})] {
            assert!(is_list(&list), "{list}");
        }
        assert!(!is_list(&json!({"error": {"code": "Base.1.8.GeneralError"}})));
    }

    #[test]
    fn ami_expands_to_fragments_that_are_only_taken_as_links() {
        assert!(entry(json!({"@odata.id": "/a", "Status": {}})).unwrap().body.is_null());
        assert!(entry(json!({"@odata.id": "/a", "Id": "a", "Status": {}})).unwrap().body.is_null());
        let failed = json!({"@odata.id": "/a", "Id": "a", "Name": "A", "@Message.ExtendedInfo": []});
        assert!(entry(failed).unwrap().body.is_null());
        assert!(!entry(json!({"@odata.id": "/a", "Id": "a", "Name": ""})).unwrap().body.is_null(), "iLO");
        assert!(entry(json!({"Id": "a"})).is_none());
    }
}
