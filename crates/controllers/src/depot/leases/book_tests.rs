use api::beskar7::PhysicalHost;
use jiff::ToSpan as _;
use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn host(number: u8) -> ObjectId {
    let id = ObjectId::named::<PhysicalHost>(Some("racks"), &format!("server-{number:02}"));
    ObjectId { uid: Some(format!("uid-{number}")), ..id }
}

/// A book of addresses from 10.0.0.1 on, of which 10.0.0.3 is the router's.
fn unlisted(last: u8) -> Book {
    let range = Reservations::new((ip(1), ip(last)), ip(200), Ipv4Addr::new(255, 255, 255, 0)).unwrap();
    Book::new(range.with(vec![ip(3)], Vec::new(), 60).unwrap())
}

fn book(last: u8) -> Book {
    let mut book = unlisted(last);
    assert!(!book.listed(KindId::of::<PhysicalHost>()));
    book
}

/// All that are asked about are free.
fn probe(book: &mut Book) -> Vec<Ipv4Addr> {
    let asked = book.take_unprobed(NOW);
    for address in &asked {
        book.found_free(*address, NOW);
    }
    asked
}

#[test]
fn a_host_gets_the_lowest_address_after_it_was_probed_and_keeps_it() {
    let mut book = book(9);
    assert!(book.take_unprobed(NOW).is_empty(), "nobody waits");
    assert_eq!(book.ask(&host(1), None, NOW), None);
    assert_eq!(book.ask(&host(2), None, NOW), None);
    assert_eq!(probe(&mut book), [ip(1), ip(2)]);
    assert_eq!(book.take_waiting(NOW), [host(1), host(2)]);
    assert_eq!(book.ask(&host(2), None, NOW), Some(ip(1)));
    assert_eq!(book.ask(&host(2), None, NOW), Some(ip(1)), "its status was not written yet");
    assert_eq!(book.ask(&host(1), None, NOW), Some(ip(2)));
    book.seen(&host(2), Some(ip(1)));
    assert_eq!(book.ask(&host(2), Some(ip(1)), NOW), Some(ip(1)));
    assert_eq!(book.ask(&host(3), None, NOW), None);
    assert_eq!(probe(&mut book), [ip(4)], "the router keeps its own");
}

#[test]
fn nothing_is_given_before_all_hosts_were_seen() {
    let mut book = unlisted(9);
    assert_eq!(book.ask(&host(1), None, NOW), None);
    assert_eq!(book.ask(&host(2), Some(ip(7)), NOW), Some(ip(7)), "what is stored stays");
    assert!(book.take_unprobed(NOW).is_empty());
    book.seen(&host(3), Some(ip(1)));
    assert!(book.listed(KindId::of::<PhysicalHost>()), "somebody waits");
    assert_eq!(probe(&mut book), [ip(2)]);
}

#[test]
fn an_address_is_free_when_its_host_is_gone() {
    let mut book = book(1);
    book.seen(&host(1), Some(ip(1)));
    assert_eq!(book.ask(&host(2), None, NOW), None);
    assert!(book.is_exhausted());
    assert!(book.take_unprobed(NOW).is_empty());
    book.gone(&host(1));
    assert!(!book.is_exhausted());
    assert_eq!(probe(&mut book), [ip(1)]);
    assert_eq!(book.ask(&host(2), None, NOW), Some(ip(1)));
}

