//! The boot override: three shapes of payload, two places to write to, and as many ways to end it.

use engine::server::{BootMode, BootOverride, BootTarget, Persistence};
use serde_json::{Map, Value, json};

use crate::client::Care;
use crate::error::{Error, Refusal};
use crate::quirks::{BootPayload, ClearForm, Quirks};
use crate::resource::View;
use crate::system::{Known, RedfishSystem};

const TARGET: &str = "BootSourceOverrideTarget";
const ENABLED: &str = "BootSourceOverrideEnabled";
const MODE: &str = "BootSourceOverrideMode";
const URI: &str = "HttpBootUri";

/// What a system shows about its boot override.
#[derive(Debug, Clone, Default)]
pub(crate) struct BootView {
    target: Option<String>,
    enabled: Option<String>,
    mode: Option<String>,
    http_uri: Option<String>,
    allowed: Vec<String>,
}

/// What the settings object of a system says about booting.
#[derive(Debug, Clone)]
pub(crate) struct SettingsBoot {
    /// Which of our properties can be written there.
    properties: Vec<&'static str>,
    etag: Option<String>,
    view: BootView,
}

impl BootView {
    pub(crate) fn read(system: View<'_>) -> Self {
        Self {
            target: system.text("/Boot/BootSourceOverrideTarget"),
            enabled: system.text("/Boot/BootSourceOverrideEnabled"),
            mode: system.text("/Boot/BootSourceOverrideMode"),
            // sushy shows the word None.
            http_uri: system.text("/Boot/HttpBootUri").filter(|uri| uri != "None"),
            allowed: system.texts("/Boot/BootSourceOverrideTarget@Redfish.AllowableValues"),
        }
    }

    pub(crate) fn as_override(&self, quirks: &Quirks) -> Option<BootOverride> {
        if self.target.is_none() && self.enabled.is_none() {
            return None;
        }
        let target = match self.target.as_deref() {
            None | Some("None") => BootTarget::None,
            Some(word) if quirks.cd_words.contains(&word) => BootTarget::Cd,
            Some("Pxe") => BootTarget::Pxe,
            Some("Cd") => BootTarget::Cd,
            Some("Hdd") => BootTarget::Hdd,
            Some("Usb") => BootTarget::Usb,
            Some("UefiHttp") => BootTarget::UefiHttp,
            Some("BiosSetup") => BootTarget::BiosSetup,
            Some(other) => BootTarget::Other(other.to_owned()),
        };
        let persistence = match self.enabled.as_deref() {
            Some("Once") => Persistence::Once,
            Some("Continuous") => Persistence::Continuous,
            _ => Persistence::Disabled,
        };
        let mode = match self.mode.as_deref() {
            Some("UEFI") => Some(BootMode::Uefi),
            Some("Legacy") => Some(BootMode::Legacy),
            _ => None,
        };
        Some(BootOverride { target, persistence, mode, http_uri: self.http_uri.clone() })
    }
}

/// The properties of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Payload(Vec<(&'static str, Value)>);

impl Payload {
    fn new(target: &str, enabled: &str) -> Self {
        Self(vec![(TARGET, json!(target)), (ENABLED, json!(enabled))])
    }

    fn and(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.0.extend(value.map(|value| (name, json!(value))));
        self
    }

    fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(property, _)| *property != name).cloned().collect())
    }

    /// Only, or all but, these properties, as the body of a PATCH.
    fn body(&self, keep: impl Fn(&str) -> bool) -> Option<Value> {
        let boot: Map<String, Value> = self
            .0
            .iter()
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        (!boot.is_empty()).then(|| json!({"Boot": boot}))
    }
}

