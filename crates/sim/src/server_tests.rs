//! Tables of what a server does over time. Times are seconds after the first command.

use super::*;

const TIMING: Timing = Timing {
    power_on: Duration::from_secs(2),
    power_off: Duration::from_secs(3),
    shutdown: Duration::from_secs(20),
    post: Duration::from_mins(1),
};

struct Bench {
    server: Server,
    start: Instant,
    once: Once,
}

impl Bench {
    fn new(power: PowerState) -> Self {
        let start = Instant::now();
        let slots = vec![Slot { bootable: true, ..Slot::default() }];
        Self { server: Server::new("1".into(), power, slots, TIMING, start), start, once: Once::Obeyed }
    }

    fn at(&mut self, seconds: u64) -> &mut Server {
        let once = self.once;
        self.server.settle(self.start + Duration::from_secs(seconds), &mut |_| once);
        &mut self.server
    }

    fn reset(&mut self, seconds: u64, kind: ResetType) {
        let now = self.start + Duration::from_secs(seconds);
        self.at(seconds).reset(kind, now, Duration::ZERO);
    }

    fn order(&mut self, target: &str, enabled: Enabled) {
        target.clone_into(&mut self.server.boot.target);
        self.server.boot.enabled = enabled;
    }

    fn insert(&mut self, image: &str) {
        self.server.slots[0].image = Some(image.into());
        self.server.slots[0].inserted = true;
    }

    fn booted(&mut self, seconds: u64) -> Option<BootSource> {
        self.at(seconds).booted.clone().map(|b| b.from)
    }
}

