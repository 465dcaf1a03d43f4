//! Booting the virtual CD by attributes of the manager: where the boot override's `Cd` means the physical drive (Dell).

use engine::server::{BootOverride, BootTarget, Persistence, Scope};
use serde_json::{Map, Value, json};

use crate::client::Care;
use crate::error::Error;
use crate::quirks::{BootAttributes, VirtualCd};
use crate::resource::{Resource, View, last_segment};
use crate::system::{Known, RedfishSystem};

/// What is known of the attributes of one manager.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttributeBoot {
    uri: Option<String>,
    /// Whether something is armed there; `None` before it was read. At rest it is not read again.
    is_armed: Option<bool>,
}

impl AttributeBoot {
    pub(crate) fn learn(&mut self, manager: &Resource) {
        let lists = manager.view().links("/Links/Oem/Dell/DellAttributes");
        // One list each of the iDRAC, the system and the lifecycle controller.
        let own = lists.into_iter().find(|uri| last_segment(uri).to_ascii_lowercase().starts_with("idrac"));
        self.uri = Some(own.unwrap_or_else(|| format!("{}/Attributes", manager.uri.trim_end_matches('/'))));
    }
}

impl RedfishSystem {
    /// What the attributes boot next, on firmware that boots a virtual CD that way.
    pub(crate) async fn armed_by_attributes(&self, scope: Scope) -> Result<Option<BootOverride>, Error> {
        let Some(known) = self.known() else { return Ok(None) };
        let is_settled = known.attributes.is_armed == Some(false) && scope != Scope::Boot;
        if is_settled || !matches!(known.quirks.virtual_cd, VirtualCd::Attributes(_)) {
            return Ok(None);
        }
        let known = self.ready_to_act().await?;
        let Some(form) = known.quirks.boot_attributes(&known.facts) else {
            self.update(|known| known.attributes.is_armed = Some(false));
            return Ok(None);
        };
        let found = match &known.attributes.uri {
            Some(uri) => self.client.get(uri, Care::Optional).await,
            None => Err(self.unsupported("name the attributes of its manager")),
        };
        let armed = match found {
            Ok(attributes) => form.read(attributes.view()),
            Err(error) if error.is_about_this_resource() => {
                tracing::debug!("cannot read the boot attributes of {}: {error}", self.client.origin());
                None
            }
            Err(error) => return Err(error),
        };
        self.update(|known| known.attributes.is_armed = Some(armed.is_some()));
        Ok(armed)
    }

    /// Arms the virtual CD, where that is done by attributes; `false` where it is not.
    pub(crate) async fn arm_by_attributes(&self, known: &Known, wish: &BootOverride) -> Result<bool, Error> {
        if let (VirtualCd::Impossible(why), BootTarget::Cd) = (known.quirks.virtual_cd, &wish.target) {
            return Err(self.unsupported(why));
        }
        let (Some(form), BootTarget::Cd) = (known.quirks.boot_attributes(&known.facts), &wish.target) else {
            return Ok(false);
        };
        let once = if wish.persistence == Persistence::Once { "Enabled" } else { "Disabled" };
        // Before it is sent: if the answer is lost, the next look must still look there.
        self.update(|known| known.attributes.is_armed = Some(true));
        self.write_attributes(known, &[(form.once, once), (form.device, form.cd)]).await?;
        Ok(true)
    }

    /// Clears what the attributes would boot next. Returns `true` if nothing else is armed either.
    pub(crate) async fn disarm_attributes(&self, known: &Known) -> Result<bool, Error> {
        let Some(form) = known.quirks.boot_attributes(&known.facts) else { return Ok(false) };
        if self.armed_by_attributes(Scope::Boot).await?.is_some() {
            self.write_attributes(known, &[(form.once, "Disabled"), (form.device, form.nothing)]).await?;
            self.update(|known| known.attributes.is_armed = Some(false));
        }
        let (known, _) = self.read_system().await?;
        let is_clear = known.boot.as_override(known.quirks).is_none_or(|boot| boot.is_clear());
        Ok(is_clear && self.pending_boot(&known).await?.is_none())
    }

    async fn write_attributes(&self, known: &Known, attributes: &[(&str, &str)]) -> Result<(), Error> {
        let Some(uri) = &known.attributes.uri else {
            return Err(self.unsupported("name the attributes of its manager, by which a virtual CD is booted"));
        };
        let values: Map<String, Value> =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let answer = self.client.patch(uri, &json!({"Attributes": values}), None).await?;
        self.client.follow(answer).await
    }
}

impl BootAttributes {
    fn read(&self, attributes: View<'_>) -> Option<BootOverride> {
        let value = |name: &str| attributes.text(&format!("/Attributes/{name}"));
        // "Once" stays enabled when nothing is armed: only the device shows it.
        let device = value(self.device).filter(|device| device != self.nothing)?;
        let target = match device.as_str() {
            device if device == self.cd => BootTarget::Cd,
            "PXE" => BootTarget::Pxe,
            "HDD" => BootTarget::Hdd,
            "BIOS" => BootTarget::BiosSetup,
            _ => BootTarget::Other(device),
        };
        let persistence =
            if value(self.once).as_deref() == Some("Enabled") { Persistence::Once } else { Persistence::Continuous };
        Some(BootOverride { target, persistence, mode: None, http_uri: None })
    }
}
