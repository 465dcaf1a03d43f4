//! How long things may take, and when to look again.

use jiff::{SignedDuration, Timestamp};

use super::Turn;
use crate::failure::Class;

/// A look at a server that changes nothing: once in about this time.
const REST: SignedDuration = SignedDuration::from_secs(90);
/// A server with many others behind its BMC is looked at this often.
const REST_MOST: SignedDuration = SignedDuration::from_mins(10);
/// A look must be answered in this time; the client's own limits are shorter.
pub(super) const LOOK_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// A sight may be this old and still be acted on.
pub(super) const SIGHT_AGE: SignedDuration = SignedDuration::from_secs(30);
/// A power change that is not seen after this time is requested again: BMCs report the old state for up to half a minute.
pub(super) const POWER_AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// A power change that is not seen after this time has failed.
pub(super) const POWER_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// An operating system that was asked to shut down gets this long before the power is cut.
pub(super) const SOFT_LIMIT: SignedDuration = SignedDuration::from_mins(2);
/// The clocks of two replicas may differ by this much. No server fetches anything so soon after power-on.
pub(super) const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(10);
/// A BMC that cannot be read after an act gets this long before a fault is set: iDRACs cannot be read for some seconds, up to
/// half a minute on old firmware.
pub(super) const READ_AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// How often a restart that the BMC refuses is tried for one request.
pub(super) const RESTART_TRIES: u32 = 5;
/// Media and boot override must be readable after this time. Some BMCs insert in the background.
pub(super) const PREPARE_LIMIT: SignedDuration = SignedDuration::from_mins(3);
/// An act on media whose result is unknown has ended after this time: the client gives up within two and a half minutes, and the
/// BMC continues in the background.
pub(super) const MEDIA_LIMIT: SignedDuration = SignedDuration::from_mins(3);
/// A server that has not used the boot override after this time gets a fault: big servers spend ten minutes in POST.
pub(super) const BOOT_LIMIT: SignedDuration = SignedDuration::from_mins(20);
/// A server that was started for a probe has this long to report: big servers spend ten minutes in POST, and then a system is fetched.
pub(super) const PROBE_LIMIT: SignedDuration = SignedDuration::from_mins(30);
/// If the BMC reports nothing about the boot, it is assumed to have happened this long after power-on. Nearly all servers have
/// left POST by then; those that need longer have BMCs that report it.
pub(super) const SETTLE: SignedDuration = SignedDuration::from_mins(5);
/// Boot progress that is reported within this time after power-on may belong to the boot before: power is reported as late as
/// that, too.
pub(super) const PROGRESS_LAG: SignedDuration = SignedDuration::from_secs(30);
/// An override that is still shown as armed this long after the system started is reported: BMCs update it late.
pub(super) const OVERRIDE_LAG: SignedDuration = SignedDuration::from_mins(5);
/// How often clearing a boot override is tried that the BMC keeps.
pub(super) const DISARM_TRIES: u32 = 4;
/// A reminder is sent after waiting this long for people or other programs.
pub(super) const PATIENCE: SignedDuration = SignedDuration::from_hours(24);
/// How often a deletion is tried.
pub(super) const DELETION_TRIES: u32 = 5;
/// How long a deletion may fail.
pub(super) const DELETION_LIMIT: SignedDuration = SignedDuration::from_mins(10);
/// A claim whose claimer does not exist is removed after this time: a backup restores objects one after the other, and the host
/// may come first.
pub(super) const GHOST_LIMIT: SignedDuration = SignedDuration::from_mins(10);
/// How often the consumer is looked up while waiting for it.
pub(super) const CONSUMER_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// Parts of the inventory that could not be read are read again after this time, then at growing intervals.
const UNREAD_FIRST: SignedDuration = SignedDuration::from_mins(5);

const HOLD_FIRST: SignedDuration = SignedDuration::from_mins(10);
/// A BMC that starts refuses everybody for a while. One more try does not lock an account.
const HOLD_ONCE: SignedDuration = SignedDuration::from_mins(1);
const HOLD_MOST: SignedDuration = SignedDuration::from_hours(6);
/// The longest time between two tries.
pub(super) const LONGEST_BACK_OFF: SignedDuration = HOLD_MOST;

/// `span` after `at`. Times come from objects that anybody can edit, so an overflow must not panic.
pub(super) fn later(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// When a server is looked at again at rest: after about [`REST`], within a fifth of it, so that the hosts of a fleet do not look at the
/// same time. Where servers take turns, the looks at their BMC are that far apart, also because a BMC may end a session that was not used
/// for five minutes.
pub(super) fn rest(last: Timestamp, turn: Option<Turn>, spread: u8) -> Timestamp {
    let Some(Turn { place, of }) = turn.filter(|turn| turn.of > 1) else {
        return later(last, REST.saturating_mul(800 + i32::from(spread) * 400 / 255) / 1000);
    };
    let round = REST.as_secs().saturating_mul(of.into()).min(REST_MOST.as_secs());
    // The same part of each round.
    let part = (i64::from(place % of) * 256 + i64::from(spread)) * round / (i64::from(of) * 256);
    let earliest = later(last, SignedDuration::from_secs(round / 2));
    later(earliest, SignedDuration::from_secs((part - earliest.as_second()).rem_euclid(round)))
}

/// The time between two looks while something has been in progress for `elapsed`.
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

/// How long to wait before the inventory is read again, after `tries` tries that could not read all of it.
pub(super) fn unread_again(tries: u32) -> SignedDuration {
    doubling(UNREAD_FIRST, HOLD_MOST, tries)
}

/// When to remind again that a server was not seen to boot.
pub(super) fn boot_reminder(count: u32) -> SignedDuration {
    doubling(SignedDuration::from_mins(10), HOLD_MOST, count)
}

fn doubling(first: SignedDuration, most: SignedDuration, count: u32) -> SignedDuration {
    first.saturating_mul(1 << count.saturating_sub(1).min(12)).min(most)
}
