//! Virtual media: which drives there are, what is in them, inserting and ejecting.

use std::time::Duration;

use engine::server::{self, Media};
use serde_json::{Map, Value, json};

use crate::choice::is_baseboard;
use crate::client::Care;
use crate::error::{Error, Refusal};
use crate::quirks::{InsertExtra, Quirks};
use crate::resource::{Resource, View, same_uri};
use crate::retry::NOT_READY;
use crate::system::{Known, RedfishSystem};

/// An iDRAC that is still ejecting answers 500 for some seconds.
const BUSY_TRIES: u32 = 3;
const BUSY_PAUSE: Duration = Duration::from_secs(3);
/// How often an insertion is sent in other forms, and how many drives are tried.
const FORMS: u32 = 5;
const DRIVES: usize = 4;

/// Switching remote media on takes a while.
const ENABLE_TRIES: u32 = 6;
const ENABLE_PAUSE: Duration = Duration::from_secs(5);

/// The virtual CD drives as they were seen.
pub(crate) struct Found {
    pub(crate) drives: Vec<Media>,
    /// Whether there are none because remote media are disabled.
    pub(crate) is_disabled: bool,
    /// Whether they are other servers' as well.
    pub(crate) is_shared: bool,
    /// By which schemes images are fetched, if by some only.
    pub(crate) schemes: Vec<String>,
}

/// AMI's switch for images from afar. While it is off there are no drives, or they refuse every image.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteMedia {
    pub(crate) is_disabled: bool,
    pub(crate) enable: Option<String>,
}

impl RemoteMedia {
    pub(crate) fn read(manager: View<'_>) -> Self {
        let status = ["/Oem/Ami/VirtualMedia/RMediaStatus", "/Oem/Ami/RMediaStatus"];
        let status = status.iter().find_map(|pointer| manager.text(pointer));
        Self {
            is_disabled: status.is_some_and(|status| status.eq_ignore_ascii_case("Disabled")),
            enable: manager.link("/Actions/Oem/#AMIVirtualMedia.EnableRMedia/target"),
        }
    }

    fn can_be_enabled(&self) -> bool {
        self.is_disabled && self.enable.is_some()
    }
}

/// The virtual CD drives of a system.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    collection: String,
    drives: Vec<Drive>,
}

/// One drive that can take an image.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drive {
    uri: String,
    id: String,
    insert: Option<String>,
    eject: Option<String>,
    etag: Option<String>,
    image: Option<String>,
    inserted: bool,
    /// How it takes images, if it states that.
    protocols: Vec<String>,
}

impl Drive {
    fn read(resource: &Resource) -> Self {
        let view = resource.view();
        // AMI shows the word None in an empty drive.
        let image = view.text("/Image").filter(|image| !is_no_image(image));
        Self {
            uri: resource.uri.clone(),
            id: resource.id(),
            insert: view.link("/Actions/#VirtualMedia.InsertMedia/target"),
            eject: view.link("/Actions/#VirtualMedia.EjectMedia/target"),
            etag: resource.etag.clone(),
            inserted: view.flag("/Inserted").unwrap_or(image.is_some()) && !says_empty(resource),
            image,
            protocols: view.texts("/Actions/#VirtualMedia.InsertMedia/TransferProtocolType@Redfish.AllowableValues"),
        }
    }

    fn media(&self) -> Media {
        Media { slot: self.id.clone(), image: self.image.clone(), inserted: self.inserted }
    }
}

impl RedfishSystem {
    /// The drives as they are.
    pub(crate) async fn look_at_media(&self) -> Result<Found, Error> {
        let known = self.ready_to_look().await?;
        let slots = self.read_slots(&known).await?;
        let is_shared = self.is_shared(&slots).await?;
        let known = self.known().unwrap_or(known);
        let mut drives: Vec<Media> = slots.drives.iter().map(Drive::media).collect();
        if drives.is_empty() && known.remote_media.can_be_enabled() {
            // They come when an image is to be inserted.
            drives.push(Media { slot: "remote media, switched off".into(), image: None, inserted: false });
        }
        let is_disabled = drives.is_empty() && known.remote_media.is_disabled;
        Ok(Found { drives, is_disabled, is_shared, schemes: schemes(&slots.drives, known.quirks) })
    }

