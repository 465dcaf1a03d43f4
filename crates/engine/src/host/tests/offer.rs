//! Who can have a host, and whose it is.

use super::{IMAGE, claim, ordered};
use crate::{
    failure::Kind,
    host::{
        Anchor, Availability, Deletion, Detachment, Goal, HeldOff, Manner, Milestone, OutdatedRequest, Overview, Phase,
        PowerRequest, Road, Since,
    },
    server::PowerState,
};

fn free(goal: &Goal) -> Overview<'_> {
    Overview { goal, anchor: None, phase: Some(Phase::Available), fault: None, power: PowerState::Off, paused: false }
}

#[test]
fn a_host_can_be_had_if_nothing_stands_against_it() {
    let wants = |change: fn(&mut Goal)| {
        let mut goal = Goal::default();
        change(&mut goal);
        goal
    };
    let is = |goal: &Goal, change: fn(&mut Overview<'_>)| {
        let mut overview = free(goal);
        change(&mut overview);
        overview.availability()
    };
    let any = Goal::default();
    let same = |_: &mut Overview<'_>| {};
    let on = |overview: &mut Overview<'_>| overview.power = PowerState::On;
    assert_eq!(is(&any, same), Availability::Free);
    assert_eq!(is(&ordered("a", IMAGE), same), Availability::Claimed(claim("a")));
    let deleted = wants(|goal| goal.road = Road::Delete(Deletion::CleanUp));
    assert_eq!(is(&deleted, same), Availability::Deleting);
    assert_eq!(is(&wants(|goal| goal.quarantine = true), same), Availability::Quarantined);
    assert_eq!(is(&any, |overview| overview.paused = true), Availability::Paused);
    assert_eq!(is(&any, |overview| overview.fault = Some(Kind::Busy)), Availability::Faulty(Kind::Busy));
    for road in [Road::Park, Road::ParkOff, Road::Detach(Detachment::AtOnce)] {
        assert_eq!(is(&Goal { road, ..Goal::default() }, same), Availability::Aside, "{road:?}");
    }
    assert_eq!(is(&any, |overview| overview.phase = None), Availability::NotReady(None));
    for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::Available) {
        let overview = Overview { phase: Some(phase), ..free(&any) };
        assert_eq!(overview.availability(), Availability::NotReady(Some(phase)));
    }
    assert_eq!(is(&wants(|goal| goal.external = true), same), Availability::NotReady(Some(Phase::Available)));
    assert_eq!(is(&any, on), Availability::Running);
    assert_eq!(is(&wants(|goal| goal.claimable_while_running = true), on), Availability::Free);
    assert_eq!(is(&wants(|goal| goal.online = Some(true)), on), Availability::Free);
    assert_eq!(is(&wants(|goal| goal.online = Some(false)), on), Availability::SwitchingOff);
    for (also_free, expected) in [(true, Availability::SwitchingOff), (false, Availability::Running)] {
        let held_off = Some(HeldOff { manner: Manner::Hard, lasts: true, once: false, also_free });
        assert_eq!(is(&Goal { held_off, ..Goal::default() }, on), expected);
    }
}

#[test]
fn what_was_asked_before_the_last_release_makes_no_running_server_free() {
    let goal = Goal { online: Some(true), ..Goal::default() };
    let request = PowerRequest { online: true, id: None };
    let outdated = Some(OutdatedRequest { request, since: Since::Release });
    let anchor = Anchor { outdated, ..Anchor::default() };
    let overview = Overview { anchor: Some(&anchor), power: PowerState::On, ..free(&goal) };
    assert_eq!(overview.availability(), Availability::Running);
}

#[test]
fn a_host_is_whose_claim_it_bears_and_whose_it_acts_for() {
    let held = |goal: &Goal, anchor: Option<&Anchor>| -> Vec<(String, bool, bool)> {
        let overview = Overview { anchor, ..free(goal) };
        let holdings = overview.holdings().into_iter();
        holdings.map(|holding| (holding.claim.id, holding.claimed, holding.bound)).collect()
    };
    let anchor = Anchor { claim: Some(claim("a")), milestone: Milestone::Provisioned, ..Anchor::default() };
    assert_eq!(held(&Goal::default(), None), []);
    assert_eq!(held(&ordered("a", IMAGE), None), [("a".to_owned(), true, false)]);
    assert_eq!(held(&ordered("a", IMAGE), Some(&anchor)), [("a".to_owned(), true, true)]);
    assert_eq!(held(&Goal::default(), Some(&anchor)), [("a".to_owned(), false, true)]);
    let both = [("b".to_owned(), true, false), ("a".to_owned(), false, true)];
    assert_eq!(held(&ordered("b", IMAGE), Some(&anchor)), both);
}
