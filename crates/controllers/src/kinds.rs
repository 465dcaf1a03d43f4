//! Finds the versions in which a kind is served: not every kind of a group is served in every version of it.

use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiCapabilities, ApiResource};
use kube::error::DiscoveryError;
use kube::{Client, Error};

/// A kind in a version that is served.
pub(crate) type Kind = (ApiResource, ApiCapabilities);

/// Looks a kind up in all served versions of its group: first in the given version, then in the one that the API server prefers.
/// `None` if all of them could be read and none has it.
pub(crate) async fn find(
    client: &Client,
    group: &str,
    kind: &str,
    referred_by: Option<&str>,
) -> Result<Option<Kind>, Error> {
    if let Some(version) = referred_by
        && let Ok(Some(found)) = find_in(client, group, version, kind).await
    {
        return Ok(Some(found));
    }
    let mut failed = None;
    for version in versions(client, group).await? {
        match find_in(client, group, &version, kind).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// All versions of a group that are served, the preferred one first.
async fn versions(client: &Client, group: &str) -> Result<Vec<String>, Error> {
    if group.is_empty() {
        return Ok(client.list_core_api_versions().await?.versions);
    }
    let groups = client.list_api_groups().await?.groups;
    let Some(group) = groups.into_iter().find(|served| served.name == group) else { return Ok(Vec::new()) };
    let preferred = group.preferred_version.map(|preferred| preferred.version);
    let mut versions: Vec<_> = group.versions.into_iter().map(|served| served.version).collect();
    versions.sort_by_key(|version| Some(version) != preferred.as_ref());
    Ok(versions)
}

async fn find_in(client: &Client, group: &str, version: &str, kind: &str) -> Result<Option<Kind>, Error> {
    match discovery::pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await {
        Ok(found) => Ok(Some(found)),
        Err(Error::Discovery(DiscoveryError::MissingKind(_))) => Ok(None),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