#[test]
fn an_address_that_another_machine_uses_is_given_to_nobody_for_an_hour() {
    let mut book = book(2);
    book.seen(&host(1), Some(ip(1)));
    book.spoil(ip(1), NOW);
    assert_eq!(book.ask(&host(1), Some(ip(1)), NOW), None, "it gets another one");
    assert_eq!(probe(&mut book), [ip(2)]);
    assert_eq!(book.ask(&host(1), Some(ip(1)), NOW), Some(ip(2)));
    book.seen(&host(1), Some(ip(1)));
    assert_eq!(book.ask(&host(1), None, NOW), Some(ip(2)), "the watch was behind");
    book.seen(&host(1), Some(ip(2)));
    assert_eq!(book.ask(&host(2), None, NOW), None);
    assert!(book.is_exhausted());
    let later = NOW + 61.minutes();
    assert_eq!(book.take_unprobed(later), [ip(1)]);
    book.spoil(ip(1), later);
    assert_eq!(book.take_waiting(later), [host(2)], "it is to say that there is no address for it");
}

#[test]
fn what_was_probed_long_ago_is_probed_again() {
    let mut book = book(2);
    assert_eq!(book.ask(&host(1), None, NOW), None);
    assert_eq!(probe(&mut book), [ip(1)]);
    let later = NOW + 2.minutes();
    assert_eq!(book.ask(&host(1), None, later), None);
    assert_eq!(book.take_unprobed(later), [ip(1)]);
}

#[test]
fn an_address_that_cannot_be_used_any_more_is_replaced() {
    let mut book = book(9);
    for wrong in [Ipv4Addr::new(10, 0, 1, 5), ip(200), ip(255), ip(3)] {
        assert_eq!(book.ask(&host(1), Some(wrong), NOW), None, "{wrong}");
    }
    // The range may have been moved: what is outside of it and in the network still works.
    assert_eq!(book.ask(&host(1), Some(ip(100)), NOW), Some(ip(100)));
}

#[test]
fn of_two_hosts_with_the_same_address_the_first_keeps_it() {
    let mut book = book(9);
    book.seen(&host(1), Some(ip(5)));
    book.seen(&host(2), Some(ip(5)));
    assert_eq!(book.ask(&host(2), Some(ip(5)), NOW), None);
    assert_eq!(book.ask(&host(1), Some(ip(5)), NOW), Some(ip(5)));
}

#[derive(Debug, Clone)]
enum Deed {
    /// The leader asks for a host and stores the answer.
    Ask(u8),
    /// The watch shows what a host has stored.
    Show(u8),
    Delete(u8),
    Probe,
    Spoil(u8),
    Wait,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let number = 0..6_u8;
    let deed = prop_oneof![
        5 => number.clone().prop_map(Deed::Ask),
        3 => number.clone().prop_map(Deed::Show),
        1 => number.prop_map(Deed::Delete),
        3 => Just(Deed::Probe),
        1 => (1..8_u8).prop_map(Deed::Spoil),
        1 => Just(Deed::Wait),
    ];
    proptest::collection::vec(deed, 1..80)
}

proptest! {
    #[test]
    fn no_address_is_ever_stored_for_two_hosts(deeds in deeds()) {
        let mut book = book(8);
        let (mut stored, mut now) = (HashMap::<u8, Ipv4Addr>::new(), NOW);
        for deed in deeds {
            match deed {
                Deed::Ask(number) => {
                    match book.ask(&host(number), stored.get(&number).copied(), now) {
                        Some(address) => {
                            prop_assert!(!book.is_bad(address, now));
                            prop_assert!(address != ip(3) && address != ip(200));
                            stored.insert(number, address)
                        }
                        None => stored.remove(&number),
                    };
                }
                Deed::Show(number) => book.seen(&host(number), stored.get(&number).copied()),
                Deed::Delete(number) => {
                    stored.remove(&number);
                    book.gone(&host(number));
                }
                Deed::Probe => {
                    for address in book.take_unprobed(now) {
                        prop_assert!(stored.values().all(|other| *other != address), "{} is taken", address);
                        book.found_free(address, now);
                    }
                }
                Deed::Spoil(last) => book.spoil(ip(last), now),
                Deed::Wait => now += 20.minutes(),
            }
            let different: HashSet<_> = stored.values().collect();
            prop_assert_eq!(different.len(), stored.len(), "{:?}", stored);
        }
    }
}
