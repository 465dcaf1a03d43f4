//! A pretend server with its BMC, as good or as bad as a test wants it.

use jiff::{SignedDuration, Timestamp};

use crate::{
    failure::{Failure, Kind},
    hardware::{Hardware, Part},
    host::Act,
    server::{BootOverride, BootProgress, BootTarget, Media, Persistence, PowerState, Scope, Seen},
};

/// What the server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Runs {
    Nothing,
    Disk,
    Image(String),
    Network,
}

/// How the BMC behaves.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "vices come in any combination")]
pub(super) struct Temper {
    /// Every look fails like this.
    pub(super) blind: Option<Kind>,
    /// Every act fails like this.
    pub(super) refuses: Option<Kind>,
    /// Acts of this name fail with `Unsupported`.
    pub(super) lacks: Option<&'static str>,
    /// Acts of this name fail like this.
    pub(super) fails: Option<(&'static str, Kind)>,
    /// Has no virtual CD drive.
    pub(super) no_drive: bool,
    /// Cannot be set to boot from the network, and says so.
    pub(super) no_network: bool,
    /// Reports the former power state for this long.
    pub(super) lies: i64,
    /// A power change takes this long.
    pub(super) slow: i64,
    /// The self test takes this long.
    pub(super) post: i64,
    /// This many boots do not heed the override.
    pub(super) ignores: u32,
    /// Takes power orders and does nothing.
    pub(super) stuck: bool,
    /// Shows "once" as "continuous", and keeps it.
    pub(super) continuous: bool,
    /// Shows the target of every override in a word of its own.
    pub(super) override_word: Option<BootTarget>,
    /// Shows no boot override at all.
    pub(super) silent_boot: bool,
    /// Does not tell how far a boot has come.
    pub(super) silent_progress: bool,
    /// The operating system does not listen when asked to shut down.
    pub(super) deaf: bool,
    /// Takes images and shows none.
    pub(super) hides_media: bool,
    /// Inserts and ejects in the background, which takes this long.
    pub(super) slow_media: i64,
    /// Shows that there is an image, and not which.
    pub(super) nameless_media: bool,
    /// Shows images with a port and without their scheme.
    pub(super) odd_names: bool,
    /// Goes on showing a one-time override that was used.
    pub(super) shows_used_override: bool,
    /// Carries out every act and answers with this failure.
    pub(super) mute: Option<Kind>,
    /// Cannot be read for this long after every act.
    pub(super) blind_after_act: i64,
    /// The drive is other servers' as well.
    pub(super) shares_drives: bool,
    /// Takes images by these schemes only.
    pub(super) image_schemes: Vec<String>,
    /// Cannot tell these parts of the inventory.
    pub(super) unread: Vec<Part>,
    /// Shows no drives, because remote media are disabled in its settings.
    pub(super) media_disabled: bool,
    /// The next look goes on with these.
    pub(super) goes_on: bool,
    /// Asks the network before it boots its disk, at every start.
    pub(super) network_first: bool,
}

impl Temper {
    pub(super) fn good() -> Self {
        Self {
            blind: None,
            refuses: None,
            lacks: None,
            fails: None,
            no_drive: false,
            no_network: false,
            lies: 0,
            slow: 2,
            post: 30,
            ignores: 0,
            stuck: false,
            continuous: false,
            override_word: None,
            silent_boot: false,
            silent_progress: false,
            deaf: false,
            hides_media: false,
            slow_media: 0,
            nameless_media: false,
            odd_names: false,
            shows_used_override: false,
            mute: None,
            blind_after_act: 0,
            shares_drives: false,
            image_schemes: Vec::new(),
            unread: Vec::new(),
            media_disabled: false,
            goes_on: false,
            network_first: false,
        }
    }

