//! What keeps an image out of a drive, found out before anything is done: a drive that several servers share and that holds
//! another's image, and a BMC that does not fetch images in this way.

use super::{
    Deed, Finding,
    anchor::checksum,
    step::{Flow, GO_ON, Scene},
};
use crate::server::{Media, Seen, without_secrets};

impl Scene<'_> {
    /// Remembers what the BMC shows of an image that we inserted, so that we know it again.
    pub(super) fn mark_our_image(&mut self, seen: &Seen) {
        let inserted = self.record.media.as_ref().is_none_or(|moving| moving.inserts);
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let performed = outcome.is_some_and(|act| act.number == self.record.acted && act.result.is_ok());
        if seen.shares_drives && performed && inserted && self.doing(Deed::PrepareBoot).is_some() {
            self.record.anchor.image = occupied(seen).next().map(mark);
        }
    }

    /// Stops at a drive that others share and that holds what is not ours.
    pub(super) fn leave_drive_of_others(&mut self, seen: &Seen, url: &str) -> Flow {
        self.mark_our_image(seen);
        let Some(drive) = occupied(seen).find(|drive| seen.shares_drives && !self.is_ours(drive, Some(url))) else {
            return GO_ON;
        };
        let image = drive.image.as_deref().map(without_secrets);
        self.fail_to_act(Finding::DriveTaken { slot: drive.slot.clone(), image })
    }

    /// Stops at a BMC that says that it does not fetch images by this scheme.
    pub(super) fn check_scheme(&mut self, seen: &Seen, url: &str) -> Flow {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let schemes = &seen.image_schemes;
        if schemes.is_empty() || schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return GO_ON;
        }
        let (schemes, image, scheme) = (schemes.clone(), without_secrets(url), scheme.to_owned());
        self.fail_to_act(Finding::SchemeRefused { schemes, image, scheme })
    }

    /// Whether a drive holds something that is ours to eject.
    pub(super) fn holds_our_image(&self, seen: &Seen) -> bool {
        occupied(seen).any(|drive| !seen.shares_drives || self.is_ours(drive, None))
    }

    fn is_ours(&self, drive: &Media, url: Option<&str>) -> bool {
        let is_marked = self.record.anchor.image.as_ref().is_some_and(|ours| *ours == mark(drive));
        is_marked || (drive.image.is_some() && drive.image.as_deref() == url)
    }
}

fn occupied(seen: &Seen) -> impl Iterator<Item = &Media> {
    seen.media.iter().flatten().filter(|drive| drive.is_occupied())
}

/// Tells one image from another without repeating its URL, which may bear a ticket.
fn mark(drive: &Media) -> String {
    checksum(drive.image.as_deref().unwrap_or_default())
}
