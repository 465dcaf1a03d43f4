use proptest::prelude::*;

use super::*;

mod lossy;
mod model;

const NONE: Options = Options { blksize: None, timeout: None, tsize: None, windowsize: None };
const START: Duration = Duration::from_secs(1000);

fn begin(asked: Options, size: u64) -> (Transfer, Vec<Reply>) {
    let (transfer, replies) = Transfer::begin(&asked, size, &Settings::default(), START);
    (transfer, replies.collect())
}

fn data(block: u16, wants: Range<u64>) -> Reply {
    Reply::Data { block, wants }
}

fn sent(progress: Progress) -> Vec<Reply> {
    match progress {
        Progress::Send(replies) => replies.collect(),
        other => panic!("{other:?}"),
    }
}

fn ack(transfer: &mut Transfer, block: u16) -> Progress {
    let mut datagram = Vec::new();
    Packet::Ack(block).write(&mut datagram);
    transfer.on_packet(&datagram, START)
}

/// The numbers on the wire.
fn blocks(replies: &[Reply]) -> Vec<u16> {
    let number = |reply: &Reply| if let Reply::Data { block, .. } = reply { Some(*block) } else { None };
    replies.iter().filter_map(number).collect()
}

#[test]
fn without_options_blocks_of_512_follow_each_other_and_a_short_one_is_the_last() {
    for (size, ends) in
        [(0, &[0][..]), (1, &[1]), (511, &[511]), (512, &[512, 512]), (513, &[512, 513]), (1024, &[512, 1024, 1024])]
    {
        let (mut transfer, mut replies) = begin(NONE, size);
        for (number, end) in (1..).zip(ends) {
            assert_eq!(replies, [data(number, (u64::from(number) - 1) * 512..*end)], "{size}");
            match ack(&mut transfer, number) {
                Progress::Send(next) => replies = next.collect(),
                ended => assert_eq!((ended, usize::from(number)), (Progress::Ended(Ended::Complete), ends.len())),
            }
        }
        assert_eq!((transfer.acknowledged(), transfer.resent()), (size, 0));
    }
}

#[test]
fn options_are_granted_within_the_settings() {
    for (asked, granted) in [
        (Options { blksize: Some(1024), ..NONE }, Options { blksize: Some(1024), ..NONE }),
        (Options { blksize: Some(65464), ..NONE }, Options { blksize: Some(1468), ..NONE }),
        (Options { blksize: Some(8), ..NONE }, Options { blksize: Some(8), ..NONE }),
        (Options { windowsize: Some(16), ..NONE }, Options { windowsize: Some(16), ..NONE }),
        (Options { windowsize: Some(65535), ..NONE }, Options { windowsize: Some(64), ..NONE }),
        (Options { tsize: Some(0), ..NONE }, Options { tsize: Some(5000), ..NONE }),
        (
            Options { tsize: Some(17), timeout: Some(9), ..NONE },
            Options { tsize: Some(5000), timeout: Some(9), ..NONE },
        ),
    ] {
        assert_eq!(begin(asked, 5000).1, [Reply::OptionAck(granted)]);
    }
}

#[test]
fn settings_that_make_no_sense_are_bent() {
    let settings = Settings { blksize: 0, windowsize: 0, ..Settings::default() };
    let asked = Options { blksize: Some(512), windowsize: Some(4), ..NONE };
    let (_, mut replies) = Transfer::begin(&asked, 1, &settings, START);
    let granted = Options { blksize: Some(8), windowsize: Some(1), ..NONE };
    assert_eq!(replies.next(), Some(Reply::OptionAck(granted)));
}

#[test]
fn data_waits_for_the_acknowledgement_of_the_options() {
    let (mut transfer, _) = begin(Options { blksize: Some(1000), windowsize: Some(2), ..NONE }, 2500);
    assert_eq!(ack(&mut transfer, 1), Progress::Wait);
    assert!(!transfer.is_answered());
    assert_eq!(sent(ack(&mut transfer, 0)), [data(1, 0..1000), data(2, 1000..2000)]);
    assert!(transfer.is_answered());
    assert_eq!(ack(&mut transfer, 0), Progress::Wait);
    assert_eq!(sent(ack(&mut transfer, 2)), [data(3, 2000..2500)]);
    assert_eq!(ack(&mut transfer, 3), Progress::Ended(Ended::Complete));
}

#[test]
fn a_block_in_the_middle_of_a_window_is_where_it_goes_on() {
    let (mut transfer, _) = begin(Options { windowsize: Some(4), ..NONE }, 5120);
    assert_eq!(blocks(&sent(ack(&mut transfer, 0))), [1, 2, 3, 4]);
    assert_eq!(blocks(&sent(ack(&mut transfer, 2))), [3, 4, 5, 6]);
    assert_eq!(transfer.resent(), 2);
    for late in [0, 1, 2, 7, 8, 65535] {
        assert_eq!(ack(&mut transfer, late), Progress::Wait, "{late}");
    }
    assert_eq!(blocks(&sent(ack(&mut transfer, 6))), [7, 8, 9, 10]);
    assert_eq!(blocks(&sent(ack(&mut transfer, 10))), [11]);
}

#[test]
fn repeated_acknowledgements_send_nothing() {
    let (mut transfer, _) = begin(NONE, 5120);
    for block in 1..=10 {
        assert_eq!(blocks(&sent(ack(&mut transfer, block))), [block + 1]);
        for again in 0..=block {
            assert_eq!(ack(&mut transfer, again), Progress::Wait, "{again} after {block}");
        }
    }
    assert_eq!(transfer.resent(), 0);
}