    /// Whether an act is carried out, whatever is answered.
    pub(super) fn obeys(&self, act: &Act) -> bool {
        self.refuses.or(self.blind).is_none() && self.lacks != Some(act.name())
    }
}

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct Server {
    pub(super) temper: Temper,
    pub(super) on: bool,
    pub(super) runs: Runs,
    pub(super) media: Option<String>,
    /// Another server runs from what is in the drive.
    pub(super) is_neighbours: bool,
    pub(super) boot: BootOverride,
    pub(super) uuid: Option<String>,
    pub(super) certificate: Option<String>,
    /// How often it was started.
    pub(super) starts: u32,
    /// It asks the network what to boot.
    pub(super) asks: bool,
    changing: Option<(Timestamp, bool)>,
    /// Whether it shows that it is on its way.
    tells: bool,
    restarting: bool,
    posting: Option<Timestamp>,
    lie: Option<(Timestamp, PowerState)>,
    /// What will be in the drive, and from when on.
    moving: Vec<(Timestamp, Option<String>)>,
    /// The one-time override that was used last.
    used: Option<BootOverride>,
    readable_from: Option<Timestamp>,
}

pub(super) fn no_override() -> BootOverride {
    BootOverride { target: BootTarget::None, persistence: Persistence::Disabled, mode: None, http_uri: None }
}

/// `https://host/path` as some BMCs show it.
fn odd_name(image: &str) -> String {
    let rest = image.strip_prefix("https://").unwrap();
    rest.replacen('/', ":443/", 1)
}

fn after(at: Timestamp, secs: i64) -> Timestamp {
    at + SignedDuration::from_secs(secs)
}

impl Temper {
    fn hardware(&self) -> Hardware {
        Hardware {
            unread: self.unread.clone(),
            goes_on: self.goes_on,
            network_boot: self.no_network.then_some(false),
            ..Hardware::default()
        }
    }
}

impl Server {
    pub(super) fn off() -> Self {
        Self {
            temper: Temper::good(),
            on: false,
            runs: Runs::Nothing,
            media: None,
            is_neighbours: false,
            boot: no_override(),
            uuid: Some("u-1".into()),
            certificate: Some("c-1".into()),
            starts: 0,
            asks: false,
            changing: None,
            tells: false,
            restarting: false,
            posting: None,
            lie: None,
            moving: Vec::new(),
            used: None,
            readable_from: None,
        }
    }

    pub(super) fn running() -> Self {
        Self { on: true, runs: Runs::Disk, ..Self::off() }
    }

    /// Lets time pass up to `now`.
    pub(super) fn tick(&mut self, now: Timestamp) {
        if let Some((at, on)) = self.changing.filter(|(at, _)| *at <= now) {
            self.changing = None;
            self.lie = (!self.tells)
                .then(|| (after(at, self.temper.lies), if self.on { PowerState::On } else { PowerState::Off }));
            self.turn(on, at);
            if self.restarting {
                self.restarting = false;
                self.lie = None;
                self.turn(true, at);
            }
        }
        for (_, media) in self.moving.extract_if(.., |(at, _)| *at <= now) {
            self.media = media;
            self.is_neighbours = false;
        }
        if let Some(at) = self.posting.filter(|at| *at <= now && self.on) {
            self.posting = None;
            self.start_system(at);
        }
    }

    fn turn(&mut self, on: bool, at: Timestamp) {
        self.on = on;
        self.runs = Runs::Nothing;
        self.asks = false;
        self.posting = on.then(|| after(at, self.temper.post));
        self.starts += u32::from(on);
    }

    fn start_system(&mut self, _at: Timestamp) {
        let armed = !self.boot.is_clear();
        if armed && self.temper.ignores > 0 {
            self.temper.ignores -= 1;
            self.runs = Runs::Disk;
            self.asks = self.temper.network_first;
            return;
        }
        self.runs = match (&self.media, &self.boot.target) {
            (Some(image), BootTarget::Cd) if armed => Runs::Image(image.clone()),
            (_, BootTarget::Pxe | BootTarget::UefiHttp) if armed => Runs::Network,
            _ => Runs::Disk,
        };
        self.asks = self.runs == Runs::Network || (self.runs == Runs::Disk && self.temper.network_first);
        if self.boot.persistence == Persistence::Once {
            self.used = Some(std::mem::replace(&mut self.boot, no_override()));
        }
    }

    /// Somebody at the console.
    pub(super) fn press(&mut self, on: bool, now: Timestamp) {
        self.tick(now);
        if self.on != on {
            self.changing = None;
            self.turn(on, now);
        }
    }

