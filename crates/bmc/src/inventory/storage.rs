//! Disks: of storage controllers, of simple storage, or of the chassis.

use std::sync::atomic::AtomicUsize;

use engine::hardware::{Drive, Part};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::{DISKS_AT_LEAST, Round, read};
use crate::client::Care;
use crate::collection::Members;
use crate::error::Error;
use crate::resource::{Resource, View, same_uri};
use crate::system::RedfishSystem;

/// A controller with more links than this is a mistake or a storage array.
pub(super) const DRIVES_TO_WALK: usize = 64;

impl RedfishSystem {
    pub(super) async fn drives(&self, system: View<'_>, round: &Round) -> Result<Vec<Drive>, Error> {
        let storages = self.leniently(round, Part::Drives, self.members(system, "Storage").await)?;
        let storages = self.disks(round, storages).await?;
        let found: Vec<Vec<(Resource, Option<String>)>> = futures::stream::iter(storages)
            .map(|storage| async move { self.leniently(round, Part::Drives, self.drives_of(&storage, round).await) })
            .buffered(2)
            .try_collect()
            .await?;
        let mut drives = read::distinct_drives(found.into_iter().flatten());
        if drives.is_empty() && !round.has_put_off() {
            drives = self.leniently(round, Part::Drives, self.simple_drives(system, round).await)?;
        }
        if drives.is_empty() && !round.has_put_off() {
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
            if !round.may_read_disk() {
                return Ok(Vec::new());
            }
            let members = self.client.list(only, Care::Optional).await?;
            let drives = self.disks(round, members).await?;
            return Ok(drives.into_iter().map(|drive| (drive, controller.clone())).collect());
        }
        links.truncate(DRIVES_TO_WALK);
        let service = self.client.service().await?;
        let mut found: Vec<Resource> = read::whole_members(storage.view().list("/Drives"));
        if found.is_empty() && links.len() > 1 && service.expands_links() {
            let expanded = self.client.get_expanded(&storage.uri, Care::Attempt).await;
            found = match expanded {
                Ok(storage) => read::whole_members(storage.view().list("/Drives")),
                Err(error) if error.is_about_the_bmc() => return Err(error),
                // They are read one by one.
                Err(_) => Vec::new(),
            };
            if found.is_empty() {
                service.links_do_not_expand();
            }
        }
        links.retain(|link| !found.iter().any(|resource| same_uri(&resource.uri, link)));
        found.extend(self.disks_at(round, links).await?);
        Ok(found.into_iter().map(|drive| (drive, controller.clone())).collect())
    }

    /// The drives of a BMC that lists everything one by one: as many as a look may cost, the others at later looks.
    pub(super) async fn walk_drives(&self, system: View<'_>, round: &Round) -> Result<Vec<Drive>, Error> {
        // The list of storages comes first.
        let left = self.left(round).saturating_sub(1).max(DISKS_AT_LEAST);
        round.disks_left.get_or_init(|| Some(AtomicUsize::new(left)));
        self.drives(system, round).await
    }

    /// The members of a list of disks, or of what they hang on.
    pub(super) async fn disks(&self, round: &Round, members: Members) -> Result<Vec<Resource>, Error> {
        if round.disks_left.get().is_none() {
            return self.leniently(round, Part::Drives, self.bodies(round, Part::Drives, members).await);
        }
        self.disks_at(round, members.uris().map(str::to_owned).collect()).await
    }

    /// The disks at these places, one by one; what an earlier look has read is not read again.
    pub(super) async fn disks_at(&self, round: &Round, uris: Vec<String>) -> Result<Vec<Resource>, Error> {
        let found: Vec<Option<Resource>> = futures::stream::iter(uris)
            .map(|uri| async move {
                if let Some(known) = self.disks.get(&uri) {
                    return Ok(Some(known));
                }
                if !round.may_read_disk() {
                    return Ok(None);
                }
                let disk = self.client.get(&uri, Care::Optional).await.map(Some);
                let disk = self.leniently(round, Part::Drives, disk)?;
                if let Some(disk) = disk.as_ref().filter(|_| round.disks_left.get().is_some()) {
                    self.disks.put(&uri, disk);
                }
                Ok::<_, Error>(disk)
            })
            .buffered(2)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn simple_drives(&self, system: View<'_>, round: &Round) -> Result<Vec<Drive>, Error> {
        let storages = self.collection(round, Part::Drives, system, "SimpleStorage").await?;
        Ok(storages.iter().flat_map(read::simple_drives).collect())
    }
}
