//! What forbids inserting an image, checked before anything is done: a shared drive that holds another server's image, and a BMC
//! that does not support the scheme of the URL.

use super::{
    Deed, Finding,
    anchor::checksum,
    step::{Flow, GO_ON, Scene},
};
use crate::server::{Media, Seen, without_secrets};

impl Scene<'_> {
    /// Marks the image that is about to be inserted into a shared drive as ours. That is stored first: after a crash with a lost
    /// status, the operator must know which image to eject.
    pub(super) fn claim_drive(&mut self, url: &str, seen: &Seen) {
        if seen.shares_drives {
            self.record.anchor.image = Some(mark(url));
        }
    }

    /// Remembers what the BMC shows for our image, so that it is recognised later.
    pub(super) fn mark_our_image(&mut self, seen: &Seen, url: &str) {
        if !seen.shares_drives {
            return;
        }
        let inserted = self.record.media.as_ref().is_none_or(|moving| moving.inserts);
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let performed = outcome.is_some_and(|act| act.number == self.record.acted && act.result.is_ok());
        let is_preparing = self.doing(Deed::PrepareBoot).is_some();
        match occupied(seen).next() {
            Some(drive) if performed && inserted && is_preparing && drive.may_hold(url) => {
                self.record.anchor.image = Some(mark_of(drive));
            }
            // An image that is neither in the drive nor being inserted is no longer ours: the next image in the drive may be
            // another server's.
            None if self.record.media.is_none() && !is_preparing => self.record.anchor.image = None,
            _ => {}
        }
    }

    /// Stops if a shared drive holds an image that is not ours.
    pub(super) fn leave_drive_of_others(&mut self, seen: &Seen, url: &str) -> Flow {
        self.mark_our_image(seen, url);
        let Some(drive) = occupied(seen).find(|drive| seen.shares_drives && !self.is_ours(drive)) else {
            return GO_ON;
        };
        let image = drive.image.as_deref().map(without_secrets);
        self.fail_to_act(Finding::DriveTaken { slot: drive.slot.clone(), image })
    }

    /// Stops if the BMC states that it does not support the scheme of the URL.
    pub(super) fn check_scheme(&mut self, seen: &Seen, url: &str) -> Flow {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let schemes = &seen.image_schemes;
        if schemes.is_empty() || schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return GO_ON;
        }
        let (schemes, image, scheme) = (schemes.clone(), without_secrets(url), scheme.to_owned());
        self.fail_to_act(Finding::SchemeRefused { schemes, image, scheme })
    }

    /// Whether a drive holds an image that we may eject.
    pub(super) fn holds_our_image(&self, seen: &Seen) -> bool {
        occupied(seen).any(|drive| !seen.shares_drives || self.is_ours(drive))
    }

    /// Whether we inserted it. The same URL proves nothing: servers that share a drive often boot the same image.
    fn is_ours(&self, drive: &Media) -> bool {
        let shown = drive.image.as_deref().unwrap_or_default();
        // Older versions marked an image by the whole text that the BMC shows.
        let marks = [mark(shown), checksum(shown)];
        self.record.anchor.image.as_ref().is_some_and(|ours| marks.contains(ours))
    }
}

fn occupied(seen: &Seen) -> impl Iterator<Item = &Media> {
    seen.media.iter().flatten().filter(|drive| drive.is_occupied())
}

fn mark_of(drive: &Media) -> String {
    mark(drive.image.as_deref().unwrap_or_default())
}

/// A mark for an image that does not contain its URL, which may contain a ticket. BMCs add a port, or drop scheme and query.
fn mark(image: &str) -> String {
    let rest = image.split(['?', '#']).next().unwrap_or_default();
    let rest = rest.split_once("://").map_or(rest, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or(("", rest));
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    checksum(&format!("{}/{path}", host.to_ascii_lowercase()))
}