    /// Enables remote media if the BMC reports them as disabled, and waits for the drives to appear.
    async fn enable_remote_media(&self, known: &Known) -> Result<Known, Error> {
        if !known.manager_was_read && known.media_of_manager.is_none() && known.slots.is_none() {
            // Finding the drives reads the manager.
            self.find_slots(known).await?;
        }
        let mut known = self.known().unwrap_or_else(|| known.clone());
        if known.remote_media.is_disabled {
            // Somebody may have enabled them since.
            self.read_manager(&known).await?;
            known = self.known().unwrap_or(known);
            if !known.remote_media.is_disabled {
                self.find_slots(&known).await?;
                known = self.known().unwrap_or(known);
            }
        }
        if !known.remote_media.is_disabled {
            return Ok(known);
        }
        let Some(target) = known.remote_media.enable.clone() else {
            return Err(self.unsupported(
                "take an image: remote media are switched off in its settings (RMediaStatus); switch them on there",
            ));
        };
        tracing::info!("remote media of {} are disabled; enabling them", self.client.origin());
        let answer = self.client.post(&target, &json!({"RMediaState": "Enable"})).await?;
        self.client.follow(answer).await?;
        self.update(|known| known.slots = None);
        for _ in 0..ENABLE_TRIES {
            tokio::time::sleep(ENABLE_PAUSE).await;
            let now = self.known().unwrap_or_else(|| known.clone());
            self.read_manager(&now).await?;
            let now = self.known().unwrap_or(now);
            if !now.remote_media.is_disabled && !self.find_slots(&now).await?.drives.is_empty() {
                return Ok(self.known().unwrap_or(now));
            }
        }
        Err(self.unsupported(
            "take an image: remote media are switched off in its settings (RMediaStatus) and stay so; switch them on there",
        ))
    }

    /// Drives that do not hang below the system are its manager's, and those of a manager of several servers are shared.
    async fn is_shared(&self, slots: &Slots) -> Result<bool, Error> {
        let Some(mut known) = self.known().filter(|_| !slots.drives.is_empty()) else { return Ok(false) };
        if is_below(&slots.collection, &known.uri) {
            return Ok(false);
        }
        if known.neighbours.is_none() {
            let systems = self.client.list(&self.client.service().await?.systems, Care::Optional).await?;
            let others = systems.uris().filter(|uri| !is_baseboard(uri) && !same_uri(uri, &known.uri)).count();
            self.update(|known| known.neighbours = Some(others));
            known = self.known().unwrap_or(known);
        }
        // Without another server, nothing is shared.
        if known.neighbours == Some(0) {
            return Ok(false);
        }
        if !known.manager_was_read {
            match self.read_manager(&known).await {
                // A manager that cannot be read may serve all of them.
                Err(error) if error.is_about_this_resource() => return Ok(true),
                read => read?,
            };
        }
        Ok(self.known().is_some_and(|known| known.manager_is_shared))
    }

    /// Whether neither the system nor its manager links virtual media, as switches and DPUs do not. Costs no request.
    pub(crate) fn lacks_media(&self) -> bool {
        self.known().is_some_and(|known| {
            let links = [&known.media_of_system, &known.media_of_manager];
            known.manager_was_read && known.managers.len() <= 1 && links.iter().all(|link| link.is_none())
        })
    }

    pub(crate) async fn insert(&self, image: &str) -> Result<(), Error> {
        let known = self.ready_to_act().await?;
        let known = self.enable_remote_media(&known).await?;
        let slots = match known.slots.clone() {
            Some(slots) => slots,
            None => self.find_slots(&known).await?,
        };
        let is_shared = self.is_shared(&slots).await?;
        let _turn = if is_shared { Some(self.client.media_turn().await) } else { None };
        let mut last = None;
        for drive in slots.drives.iter().take(DRIVES) {
            if is_shared {
                self.check_that_it_is_empty(drive, image).await?;
            }
            // Never skipped because the image seems to be in there already: an iDRAC shows what was ejected long ago.
            if drive.media().is_occupied() && !is_shared {
                self.eject(drive).await?;
            }
            match self.insert_into(drive, image, known.quirks, is_shared).await {
                Ok(()) => return Ok(()),
                // Cisco reserves drives for its console, OpenBMC lists drives that only a browser can fill.
                Err(error) if error.refusal().is_some_and(|refusal| matches!(refusal.status, 404 | 405 | 501)) => {
                    last = Some(self.refused(image, drive, known.quirks, &error));
                }
                Err(error) => return Err(self.refused(image, drive, known.quirks, &error)),
            }
        }
        Err(last.unwrap_or_else(|| {
            self.unsupported("take an image: it shows no virtual CD drive (a licence may be missing)")
        }))
    }

