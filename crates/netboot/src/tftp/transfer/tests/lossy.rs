//! Transfers through a network that loses, doubles and delays packets.

use std::time::Duration;

use proptest::prelude::*;

use super::model::{Manner, Network, Outcome, fetch};
use crate::tftp::packet::Options;
use crate::tftp::transfer::Ended;

const PERFECT: Network = Network { seed: 0, lost: 0, doubled: 0, late: 0 };

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from(at * 31 / 7 % 251).unwrap()).collect()
}

fn asked(blksize: u16, windowsize: u16) -> Options {
    Options { blksize: Some(blksize), windowsize: Some(windowsize), ..Options::default() }
}

fn fetched(content: &[u8], asked: Options, manner: Manner, network: Network) -> Outcome {
    let outcome = fetch(content, asked, manner, network);
    assert_eq!(outcome.ended, Ended::Complete);
    assert!(outcome.received.as_deref() == Some(content), "other bytes than were sent");
    outcome
}

#[test]
fn every_size_arrives_in_every_window_without_a_packet_too_many() {
    for windowsize in [1, 4, 16] {
        for (blksize, sizes) in [(512, [0, 1, 511, 512, 513, 8192]), (1468, [0, 1467, 1468, 1469, 23_488, 100_000])] {
            for size in sizes {
                for manner in [Manner::Once, Manner::Always] {
                    let outcome = fetched(&content(size), asked(blksize, windowsize), manner, PERFECT);
                    assert_eq!((outcome.data_packets, outcome.resent), (outcome.blocks, 0));
                    assert!(outcome.took < Duration::from_millis(500), "nobody waited for a deadline");
                }
            }
        }
    }
}

#[test]
fn a_network_that_doubles_every_packet_does_not_double_what_is_sent() {
    let network = Network { doubled: 100, ..PERFECT };
    for windowsize in [1, 4, 16] {
        for manner in [Manner::Once, Manner::Always] {
            let outcome = fetched(&content(50_000), asked(512, windowsize), manner, network);
            assert_eq!(outcome.data_packets, outcome.blocks, "{windowsize} {manner:?}");
        }
    }
}

#[test]
fn long_transfers_survive_the_roll_over_of_block_numbers_and_loss() {
    let content = content(70_000 * 8);
    for (windowsize, lost) in [(1, 0), (4, 5), (16, 5)] {
        let network = Network { seed: 7, lost, doubled: 1, late: 1 };
        let outcome = fetched(&content, asked(8, windowsize), Manner::Always, network);
        assert_eq!(outcome.blocks, 70_001);
    }
}

proptest! {
    #[test]
    fn one_packet_in_five_may_be_lost(
        seed: u64,
        lost in 0..=20_u32,
        doubled in 0..=20_u32,
        late in 0..=20_u32,
        size in prop_oneof![
            prop::sample::select(vec![0, 1, 511, 512, 513, 512 * 16, 1468, 1468 * 16]),
            0..60_000_usize,
        ],
        options in prop_oneof![
            1 => Just(Options::default()),
            9 => (prop::sample::select(vec![8, 512, 1468]), prop::sample::select(vec![1, 4, 16]))
                .prop_map(|(blksize, windowsize)| asked(blksize, windowsize)),
        ],
        manner in prop::sample::select(vec![Manner::Once, Manner::Always]),
    ) {
        let size = if options.blksize == Some(8) { size / 64 } else { size };
        let outcome = fetched(&content(size), options, manner, Network { seed, lost, doubled, late });
        prop_assert_eq!(outcome.resent, outcome.data_packets - outcome.blocks);
    }
}
