//! How long things may take, and when to look again.

use jiff::{SignedDuration, Timestamp};

use crate::failure::Class;

/// A look at a server that changes nothing: once in about this time.
const REST: SignedDuration = SignedDuration::from_secs(90);
/// A look must be answered in this time; the client's own limits are shorter.
pub(super) const LOOK_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// A sight may be this old and still be acted on.
pub(super) const SIGHT_AGE: SignedDuration = SignedDuration::from_secs(30);
/// A power change that is not seen after this time is asked for again: BMCs report the old state for up to half a minute.
pub(super) const POWER_AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// A power change that is not seen after this time has failed.
pub(super) const POWER_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// An operating system that was asked to shut down gets this long before the power is cut.
pub(super) const SOFT_LIMIT: SignedDuration = SignedDuration::from_mins(2);
/// The clocks of two replicas may differ by this much. No server fetches anything so soon after power-on.
pub(super) const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(10);
/// A BMC that cannot be read after an act has this long to come back before that is told: iDRACs are blind for some seconds, up to
/// half a minute on old firmware.
pub(super) const READ_AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// How often a restart that the BMC refuses is tried for one request.
pub(super) const RESTART_TRIES: u32 = 5;
/// Media and boot override must be readable after this time. Some BMCs insert in the background.
pub(super) const PREPARE_LIMIT: SignedDuration = SignedDuration::from_mins(3);
/// An act with media of which nobody knows how it ended has ended after this time: the client gives up within two and a half
/// minutes, and what it began goes on in the background.
pub(super) const MEDIA_LIMIT: SignedDuration = SignedDuration::from_mins(3);
/// A server that has not used the boot override after this time is told about: big servers spend ten minutes in POST.
pub(super) const BOOT_LIMIT: SignedDuration = SignedDuration::from_mins(20);
/// A server whose BMC tells nothing of the boot is taken to have booted this long after it was given power. Nearly all have
/// left POST by then; those that need longer have BMCs that tell.
pub(super) const SETTLE: SignedDuration = SignedDuration::from_mins(5);
/// How far a boot has come, as told in this time after power-on, may still be about the boot before: power is reported as
/// late as that, too.
pub(super) const PROGRESS_LAG: SignedDuration = SignedDuration::from_secs(30);
/// An override that is still shown as armed this long after the system started is told about: BMCs report it late.
pub(super) const OVERRIDE_LAG: SignedDuration = SignedDuration::from_mins(5);
/// How often we try to take back a boot override that its BMC keeps.
pub(super) const DISARM_TRIES: u32 = 4;
/// A wait for people or other programs is brought up again after this time.
pub(super) const PATIENCE: SignedDuration = SignedDuration::from_hours(24);
/// How often a deletion is tried.
pub(super) const DELETION_TRIES: u32 = 5;
/// How long a deletion may fail.
pub(super) const DELETION_LIMIT: SignedDuration = SignedDuration::from_mins(10);
/// A claim of somebody who does not exist is taken off after this time: what is restored from a backup comes one after the
/// other, and the host may have come first.
pub(super) const GHOST_LIMIT: SignedDuration = SignedDuration::from_mins(10);
/// How often a wait for the consumer's fate is looked into.
pub(super) const CONSUMER_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What of the inventory could not be read is read again after this time, and later and later.
const UNREAD_FIRST: SignedDuration = SignedDuration::from_mins(5);

const HOLD_FIRST: SignedDuration = SignedDuration::from_mins(10);
/// A BMC that starts refuses everybody for a while: one more try is no danger to an account.
const HOLD_ONCE: SignedDuration = SignedDuration::from_mins(1);
const HOLD_MOST: SignedDuration = SignedDuration::from_hours(6);
/// No failure is given longer than this before it is tried again.
pub(super) const LONGEST_BACK_OFF: SignedDuration = HOLD_MOST;

/// `span` after `at`. Times come from objects that anybody can edit, so the end of time is no reason to panic.
pub(super) fn later(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// The time between two looks at rest: within a fifth of [`REST`], so that a fleet does not knock in step.
pub(super) fn rest(spread: u8) -> SignedDuration {
    REST.saturating_mul(800 + i32::from(spread) * 400 / 255) / 1000
}

/// The time between two looks while something is under way since `elapsed`.
pub(super) fn poll(elapsed: SignedDuration) -> SignedDuration {
    match elapsed.as_secs() {
        ..10 => SignedDuration::from_secs(1),
        10..120 => SignedDuration::from_secs(5),
        _ => SignedDuration::from_secs(15),
    }
}

/// The time until the next try after `count` failures of that class.
pub(super) fn back_off(class: Class, count: u32, spread: u8) -> SignedDuration {
    let (first, most) = match class {
        Class::Transient | Class::Throttled => (SignedDuration::from_secs(10), SignedDuration::from_mins(10)),
        Class::Rejected | Class::Bug => (SignedDuration::from_mins(1), SignedDuration::from_mins(30)),
        Class::Unsupported => (SignedDuration::from_hours(1), SignedDuration::from_hours(1)),
        Class::Auth if count <= 1 => return HOLD_ONCE,
        Class::Auth => return doubling(HOLD_FIRST, HOLD_MOST, count - 1),
    };
    doubling(first, most, count).saturating_mul(1000 + i32::from(spread) * 200 / 255) / 1000
}

/// How long to wait before the inventory is read again of which parts could not be read in `tries` tries.
pub(super) fn unread_again(tries: u32) -> SignedDuration {
    doubling(UNREAD_FIRST, HOLD_MOST, tries)
}

/// When to bring up again that a server was not seen to boot.
pub(super) fn boot_reminder(count: u32) -> SignedDuration {
    doubling(SignedDuration::from_mins(10), HOLD_MOST, count)
}

fn doubling(first: SignedDuration, most: SignedDuration, count: u32) -> SignedDuration {
    first.saturating_mul(1 << count.saturating_sub(1).min(12)).min(most)
}
