use api::beskar7::PhysicalHost;
use bmc::{Credentials, InProcess};
use futures::FutureExt as _;
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::clock::TokioClock;

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines with these words.
    fn lines(&self, words: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }
}

const INPUTS: &str = "inputs";

fn key() -> ObjectId {
    ObjectId { uid: Some("1".into()), ..ObjectId::named::<PhysicalHost>(Some("default"), "host") }
}

fn line() -> Line {
    let address = Address::parse("https://10.0.0.1").unwrap();
    let credentials = Credentials::new("admin", "password");
    Line {
        key: "line".into(),
        endpoint: Endpoint { address, credentials, family: None },
        trust: Trust::Anything,
        system: SystemChoice::Only,
    }
}

fn hands(bmc: &sim::Bmc, term: &CancellationToken) -> (Arc<Hands>, UnboundedReceiver<ObjectId>) {
    let (wake, woken) = mpsc::unbounded_channel();
    let bmc = bmc.clone();
    let dial: Dial = Arc::new(move |_, _| Ok(Arc::new(InProcess::new(bmc.clone())) as Arc<dyn Transport>));
    let metrics = Metrics::default();
    let clock = Arc::new(TokioClock::starting_at("2026-11-17T08:00:00Z".parse().unwrap()));
    (Hands::new(dial, Arc::new(metrics.clone()), metrics, clock, 4, wake, term), woken)
}

fn connect(hands: &Hands) {
    hands.welcome(&key());
    hands.connect(&key(), INPUTS, line()).unwrap();
}