impl RedfishSystem {
    pub(crate) async fn override_boot(&self, wish: &BootOverride) -> Result<(), Error> {
        if wish.persistence == Persistence::Disabled || wish.target == BootTarget::None {
            return self.end_override().await;
        }
        let known = self.ready_to_act().await?;
        if self.arm_by_attributes(&known, wish).await? {
            return Ok(());
        }
        let known = self.with_settings(known).await?;
        let boot = known.effective_boot();
        let target = target_word(&wish.target, &boot.allowed, known.quirks).map_err(|what| self.unsupported(what))?;
        let mode = wish.mode.map(mode_word);
        let wanted =
            shaped(known.quirks.boot_payload, &target, enabled_word(wish.persistence), mode, boot.mode.as_deref());
        let wanted = wanted.and(URI, wish.http_uri.as_deref());
        let full = Payload::new(&target, enabled_word(wish.persistence))
            .and(MODE, Some(mode.or(boot.mode.as_deref()).unwrap_or("UEFI")))
            .and(URI, wish.http_uri.as_deref());
        let mut shapes = vec![wanted.clone(), wanted.without(MODE), full];
        // XCC knows no Continuous, others know nothing else. Who looks back sees which it became: to be set again before
        // each start, or to be taken back after the first.
        let other = if wish.persistence == Persistence::Continuous { "Once" } else { "Continuous" };
        shapes.push(
            shaped(known.quirks.boot_payload, &target, other, mode, boot.mode.as_deref())
                .and(URI, wish.http_uri.as_deref()),
        );
        match self.try_shapes(&known, shapes).await {
            Err(error)
                if wish.http_uri.is_some() && error.refusal().is_some_and(|refusal| refusal.problem.is_about(URI)) =>
            {
                Err(self.unsupported(format!("be given the URI of an HTTP boot; let DHCP give it ({error})")))
            }
            other => other,
        }
    }

    pub(crate) async fn end_override(&self) -> Result<(), Error> {
        let known = self.ready_to_act().await?;
        if self.disarm_attributes(&known).await? {
            return Ok(());
        }
        let known = self.with_settings(self.known().unwrap_or(known)).await?;
        let boot = known.effective_boot();
        let payload = |target: &str, enabled: &str| {
            shaped(known.quirks.boot_payload, target, enabled, None, boot.mode.as_deref())
        };
        let none = payload("None", "Disabled");
        let pxe = payload("Pxe", "Disabled");
        let alone = payload("None", "Disabled").without(TARGET).without(MODE);
        let disk = [payload("Hdd", "Continuous"), payload("Hdd", "Once")];
        let shapes = match known.quirks.clear {
            ClearForm::TargetNone => vec![none, alone, pxe],
            ClearForm::TargetPxe => vec![pxe, alone, none],
            ClearForm::Disk => Vec::new(),
        };
        self.try_shapes(&known, shapes.into_iter().chain(disk).collect()).await
    }

    /// The override that waits in the settings object; one read, and only where there is one for booting.
    pub(crate) async fn pending_boot(&self, known: &Known) -> Result<Option<BootOverride>, Error> {
        let mut known = known.clone();
        known.settings_boot = None;
        let known = self.with_settings(known).await?;
        let pending = known.settings_boot.and_then(|settings| settings.view.as_override(known.quirks));
        Ok(pending.filter(|pending| pending.persistence != Persistence::Disabled))
    }

    /// Reads what the settings object, if there is one, says about booting. That it could not be asked is an error: what waits
    /// there must not look as if it were gone.
    async fn with_settings(&self, mut known: Known) -> Result<Known, Error> {
        let (Some(uri), None) = (&known.settings, &known.settings_boot) else { return Ok(known) };
        let found = match self.client.get(uri, Care::Optional).await {
            Ok(settings) => {
                let present = |name: &&str| settings.view().has(&format!("/Boot/{name}"));
                SettingsBoot {
                    properties: [TARGET, ENABLED, MODE, URI].into_iter().filter(present).collect(),
                    view: BootView::read(settings.view()),
                    etag: settings.etag,
                }
            }
            Err(error) if error.is_about_this_resource() => {
                tracing::debug!("the settings of the system cannot be read, ignored: {error}");
                return Ok(known);
            }
            Err(error) => return Err(error),
        };
        self.update(|known| known.settings_boot = Some(found.clone()));
        known.settings_boot = Some(found);
        Ok(known)
    }