    /// Another server may run from the image in a shared drive. A caller who knows that none does ejects it first.
    async fn check_that_it_is_empty(&self, drive: &Drive, image: &str) -> Result<(), Error> {
        let now = Drive::read(&self.client.get(&drive.uri, Care::Needed).await?);
        if !now.media().is_occupied() {
            return Ok(());
        }
        let held = now.image.as_deref().map_or_else(|| "an image".into(), server::without_secrets);
        let said = format!(
            "its drive {} serves several servers and holds {held}, which is not ejected: another server may run from it",
            now.id
        );
        let image = server::without_secrets(image);
        Err(Error::MediaRefused { url: self.client.origin().to_owned(), image, said })
    }

    pub(crate) async fn eject_all(&self) -> Result<(), Error> {
        let known = self.ready_to_act().await?;
        let slots = self.read_slots(&known).await?;
        for drive in slots.drives.iter().filter(|drive| drive.media().is_occupied()) {
            self.eject(drive).await?;
        }
        for drive in self.drives_elsewhere(&slots).await?.iter().filter(|drive| drive.media().is_occupied()) {
            self.eject(drive).await?;
        }
        Ok(())
    }

    /// The drives of the manager, where those of the system are used: iDRAC 6 has both, and an earlier client may have used the
    /// others.
    async fn drives_elsewhere(&self, used: &Slots) -> Result<Vec<Drive>, Error> {
        let Some(known) = self.known() else { return Ok(Vec::new()) };
        let is_of_system = known.media_of_system.as_deref().is_some_and(|uri| same_uri(uri, &used.collection));
        if !is_of_system {
            return Ok(Vec::new());
        }
        if !known.manager_was_read && self.read_manager(&known).await.is_err() {
            return Ok(Vec::new());
        }
        // What is in the drives of a manager of several servers may be another server's.
        let known = self.known().filter(|known| !known.manager_is_shared);
        let Some(Known { media_of_manager: elsewhere, quirks, .. }) = known else { return Ok(Vec::new()) };
        // Supermicro's system links the drives of its manager.
        let Some(collection) = elsewhere.filter(|uri| !same_uri(uri, &used.collection)) else { return Ok(Vec::new()) };
        match self.client.list(&collection, Care::Optional).await {
            Ok(members) => {
                let mut found = self.client.bodies(members).await?;
                found.retain(|resource| is_usable(resource, quirks));
                Ok(found.iter().map(Drive::read).collect())
            }
            Err(error) if error.is_about_this_resource() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn read_slots(&self, known: &Known) -> Result<Slots, Error> {
        match known.slots.clone() {
            Some(slots) => self.refresh(known, slots).await,
            None => self.find_slots(known).await,
        }
    }

    async fn ready_to_look(&self) -> Result<Known, Error> {
        match self.known() {
            Some(known) => Ok(known),
            None => Ok(self.read_system().await?.0),
        }
    }

    /// Looks for drives: of the system first, then of its manager.
    async fn find_slots(&self, known: &Known) -> Result<Slots, Error> {
        if let Some(collection) = &known.media_of_system {
            let slots = self.slots_of(collection, known).await?;
            if !slots.drives.is_empty() {
                return Ok(slots);
            }
        }
        let mut collections: Vec<String> = known.media_of_manager.iter().cloned().collect();
        if collections.is_empty() {
            collections = self.media_of_managers(known).await?;
        }
        for collection in &collections {
            let slots = self.slots_of(collection, known).await?;
            if !slots.drives.is_empty() {
                return Ok(slots);
            }
        }
        Ok(self.remember(Slots { collection: String::new(), drives: Vec::new() }))
    }

    async fn media_of_managers(&self, known: &Known) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        match self.read_manager(known).await {
            Ok(manager) => found.extend(manager.view().link("/VirtualMedia")),
            Err(error) if error.refusal().is_some() || matches!(error, Error::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
        for uri in known.managers.iter().skip(1).take(2) {
            if let Ok(manager) = self.client.get(uri, Care::Optional).await {
                found.extend(manager.view().link("/VirtualMedia"));
            }
        }
        Ok(found)
    }

    async fn slots_of(&self, collection: &str, known: &Known) -> Result<Slots, Error> {
        let members = match self.client.list(collection, Care::Optional).await {
            Ok(members) => members,
            Err(error)
                if error
                    .refusal()
                    .is_some_and(|refusal| matches!(refusal.status, 400 | 403 | 404 | 405 | 500 | 501)) =>
            {
                tracing::debug!("no virtual media at {collection}: {error}");
                return Ok(self.remember(Slots { collection: collection.to_owned(), drives: Vec::new() }));
            }
            Err(error) => return Err(error),
        };
        let mut found = self.client.bodies(members).await?;
        let quirks = self.known().map_or(known.quirks, |known| known.quirks);
        found.retain(|resource| is_usable(resource, quirks));
        found.sort_by_key(|resource| rank(resource, quirks));
        let drives = found.iter().map(Drive::read).collect();
        Ok(self.remember(Slots { collection: collection.to_owned(), drives }))
    }

    /// Reads the drives again: all at once where that costs one request, else one by one.
    async fn refresh(&self, known: &Known, mut slots: Slots) -> Result<Slots, Error> {
        let seen = match self.read_drives(&slots).await {
            // A firmware update may move them.
            Err(error) if error.refusal().is_some_and(|refusal| refusal.status == 404) => {
                let found = self.find_slots(known).await?;
                // Drives that have disappeared come back when the BMC has started.
                if found.drives.is_empty() {
                    self.remember(slots);
                    return Err(error);
                }
                return Ok(found);
            }
            other => other?,
        };
        for drive in &mut slots.drives {
            if let Some(resource) = seen.iter().find(|resource| same_uri(&resource.uri, &drive.uri)) {
                *drive = Drive::read(resource);
            }
        }
        Ok(self.remember(slots))
    }

    async fn read_drives(&self, slots: &Slots) -> Result<Vec<Resource>, Error> {
        if slots.drives.len() > 1 && self.client.service().await?.expand().is_some() {
            let members = self.client.list(&slots.collection, Care::Needed).await?;
            return self.client.bodies(members).await;
        }
        let mut seen = Vec::new();
        for drive in slots.drives.iter().take(DRIVES) {
            seen.push(self.client.get(&drive.uri, Care::Needed).await?);
        }
        Ok(seen)
    }

    async fn insert_into(&self, drive: &Drive, image: &str, quirks: &Quirks, is_shared: bool) -> Result<(), Error> {
        let mut extras = quirks.insert_extras.to_vec();
        let (mut forms, mut busy, mut was_checked) = (0, 0, false);
        loop {
            let error = match self.send_insert(drive, image, &extras).await {
                Ok(()) => {
                    self.update_drive(&drive.uri, |drive| {
                        drive.image = Some(image.to_owned());
                        drive.inserted = true;
                        drive.etag = None;
                    });
                    return Ok(());
                }
                Err(error) => error,
            };
            let Some(refusal) = error.refusal() else { return Err(error) };
            if refusal.is_server_failure() && busy < BUSY_TRIES {
                busy += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
                continue;
            }
            forms += 1;
            if forms >= FORMS || matches!(refusal.status, 401 | 403 | 404 | 405 | 501) {
                return Err(error);
            }
            if let Some(extra) = wanted_extra(refusal, &extras) {
                extras.push(extra);
                continue;
            }
            if !was_checked {
                was_checked = true;
                let now = Drive::read(&self.client.get(&drive.uri, Care::Needed).await?);
                if now.inserted && now.image.is_some() && now.media().may_hold(image) {
                    return Ok(());
                }
                if now.media().is_occupied() && !is_shared {
                    self.eject(&now).await?;
                    continue;
                }
            }
            if refusal.problem.is_not_ready() {
                tokio::time::sleep(NOT_READY.ceiling(forms)).await;
                continue;
            }
            match [InsertExtra::Protocol, InsertExtra::Method].into_iter().find(|extra| !extras.contains(extra)) {
                // Without a reason the missing parameter can only be guessed (Nokia, xFusion).
                Some(extra) if !refusal.problem.is_specific() => extras.push(extra),
                _ => return Err(error),
            }
        }
    }

    async fn send_insert(&self, drive: &Drive, image: &str, extras: &[InsertExtra]) -> Result<(), Error> {
        let mut body = Map::from_iter([("Image".to_owned(), json!(image))]);
        for extra in extras {
            match extra {
                InsertExtra::Protocol => {
                    body.insert("TransferProtocolType".into(), json!(protocol_of(image)));
                }
                InsertExtra::Method => {
                    body.insert("TransferMethod".into(), json!("Stream"));
                }
                InsertExtra::Credentials => {
                    body.insert("UserName".into(), json!("none"));
                    body.insert("Password".into(), json!("none"));
                }
            }
        }
        let answer = if let Some(target) = &drive.insert {
            // Nothing but the image: Supermicro X11 and X12 refuse Inserted and WriteProtected.
            self.client.post_once(target, &Value::Object(body)).await?
        } else {
            body.insert("Inserted".into(), json!(true));
            body.insert("WriteProtected".into(), json!(true));
            self.client.patch(&drive.uri, &Value::Object(body), drive.etag.as_deref()).await?
        };
        self.client.follow(answer).await
    }

    async fn eject(&self, drive: &Drive) -> Result<(), Error> {
        let mut drive = drive.clone();
        // Supermicro shows the action only while something is in the drive.
        if drive.insert.is_some() && drive.eject.is_none() {
            drive = Drive::read(&self.client.get(&drive.uri, Care::Needed).await?);
        }
        let mut attempt = 0;
        loop {
            attempt += 1;
            let sent = match (&drive.insert, &drive.eject) {
                // iLO refuses an empty body.
                (_, Some(target)) => self.client.post(target, &json!({})).await,
                (None, None) => {
                    let body = json!({"Image": null, "Inserted": false});
                    self.client.patch(&drive.uri, &body, drive.etag.as_deref()).await
                }
                (Some(_), None) if !drive.media().is_occupied() => return self.emptied(&drive.uri),
                (Some(_), None) => return Err(self.unsupported(format!("eject what is in its drive {}", drive.id))),
            };
            let outcome = match sent {
                Ok(answer) => self.client.follow(answer).await,
                Err(error) => Err(error),
            };
            let Err(error) = outcome else { return self.emptied(&drive.uri) };
            let Some(refusal) = error.refusal() else { return Err(error) };
            drive = Drive::read(&self.client.get(&drive.uri, Care::Needed).await?);
            if !drive.media().is_occupied() {
                return self.emptied(&drive.uri);
            }
            if !refusal.is_server_failure() || attempt >= BUSY_TRIES {
                return Err(error);
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "it ends an ejection, which can fail")]
    fn emptied(&self, uri: &str) -> Result<(), Error> {
        self.update_drive(uri, |drive| {
            drive.image = None;
            drive.inserted = false;
            drive.etag = None;
        });
        Ok(())
    }

    fn update_drive(&self, uri: &str, change: impl FnOnce(&mut Drive)) {
        self.update(|known| {
            if let Some(drive) =
                known.slots.iter_mut().flat_map(|slots| &mut slots.drives).find(|drive| drive.uri == uri)
            {
                change(drive);
            }
        });
    }

    /// That there are none is not remembered: a BMC that has just started shows none for a while.
    fn remember(&self, slots: Slots) -> Slots {
        self.update(|known| known.slots = Some(slots.clone()).filter(|slots| !slots.drives.is_empty()));
        slots
    }

    fn refused(&self, image: &str, drive: &Drive, quirks: &Quirks, error: &Error) -> Error {
        let said = match error {
            Error::Refused(refusal) if !matches!(refusal.status, 401 | 403 | 408 | 429 | 502 | 503 | 504) => {
                format!("{} (status {})", refusal.problem, refusal.status)
            }
            Error::TaskFailed { said, .. } => said.clone(),
            // Its message may quote the URL.
            Error::Refused(refusal) => {
                let shown = server::without_secrets(image);
                let mut refusal = refusal.clone();
                refusal.problem = refusal.problem.map_sentence(|text| text.replace(image, &shown));
                return Error::Refused(refusal);
            }
            other => return other.clone(),
        };
        let shown = server::without_secrets(image);
        let said = said.replace(image, &shown);
        let hint = hint(image, &drive.protocols, quirks).map(|hint| format!(". {hint}")).unwrap_or_default();
        Error::MediaRefused { url: self.client.origin().to_owned(), image: shown, said: format!("{said}{hint}") }
    }
}

fn is_below(uri: &str, owner: &str) -> bool {
    let owner = owner.trim_end_matches('/');
    uri.get(..owner.len()).is_some_and(|start| start.eq_ignore_ascii_case(owner)) && uri[owner.len()..].starts_with('/')
}

/// A drive for CDs that takes an image by itself, by action or by change.
fn is_usable(resource: &Resource, quirks: &Quirks) -> bool {
    let view = resource.view();
    let kinds = view.texts("/MediaTypes");
    let is_cd = if kinds.is_empty() {
        resource.id().to_ascii_lowercase().contains("cd")
    } else {
        kinds.iter().any(|kind| kind.eq_ignore_ascii_case("CD") || kind.eq_ignore_ascii_case("DVD"))
    };
    let takes_images = view.link("/Actions/#VirtualMedia.InsertMedia/target").is_some()
        || quirks.media_by_patch
        || !view.has("/Actions");
    let is_permitted = !quirks.only_these_slots || quirks.slots.contains(&resource.id().as_str());
    is_cd && takes_images && is_permitted
}

/// A word for "nothing" in place of an image.
fn is_no_image(shown: &str) -> bool {
    ["none", "null", "n/a", "-"].iter().any(|word| shown.eq_ignore_ascii_case(word))
}

/// Whether a drive states explicitly that there is no image.
fn says_empty(resource: &Resource) -> bool {
    resource.view().text("/Image").is_some_and(|image| is_no_image(&image))
}

/// Preferred ids first, then drives with an action, then in the BMC's order.
fn rank(resource: &Resource, quirks: &Quirks) -> (usize, bool) {
    let id = resource.id();
    let preferred = quirks.slots.iter().position(|start| id.starts_with(start)).unwrap_or(quirks.slots.len());
    (preferred, !resource.view().has("/Actions/#VirtualMedia.InsertMedia"))
}

/// The parameter that is missing, according to the BMC.
fn wanted_extra(refusal: &Refusal, extras: &[InsertExtra]) -> Option<InsertExtra> {
    let problem = &refusal.problem;
    let named = [
        (InsertExtra::Protocol, problem.is_about("TransferProtocolType")),
        (InsertExtra::Method, problem.is_about("TransferMethod")),
        (InsertExtra::Credentials, problem.is_about("UserName") || problem.is_about("Password")),
    ];
    named.into_iter().find(|(extra, is_wanted)| *is_wanted && !extras.contains(extra)).map(|(extra, _)| extra)
}

fn protocol_of(image: &str) -> String {
    match image.split_once("://").map(|(scheme, _)| scheme.to_ascii_uppercase()).as_deref() {
        Some("SMB" | "CIFS") => "CIFS".into(),
        Some(scheme) => scheme.to_owned(),
        None => "HTTP".into(),
    }
}

/// By which schemes images are fetched, where that is certain: firmware of which it is known, and drives that list HTTPS and not
/// HTTP. Other lists are incomplete.
fn schemes(drives: &[Drive], quirks: &Quirks) -> Vec<String> {
    let lists =
        |drive: &Drive, protocol: &str| drive.protocols.iter().any(|listed| listed.eq_ignore_ascii_case(protocol));
    let is_strict = |drive: &&Drive| lists(drive, "HTTPS") && !lists(drive, "HTTP");
    match drives.first().filter(is_strict) {
        Some(drive) => drive.protocols.iter().map(|protocol| protocol.to_ascii_lowercase()).collect(),
        None => quirks.image_schemes.iter().map(|scheme| (*scheme).to_owned()).collect(),
    }
}

/// What is known to go wrong with such a URL.
fn hint(image: &str, protocols: &[String], quirks: &Quirks) -> Option<String> {
    let scheme = image.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
    let protocol = protocol_of(image);
    // Only shown after a refusal: some BMCs take more than they list.
    if !protocols.is_empty() && !protocols.iter().any(|listed| listed.eq_ignore_ascii_case(&protocol)) {
        return Some(format!(
            "This BMC takes images by {} only, and this one is offered by {protocol}",
            protocols.join(", ")
        ));
    }
    if !quirks.image_schemes.is_empty() && !quirks.image_schemes.contains(&scheme.as_str()) {
        return Some(format!("This firmware only takes images from {}", quirks.image_schemes.join(" and ")));
    }
    if image.contains(['?', '&', '=']) {
        return Some("Many BMCs refuse URLs with a query (?, & or =)".into());
    }
    if !image.to_ascii_lowercase().ends_with(".iso") {
        return Some("Many BMCs want the URL to end in .iso".into());
    }
    (image.len() > 255).then(|| "Many BMCs refuse URLs of more than 255 characters".into())
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