    pub(super) fn perform(&mut self, act: &Act, now: Timestamp) -> Result<(), Failure> {
        self.tick(now);
        if let Some(kind) = self.temper.refuses.or(self.temper.blind) {
            return Err(Failure::new(kind, "the act failed"));
        }
        if self.temper.lacks == Some(act.name()) {
            return Err(Failure::new(Kind::Unsupported, "no such function"));
        }
        if let Some((_, kind)) = self.temper.fails.filter(|(name, _)| *name == act.name()) {
            return Err(Failure::new(kind, "the act failed"));
        }
        match act {
            Act::PowerOn if !self.on => self.change(true, now, self.temper.slow),
            Act::PowerOff if self.on || self.changing.is_some() => self.change(false, now, self.temper.slow),
            Act::ShutDown if self.on && !self.temper.deaf && self.posting.is_none() => self.change(false, now, 20),
            Act::Restart if self.on => {
                self.change(false, now, self.temper.slow);
                self.restarting = !self.temper.stuck;
            }
            Act::PowerOn | Act::PowerOff | Act::ShutDown | Act::Restart => {}
            Act::InsertMedia { url } => self.load((!self.temper.hides_media).then(|| url.clone()), now),
            Act::EjectMedia => self.load(None, now),
            Act::SetBoot(wish) => {
                self.used = None;
                self.boot = wish.clone();
                if self.temper.continuous {
                    self.boot.persistence = Persistence::Continuous;
                }
            }
            Act::ClearBoot => {
                self.used = None;
                self.boot = no_override();
            }
        }
        self.readable_from = Some(after(now, self.temper.blind_after_act));
        self.temper.mute.map_or(Ok(()), |kind| Err(Failure::new(kind, "the act failed, or so it says")))
    }

    fn load(&mut self, media: Option<String>, now: Timestamp) {
        // One after the other, also when it has become faster meanwhile.
        let done = after(now, self.temper.slow_media).max(self.moving.last().map_or(now, |(at, _)| *at));
        self.moving.push((done, media));
        self.tick(now);
    }

    fn change(&mut self, on: bool, now: Timestamp, secs: i64) {
        if !self.temper.stuck {
            self.restarting = false;
            self.tells = secs > 25;
            self.changing = Some((after(now, secs), on));
            self.tick(now);
        }
    }

    pub(super) fn look(&mut self, scope: Scope, now: Timestamp) -> Result<Seen, Failure> {
        self.tick(now);
        let blinded = self.readable_from.filter(|from| now < *from).map(|_| Kind::Busy);
        if let Some(kind) = self.temper.blind.or(blinded) {
            return Err(Failure::new(kind, "the look failed"));
        }
        let truth = match (self.on, self.changing) {
            // Who takes long says so.
            (_, Some((_, on))) if self.tells => {
                if on {
                    PowerState::PoweringOn
                } else {
                    PowerState::PoweringOff
                }
            }
            (true, _) => PowerState::On,
            (false, _) => PowerState::Off,
        };
        let power = self.lie.filter(|(until, _)| now < *until).map_or(truth, |(_, lie)| lie);
        let progress = match (&self.runs, self.posting) {
            _ if self.temper.silent_progress => BootProgress::NotReported,
            (Runs::Disk | Runs::Image(_) | Runs::Network, _) => BootProgress::OsStarted,
            (Runs::Nothing, Some(_)) => BootProgress::InPost,
            (Runs::Nothing, None) => BootProgress::NotStarted,
        };
        let image = self.media.clone().filter(|_| !self.temper.nameless_media);
        let image = image.map(|image| if self.temper.odd_names { odd_name(&image) } else { image });
        let used = self.used.clone().filter(|_| self.temper.shows_used_override);
        let mut shown = used.unwrap_or_else(|| self.boot.clone());
        if let Some(word) = self.temper.override_word.clone().filter(|_| !shown.is_clear()) {
            shown.target = word;
        }
        let has_no_drive = self.temper.no_drive || self.temper.media_disabled;
        let drive = Media { slot: "Cd".into(), image, inserted: self.media.is_some() };
        Ok(Seen {
            power,
            boot: (!self.temper.silent_boot).then_some(shown),
            progress,
            media: (scope >= Scope::Boot).then(|| if has_no_drive { Vec::new() } else { vec![drive] }),
            media_disabled: self.temper.media_disabled,
            hardware: (scope >= Scope::Inventory).then(|| Box::new(self.temper.hardware())),
            uuid: self.uuid.clone(),
            certificate: self.certificate.clone(),
            shares_drives: self.temper.shares_drives,
            image_schemes: self.temper.image_schemes.clone(),
            ..Seen::default()
        })
    }

    /// Nothing of ours is left in it.
    pub(super) fn empty(&mut self) {
        self.moving.clear();
        self.media = None;
        self.boot = no_override();
        self.used = None;
    }

    /// Off, without media of ours and without override.
    pub(super) fn is_tidy(&self) -> bool {
        let media = self.moving.last().map_or(&self.media, |(_, media)| media);
        let is_anothers = self.is_neighbours || (self.temper.shares_drives && media.as_deref() != Some(super::IMAGE));
        !self.on && self.changing.is_none_or(|(_, on)| !on) && (media.is_none() || is_anothers) && self.boot.is_clear()
    }
}