#[tokio::test(start_paused = true)]
async fn every_reset_type_from_on_and_off() {
    use PowerState::{Off, On, PoweringOff, PoweringOn};
    // from, command, power after so many seconds, resets
    type Row = (PowerState, ResetType, &'static [(u64, PowerState)], u32);
    let table: &[Row] = &[
        (Off, ResetType::On, &[(0, PoweringOn), (1, PoweringOn), (2, On), (61, On), (62, On)], 1),
        (Off, ResetType::ForceOn, &[(0, PoweringOn), (2, On)], 1),
        (On, ResetType::On, &[(0, On), (90, On)], 0),
        (On, ResetType::ForceOff, &[(0, PoweringOff), (2, PoweringOff), (3, Off)], 1),
        (Off, ResetType::ForceOff, &[(0, Off)], 0),
        (On, ResetType::GracefulShutdown, &[(0, On), (19, On), (20, Off)], 1),
        (Off, ResetType::GracefulShutdown, &[(0, Off), (90, Off)], 0),
        (On, ResetType::GracefulRestart, &[(0, On), (20, On), (90, On)], 1),
        (On, ResetType::ForceRestart, &[(0, On), (30, On)], 1),
        (Off, ResetType::ForceRestart, &[(0, PoweringOn), (2, On)], 1),
        (On, ResetType::PowerCycle, &[(0, PoweringOff), (3, PoweringOn), (5, On)], 1),
        (Off, ResetType::PowerCycle, &[(0, PoweringOn), (2, On)], 1),
        (On, ResetType::PushPowerButton, &[(0, On), (20, Off)], 1),
        (Off, ResetType::PushPowerButton, &[(0, PoweringOn), (2, On)], 1),
        (On, ResetType::Nmi, &[(0, On), (90, On)], 0),
    ];
    for (from, command, expected, resets) in table {
        let mut bench = Bench::new(*from);
        bench.reset(0, *command);
        for (seconds, power) in *expected {
            assert_eq!(bench.at(*seconds).power(), *power, "{from:?} {command:?} after {seconds} s");
        }
        assert_eq!(bench.server.resets, *resets, "{from:?} {command:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn looking_late_is_the_same_as_looking_often() {
    for step in [1, 7, 100] {
        let mut bench = Bench::new(PowerState::Off);
        bench.order("Pxe", Enabled::Once);
        bench.reset(0, ResetType::On);
        for seconds in (0..=200).step_by(step) {
            bench.at(seconds);
        }
        let booted = bench.at(200).booted.clone().unwrap();
        assert_eq!((booted.from, booted.at), (BootSource::Pxe, bench.start + Duration::from_secs(62)));
        assert_eq!(bench.server.boots, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn once_is_consumed_when_post_begins_and_continuous_is_not() {
    let mut bench = Bench::new(PowerState::Off);
    bench.insert("http://a/b.iso");
    bench.order("Cd", Enabled::Once);
    bench.reset(0, ResetType::On);
    assert_eq!(bench.at(1).boot.enabled, Enabled::Once);
    let server = bench.at(2);
    assert!(server.in_post());
    assert_eq!((server.boot.enabled, server.boot.target.as_str()), (Enabled::Disabled, "None"));
    assert_eq!(bench.booted(61), None);
    assert_eq!(bench.booted(62), Some(BootSource::Cd("http://a/b.iso".into())));
    bench.reset(100, ResetType::ForceRestart);
    assert_eq!(bench.booted(130), None);
    assert_eq!(bench.booted(160), Some(BootSource::Hdd));

    bench.order("Pxe", Enabled::Continuous);
    for start in [200, 300] {
        bench.reset(start, ResetType::ForceRestart);
        assert_eq!(bench.booted(start + 60), Some(BootSource::Pxe));
    }
    assert_eq!(bench.server.boot.enabled, Enabled::Continuous);
    assert_eq!(bench.server.boots, 4);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_boot_falls_back_to_the_disk() {
    for (target, medium, from) in [
        ("Cd", None, BootSource::Hdd),
        ("Cd", Some("http://a/b.iso"), BootSource::Cd("http://a/b.iso".into())),
        ("Hdd", Some("http://a/b.iso"), BootSource::Hdd),
        ("Usb", None, BootSource::Hdd),
        ("UefiHttp", None, BootSource::UefiHttp(None)),
        ("BiosSetup", None, BootSource::Other("BiosSetup".into())),
    ] {
        let mut bench = Bench::new(PowerState::Off);
        if let Some(image) = medium {
            bench.insert(image);
        }
        bench.order(target, Enabled::Once);
        bench.reset(0, ResetType::On);
        assert_eq!(bench.booted(100), Some(from), "{target} {medium:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn firmware_that_ignores_once_boots_the_disk_and_consumes_it() {
    let mut bench = Bench::new(PowerState::Off);
    bench.once = Once::Consumed;
    bench.order("Pxe", Enabled::Once);
    bench.reset(0, ResetType::On);
    assert_eq!(bench.booted(100), Some(BootSource::Hdd));
    assert_eq!(bench.server.boot.enabled, Enabled::Disabled);
}

#[tokio::test(start_paused = true)]
async fn firmware_that_keeps_once_boots_the_disk_and_leaves_it_armed() {
    let mut bench = Bench::new(PowerState::Off);
    bench.once = Once::Kept;
    bench.order("Pxe", Enabled::Once);
    bench.reset(0, ResetType::On);
    assert_eq!(bench.booted(100), Some(BootSource::Hdd));
    assert_eq!((bench.server.boot.target.as_str(), bench.server.boot.enabled), ("Pxe", Enabled::Once));
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_does_not_listen_stays_until_it_is_forced() {
    let mut bench = Bench::new(PowerState::On);
    bench.server.guest = Guest::Ignores;
    bench.reset(0, ResetType::GracefulShutdown);
    assert_eq!(bench.at(600).power(), PowerState::On);
    assert_eq!(bench.server.resets, 0);
    bench.reset(600, ResetType::ForceOff);
    assert_eq!(bench.at(603).power(), PowerState::Off);
    assert_eq!(bench.server.booted, None);
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_in_both_dialects() {
    let mut bench = Bench::new(PowerState::Off);
    let told = |bench: &mut Bench, seconds| {
        let now = bench.start + Duration::from_secs(seconds);
        let server = bench.at(seconds);
        (server.boot_progress(now).unwrap(), server.post_state(now))
    };
    assert_eq!(told(&mut bench, 0), ("None", "PowerOff"));
    bench.reset(0, ResetType::On);
    assert_eq!(told(&mut bench, 5), ("SystemHardwareInitializationComplete", "InPost"));
    assert_eq!(told(&mut bench, 50), ("SystemHardwareInitializationComplete", "InPostDiscoveryComplete"));
    assert_eq!(told(&mut bench, 63), ("OSBootStarted", "FinishedPost"));
    assert_eq!(told(&mut bench, 100), ("OSRunning", "FinishedPost"));
}

#[tokio::test(start_paused = true)]
async fn on_while_going_down_comes_back_up() {
    let mut bench = Bench::new(PowerState::On);
    bench.reset(0, ResetType::ForceOff);
    bench.reset(1, ResetType::On);
    assert_eq!(bench.at(4).power(), PowerState::PoweringOn);
    assert_eq!(bench.at(5).power(), PowerState::On);
}