/// Calls at each deadline and says after how many milliseconds it sent again what was expected, until it gives up.
fn silence(transfer: &mut Transfer, expected: &[Reply]) -> Vec<u128> {
    let mut waits = Vec::new();
    loop {
        let now = transfer.deadline();
        match transfer.on_timeout(now) {
            Progress::Send(replies) => assert_eq!(replies.collect::<Vec<_>>(), expected),
            Progress::Ended(ended) => {
                assert_eq!(ended, Ended::GaveUp);
                return waits;
            }
            Progress::Wait => panic!("the deadline was reached"),
        }
        waits.push(transfer.deadline().saturating_sub(now).as_millis());
    }
}

#[test]
fn a_client_that_never_answers_is_given_up_soon_and_one_that_stopped_later() {
    let (mut transfer, opening) = begin(Options { windowsize: Some(2), ..NONE }, 5000);
    assert_eq!(silence(&mut transfer, &opening), [1000, 2000, 4000, 4000]);

    let (mut transfer, _) = begin(Options { windowsize: Some(2), ..NONE }, 5000);
    let window = sent(ack(&mut transfer, 0));
    assert_eq!(silence(&mut transfer, &window), [1000, 2000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000]);
    assert_eq!((transfer.acknowledged(), transfer.resent()), (0, 22));
}

#[test]
fn the_client_says_how_long_to_wait() {
    let (mut transfer, opening) = begin(Options { timeout: Some(20), ..NONE }, 5000);
    assert_eq!(transfer.deadline(), START + Duration::from_secs(20));
    assert_eq!(silence(&mut transfer, &opening), [20_000; 4]);
}

#[test]
fn only_progress_defers_the_deadline() {
    let (mut transfer, _) = begin(NONE, 5000);
    let deadline = transfer.deadline();
    let later = START + Duration::from_millis(400);
    for junk in [&b"\0\x04\0\0"[..], b"\0\x04\0\x02", b"\0\x01a\0octet\0", b"\0\x03\0\x01abc", b"\0\x06", b"", b"?"] {
        assert_eq!(transfer.on_packet(junk, later), Progress::Wait, "{}", junk.escape_ascii());
        assert_eq!((transfer.deadline(), transfer.is_answered()), (deadline, false));
    }
    assert_eq!(transfer.on_timeout(later), Progress::Wait);
    sent(transfer.on_timeout(deadline));
    sent(transfer.on_packet(b"\0\x04\0\x01", later));
    assert_eq!(transfer.deadline(), later + Settings::default().timeout, "back to the first wait");
}

#[test]
fn an_error_of_the_client_ends_the_transfer() {
    let (mut transfer, _) = begin(Options { tsize: Some(0), ..NONE }, 5000);
    let ended = transfer.on_packet(b"\0\x05\0\x08User aborted\x1b[2J\0", START);
    let message = "User aborted?[2J".to_owned();
    assert_eq!(ended, Progress::Ended(Ended::Aborted { code: 8, message }));
}

#[test]
fn block_numbers_roll_over() {
    let total = 70_000_u64;
    let (mut transfer, _) = begin(Options { windowsize: Some(7), ..NONE }, total * 512 - 1);
    let mut replies = sent(ack(&mut transfer, 0));
    let mut received = 0_u64;
    loop {
        for reply in &replies {
            let wants = received * 512..(received * 512 + 512).min(total * 512 - 1);
            received += 1;
            assert_eq!(reply, &data(u16::try_from(received % 65_536).unwrap(), wants));
        }
        match ack(&mut transfer, u16::try_from(received % 65_536).unwrap()) {
            Progress::Send(next) => replies = next.collect(),
            ended => break assert_eq!(ended, Progress::Ended(Ended::Complete)),
        }
    }
    assert_eq!((received, transfer.acknowledged(), transfer.resent()), (total, total * 512 - 1, 0));
}

proptest! {
    #[test]
    fn whatever_comes_the_window_is_kept(
        size in prop_oneof![0..20_000_u64, Just(u64::MAX)],
        blksize in prop::option::of(8..2000_u16),
        windowsize in prop::option::of(1..100_u16),
        packets in prop::collection::vec(
            prop_oneof![
                8 => (0..100_u16).prop_map(|block| [&[0, 4], &block.to_be_bytes()[..]].concat()),
                1 => prop::collection::vec(any::<u8>(), 0..8),
                1 => Just(Vec::new()),
            ],
            0..200,
        ),
    ) {
        let (mut transfer, _) = begin(Options { blksize, windowsize, ..NONE }, size);
        let (blksize, windowsize) = (u64::from(transfer.blksize), u64::from(transfer.windowsize));
        for packet in packets {
            let before = transfer.acknowledged();
            let now = transfer.deadline();
            let progress = if packet.is_empty() { transfer.on_timeout(now) } else { transfer.on_packet(&packet, now) };
            let Progress::Send(replies) = progress else { continue };
            prop_assert!(transfer.acknowledged() >= before);
            let window = transfer.acknowledged()..=transfer.acknowledged().saturating_add(windowsize * blksize);
            for reply in replies {
                let Reply::Data { wants, .. } = reply else { continue };
                prop_assert!(window.contains(&wants.start) && window.contains(&wants.end), "{wants:?} {window:?}");
                prop_assert!(wants.end <= size && wants.end - wants.start <= blksize);
            }
        }
    }
}