fn look() -> Job {
    Job { number: 0, acts: Vec::new(), look: Scope::Power }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(1));
    for _ in 0..20 {
        let term = CancellationToken::new();
        let (hands, mut woken) = hands(&bmc, &term);
        connect(&hands);
        hands.submit(&key(), look());
        woken.recv().await.unwrap();
        assert_eq!(bmc.sessions_open(), 1);
        term.cancel();
        // Somebody else leads already: the work is dropped where it stands.
        assert!(hands.stop().now_or_never().is_none());
        drop(hands);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bmc.sessions_open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_inventory_that_was_read_while_the_last_one_was_stored_is_kept() {
    let (bmc, term) = (sim::Bmc::instant(), CancellationToken::new());
    let (hands, mut woken) = hands(&bmc, &term);
    connect(&hands);
    let mut sights = Vec::new();
    for number in 0..2 {
        hands.submit(&key(), Job { number, look: Scope::Inventory, ..look() });
        woken.recv().await.unwrap();
        sights.push(hands.sight(&key()).unwrap());
    }
    let has_inventory = || hands.sight(&key()).unwrap().seen.unwrap().hardware.is_some();
    hands.drop_hardware(&key(), &sights[0]);
    assert!(has_inventory());
    hands.drop_hardware(&key(), &sights[1]);
    assert!(!has_inventory());
    hands.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_during_a_login_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(2));
    for after in 0..8 {
        let term = CancellationToken::new();
        let (hands, _woken) = hands(&bmc, &term);
        connect(&hands);
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_secs(after)).await;
        term.cancel();
        drop(hands);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(bmc.sessions_open(), 0, "lost after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_let_go_of_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
    connect(&hands);
    hands.submit(&key(), look());
    woken.recv().await.unwrap();
    hands.forget(&key());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bmc.sessions_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_let_go_of_is_not_spoken_to_by_what_was_begun_before() {
    let bmc = sim::Bmc::instant();
    let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
    connect(&hands);
    hands.submit(&key(), look());
    woken.recv().await.unwrap();
    hands.forget(&key());
    // A reconcile that had begun before.
    hands.connect(&key(), INPUTS, line()).unwrap();
    hands.refuse(&key(), INPUTS, 0, Failure::new(Kind::Unreachable, "nobody is there"));
    hands.submit(&key(), look());
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!((bmc.sessions_open(), hands.sight(&key())), (0, None));
    assert_eq!(bmc.counters().of(sim::Verb::Post, sim::Kind::Sessions), 1);

    // It is back, say because its label says again that it is ours.
    connect(&hands);
    hands.submit(&key(), look());
    woken.recv().await.unwrap();
    assert_eq!(bmc.sessions_open(), 1);
    hands.stop().await;
    hands.welcome(&key());
    assert!(!hands.knows(&key()), "nobody is spoken to after the end");
    assert_eq!(bmc.sessions_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_goes_at_any_moment_of_a_look_leaves_no_session_behind() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(7));
    for after in 0..40 {
        let (hands, _woken) = hands(&bmc, &CancellationToken::new());
        connect(&hands);
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_secs(after)).await;
        hands.forget(&key());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(bmc.sessions_open(), 0, "gone after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn other_credentials_at_any_moment_of_a_look_leave_only_the_session_of_the_new_ones() {
    let bmc = sim::Bmc::instant();
    bmc.set_latency(Duration::from_secs(7));
    for after in 0..40 {
        let (hands, _woken) = hands(&bmc, &CancellationToken::new());
        connect(&hands);
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_secs(after)).await;
        hands.connect(&key(), "other inputs", Line { key: "other line".into(), ..line() }).unwrap();
        hands.submit(&key(), look());
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(bmc.sessions_open(), 1, "changed after {after} s");
        hands.forget(&key());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(bmc.sessions_open(), 0, "changed after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_a_host_is_seen_within_a_minute_and_nobody_hears_of_the_tries() {
    for minutes in [1, 5, 60] {
        for effect in [sim::Effect::Refuse, sim::Effect::Drop, sim::Effect::Hang] {
            let bmc = sim::Bmc::instant();
            let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
            connect(&hands);
            bmc.faults().add(effect.clone().always());
            hands.submit(&key(), look());
            woken.recv().await.unwrap();
            tokio::time::sleep(Duration::from_mins(minutes)).await;
            assert!(woken.try_recv().is_err(), "{effect:?}: nothing new in {minutes} min");
            bmc.faults().clear();
            // What hangs since before the end of the outage is given up first.
            let limit = Duration::from_secs(if effect == sim::Effect::Hang { 100 } else { 60 });
            tokio::time::timeout(limit, woken.recv()).await.unwrap().unwrap();
            assert!(hands.sight(&key()).unwrap().seen.is_ok(), "{effect:?}");
            hands.stop().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_without_tls_is_warned_of_once_per_host_and_address() {
    let (log, _guard) = Log::begin();
    let bmc = sim::Bmc::instant();
    let named = |name: &str| ObjectId { name: name.into(), uid: Some(format!("plain-{name}")), ..key() };
    let plain = |line_key: &str, url: &str| {
        let endpoint = Endpoint { address: Address::parse(url).unwrap(), ..line().endpoint };
        Line { key: line_key.into(), endpoint, ..line() }
    };
    // Two terms of one process, and several passwords.
    for _ in 0..2 {
        let (hands, _woken) = hands(&bmc, &CancellationToken::new());
        for (name, line_key, url) in [
            ("a", "1", "http://10.0.0.1"),
            ("a", "2", "http://10.0.0.1"),
            ("b", "2", "http://10.0.0.1"),
            ("a", "3", "http://10.0.0.2"),
            ("a", "1", "http://10.0.0.1"),
            ("c", "4", "https://10.0.0.3"),
        ] {
            hands.welcome(&named(name));
            hands.connect(&named(name), line_key, plain(line_key, url)).unwrap();
        }
        hands.stop().await;
    }
    let warnings = log.lines("without TLS");
    assert_eq!(warnings.len(), 3, "{warnings:#?}");
    let told = |host: &str, bmc: &str| {
        warnings.iter().any(|line| line.contains("WARN") && line.contains(host) && line.contains(bmc))
    };
    assert!(told("default/a", "http://10.0.0.1") && told("default/b", "http://10.0.0.1"), "{warnings:#?}");
    assert!(told("default/a", "http://10.0.0.2") && warnings[0].contains("use https"), "{warnings:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_just_seen_of_a_bmc_is_not_asked_again_for_another_object_behind_it() {
    let bmc = sim::Bmc::instant();
    let (hands, mut woken) = hands(&bmc, &CancellationToken::new());
    connect(&hands);
    let survey = || Job { look: Scope::Service, ..look() };
    hands.submit(&key(), survey());
    woken.recv().await.unwrap();
    let (asked, first) = (bmc.counters().total(), hands.sight(&key()).unwrap());

    let other = ObjectId { uid: Some("2".into()), ..key() };
    hands.welcome(&other);
    hands.connect(&other, "other inputs", line()).unwrap();
    hands.submit(&other, survey());
    assert_eq!(woken.recv().await.unwrap(), other);
    let shared = hands.sight(&other).unwrap();
    assert_eq!(bmc.counters().total(), asked);
    assert_eq!((&shared.seen, shared.at, shared.inputs.as_str()), (&first.seen, first.at, "other inputs"));

    // Neither twice for the same object, nor when it is old.
    hands.submit(&other, survey());
    woken.recv().await.unwrap();
    let again = bmc.counters().total();
    assert!(again > asked);
    tokio::time::sleep(Duration::from_mins(1)).await;
    hands.submit(&key(), survey());
    woken.recv().await.unwrap();
    assert!(bmc.counters().total() > again);
    hands.stop().await;
}
