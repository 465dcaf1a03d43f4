//! Disks: of storage controllers, of simple storage, or of the chassis.

use engine::hardware::{Drive, Part};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::{Round, read};
use crate::client::Care;
use crate::error::Error;
use crate::resource::{Resource, View, same_uri};
use crate::system::RedfishSystem;

/// A controller with more links than this is a mistake or a storage array.
pub(super) const DRIVES_TO_WALK: usize = 64;

impl RedfishSystem {
    pub(super) async fn drives(&self, system: View<'_>, round: &Round) -> Result<Vec<Drive>, Error> {
        let storages = self.collection(round, Part::Drives, system, "Storage").await;
        let storages = self.leniently(round, Part::Drives, storages)?;
        let found: Vec<Vec<(Resource, Option<String>)>> = futures::stream::iter(storages)
            .map(|storage| async move { self.leniently(round, Part::Drives, self.drives_of(&storage, round).await) })
            .buffered(2)
            .try_collect()
            .await?;
        let mut drives = read::distinct_drives(found.into_iter().flatten());
        if drives.is_empty() {
            drives = self.leniently(round, Part::Drives, self.simple_drives(system, round).await)?;
        }
        if drives.is_empty() {
            let found = self.drives_in_chassis(round).await?;
            drives = read::distinct_drives(found.into_iter().map(|drive| (drive, None)));
        }
        Ok(drives)
    }

    /// The drives of one storage: in one request where links inside a resource can be expanded, else one by one.
    async fn drives_of(&self, storage: &Resource, round: &Round) -> Result<Vec<(Resource, Option<String>)>, Error> {
        let controller = storage.view().text("/Name").or_else(|| Some(storage.id()));
        let mut links = storage.view().links("/Drives");
        // Newer services keep the drives in a collection.
        if let ([only], Some(Value::Object(_))) = (links.as_slice(), storage.body.get("Drives")) {
            let members = self.client.list(only, Care::Optional).await?;
            let drives = self.bodies(round, Part::Drives, members).await?;
            return Ok(drives.into_iter().map(|drive| (drive, controller.clone())).collect());
        }
        links.truncate(DRIVES_TO_WALK);
        let service = self.client.service().await?;
        let mut found: Vec<Resource> = read::whole_members(storage.view().list("/Drives"));
        if found.is_empty() && links.len() > 1 && service.expands_links() {
            let expanded = self.client.get_expanded(&storage.uri, Care::Attempt).await;
            found = read::whole_members(self.leniently(round, Part::Drives, expanded)?.view().list("/Drives"));
            if found.is_empty() {
                service.links_do_not_expand();
            }
        }
        links.retain(|link| !found.iter().any(|resource| same_uri(&resource.uri, link)));
        let rest: Vec<Option<Resource>> = futures::stream::iter(links)
            .map(|link| async move {
                self.leniently(round, Part::Drives, self.client.get(&link, Care::Optional).await.map(Some))
            })
            .buffered(2)
            .try_collect()
            .await?;
        found.extend(rest.into_iter().flatten());
        Ok(found.into_iter().map(|drive| (drive, controller.clone())).collect())
    }

    async fn simple_drives(&self, system: View<'_>, round: &Round) -> Result<Vec<Drive>, Error> {
        let storages = self.collection(round, Part::Drives, system, "SimpleStorage").await?;
        Ok(storages.iter().flat_map(read::simple_drives).collect())
    }
}