    /// Tries one shape after the other, as long as the BMC finds fault with the shape.
    async fn try_shapes(&self, known: &Known, shapes: Vec<Payload>) -> Result<(), Error> {
        let mut first = None;
        let mut tried: Vec<Payload> = Vec::new();
        for shape in shapes {
            if tried.contains(&shape) {
                continue;
            }
            match self.write_boot(known, &shape).await {
                Ok(()) => return Ok(()),
                Err(error) if error.refusal().is_some_and(is_about_the_shape) => {
                    tracing::debug!("{} refused this boot override: {error}", self.client.origin());
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            tried.push(shape);
        }
        Err(first.unwrap_or_else(|| self.unsupported("override what it boots")))
    }

    async fn write_boot(&self, known: &Known, payload: &Payload) -> Result<(), Error> {
        let settings = known.settings_boot.as_ref().zip(known.settings.as_deref());
        let is_setting = |name: &str| settings.is_some_and(|(settings, _)| settings.properties.contains(&name));
        if let Some((settings, uri)) = settings
            && let Some(body) = payload.body(is_setting)
        {
            let answer = self.client.patch(uri, &body, settings.etag.as_deref()).await?;
            self.client.follow(answer).await?;
            self.update(|known| known.settings_boot = None);
        }
        let Some(body) = payload.body(|name| !is_setting(name)) else { return Ok(()) };
        match self.client.patch(&known.uri, &body, known.etag.as_deref()).await {
            Ok(answer) => {
                // The next change must not be made under the old ETag.
                let etag = answer.header(http::header::ETAG).map(str::to_owned);
                self.update(|known| known.etag = etag);
                self.client.follow(answer).await
            }
            // AMI says so when it keeps the future in a resource that it does not link.
            Err(error)
                if error.refusal().is_some_and(|refusal| refusal.problem.has("OperationSupportedInFutureStateURI")) =>
            {
                let future = format!("{}/SD", known.uri.trim_end_matches('/'));
                // Without If-Match it would drop the change in silence.
                let answer = self.client.patch(&future, &body, Some("*")).await?;
                self.client.follow(answer).await
            }
            Err(error) => Err(error),
        }
    }
}

impl Known {
    /// Allowable values may stand only in the settings object (iDRAC10).
    fn effective_boot(&self) -> BootView {
        let mut boot = self.boot.clone();
        if let Some(settings) = &self.settings_boot {
            if boot.allowed.is_empty() {
                boot.allowed.clone_from(&settings.view.allowed);
            }
            boot.mode = boot.mode.or_else(|| settings.view.mode.clone());
        }
        boot
    }
}

fn shaped(shape: BootPayload, target: &str, enabled: &str, wished: Option<&str>, shown: Option<&str>) -> Payload {
    let mode = match shape {
        BootPayload::Minimal => wished.filter(|_| shown.is_some()),
        BootPayload::WithoutMode => None,
        BootPayload::WithMode => shown.map(|shown| wished.unwrap_or(shown)),
        BootPayload::Full => Some(wished.or(shown).unwrap_or("UEFI")),
    };
    Payload::new(target, enabled).and(MODE, mode)
}

fn target_word(target: &BootTarget, allowed: &[String], quirks: &Quirks) -> Result<String, String> {
    let is_allowed = |word: &str| allowed.is_empty() || allowed.iter().any(|other| other == word);
    let word = match target {
        BootTarget::Cd => {
            return match quirks.cd_words.iter().chain(&["Cd"]).find(|word| is_allowed(word)) {
                Some(word) => Ok((*word).to_owned()),
                None => Err(format!("boot from a virtual CD; it offers {}", allowed.join(", "))),
            };
        }
        BootTarget::None => "None",
        BootTarget::Pxe => "Pxe",
        BootTarget::Hdd => "Hdd",
        BootTarget::Usb => "Usb",
        // GB200 and GH200 take it although they do not list it.
        BootTarget::UefiHttp => return Ok("UefiHttp".into()),
        BootTarget::BiosSetup => "BiosSetup",
        BootTarget::Other(word) => word,
    };
    if is_allowed(word) {
        Ok(word.to_owned())
    } else {
        Err(format!("boot from {word}; it offers {}", allowed.join(", ")))
    }
}

fn enabled_word(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::Disabled => "Disabled",
        Persistence::Once => "Once",
        Persistence::Continuous => "Continuous",
    }
}

fn mode_word(mode: BootMode) -> &'static str {
    match mode {
        BootMode::Uefi => "UEFI",
        BootMode::Legacy => "Legacy",
    }
}

/// Whether another shape may be taken: not when the BMC is busy, gone or forbids it.
fn is_about_the_shape(refusal: &Refusal) -> bool {
    matches!(refusal.status, 400 | 405 | 406 | 409 | 415 | 422 | 500 | 501) && !refusal.problem.is_not_ready()
}
