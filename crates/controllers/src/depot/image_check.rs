//! Checks the images that claims ask for, before a server is claimed for them.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use boot::iso::Firmware;
use boot::os::Family;
use boot::serve::Problem;
use boot::ticket::Holder;
use engine::claim::{Image, Refused};
use engine::host::Payload;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::{Depot, NetworkBoots, order_with};
use crate::object::ObjectId;

/// How long a good image is believed to be one.
const GOOD_FOR: Duration = Duration::from_mins(1);
/// How long before a bad one is looked at again.
const BAD_FOR: Duration = Duration::from_secs(10);
/// How long a look may take before it is told about.
const SLOW_AFTER: Duration = Duration::from_secs(10);
/// How long what nobody asks for is remembered.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(10);

/// An image, and what would be written into it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) image: String,
    pub(crate) check: Check,
    pub(crate) words: ImageWords,
}

/// What is asked about an image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Check {
    /// Whether parameters can be written into an ISO.
    Iso {
        family: Family,
        /// The user's own configuration; `None` if we serve it.
        config_url: Option<String>,
        /// What the server boots with, if that was said.
        firmware: Option<Firmware>,
    },
    /// Whether everything is there that is to be booted from the network, and is what it should be.
    Network(Payload),
}

/// What a dialect calls what an image is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageWords {
    /// The field with its URL.
    pub(crate) image: &'static str,
    /// The field that says what the server boots with.
    pub(crate) firmware: &'static str,
    /// What to do about an image that no kernel parameters can be written into.
    pub(crate) advice: &'static str,
}

/// Has images checked, each once for all who ask.
pub(crate) struct ImageCheck {
    depot: Arc<Depot>,
    wake: UnboundedSender<ObjectId>,
    verdicts: Arc<Mutex<HashMap<Question, Verdict>>>,
    tasks: TaskTracker,
}

struct Verdict {
    image: Image,
    /// When the last look ended, or the first one began.
    at: Instant,
    /// Who waits for a look that is under way.
    waiting: Option<Vec<ObjectId>>,
}

impl ImageCheck {
    pub(crate) fn new(depot: Arc<Depot>, wake: UnboundedSender<ObjectId>) -> Self {
        Self { depot, wake, verdicts: Arc::default(), tasks: TaskTracker::new() }
    }

    /// How servers are served that boot from the network.
    pub(crate) fn boots(&self) -> NetworkBoots {
        let depot = &self.depot;
        NetworkBoots { serves_network: depot.serves_network(), answers_dhcp: depot.answers_dhcp() }
    }

    /// How BMCs fetch the images that are served for them.
    pub(crate) fn scheme(&self) -> &str {
        self.depot.scheme()
    }

    /// What is known of an image.
    pub(crate) fn verdict(&self, question: &Question) -> Image {
        self.verdicts().get(question).map_or(Image::Unknown, |verdict| verdict.image.clone())
    }

    /// Has an image looked at, unless that was done lately. Whoever asked is woken when it is known.
    pub(crate) fn look(&self, question: &Question, asker: &ObjectId) {
        let now = Instant::now();
        let mut verdicts = self.verdicts();
        verdicts.retain(|_, verdict| verdict.waiting.is_some() || now - verdict.at < FORGOTTEN_AFTER);
        let verdict =
            verdicts.entry(question.clone()).or_insert(Verdict { image: Image::Unknown, at: now, waiting: None });
        if let Some(waiting) = &mut verdict.waiting {
            if !waiting.contains(asker) {
                waiting.push(asker.clone());
            }
            return;
        }
        let fresh_for = match verdict.image {
            Image::Unknown => Duration::ZERO,
            Image::Good => GOOD_FOR,
            Image::Unreachable(_) | Image::Bad(_) => BAD_FOR,
        };
        if now - verdict.at < fresh_for {
            return;
        }
        verdict.waiting = Some(vec![asker.clone()]);
        drop(verdicts);
        let (depot, known, wake, question) =
            (self.depot.clone(), self.verdicts.clone(), self.wake.clone(), question.clone());
        self.tasks.spawn(async move {
            let mut inspection = pin!(inspect(&depot, &question));
            let image = if let Ok(image) = timeout(SLOW_AFTER, inspection.as_mut()).await {
                image
            } else {
                tell_slow(&known, &question, &wake);
                inspection.await
            };
            let mut verdicts = known.lock().unwrap_or_else(PoisonError::into_inner);
            let found = Verdict { image, at: Instant::now(), waiting: None };
            let before = verdicts.insert(question.clone(), found);
            for asker in before.and_then(|verdict| verdict.waiting).into_iter().flatten() {
                // Nobody listens any more only when the loop has stopped.
                wake.send(asker).ok();
            }
        });
    }

    fn verdicts(&self) -> MutexGuard<'_, HashMap<Question, Verdict>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has those told who wait for the first look at an image, since it may go on for minutes.
fn tell_slow(known: &Mutex<HashMap<Question, Verdict>>, question: &Question, wake: &UnboundedSender<ObjectId>) {
    let mut verdicts = known.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(verdict) = verdicts.get_mut(question).filter(|verdict| verdict.image == Image::Unknown) else { return };
    verdict.image = Image::Unreachable(Refused {
        reason: "IsoServerSlow".to_owned(),
        message: format!(
            "{} {}: its server sends slowly, the boot configuration of the image is still being read after {} s. It goes on by itself.",
            question.words.image,
            without_query(&question.image),
            SLOW_AFTER.as_secs()
        ),
    });
    for asker in verdict.waiting.iter().flatten() {
        wake.send(asker.clone()).ok();
    }
}

async fn inspect(depot: &Depot, question: &Question) -> Image {
    let checked = match &question.check {
        Check::Network(payload) => boot::serve::network::inspect(&depot.fetcher, payload).await,
        Check::Iso { family, config_url, firmware } => {
            let rehearsed = match config_url {
                Some(url) => Ok(url.clone()),
                None => depot.config_url(&nobody()),
            };
            let order = rehearsed.and_then(|url| order_with(&question.image, *family, &url));
            let order = match order {
                Ok(order) => order,
                Err(failure) => {
                    let message = failure.to_string();
                    return Image::Bad(Refused { reason: failure.kind.reason().to_owned(), message });
                }
            };
            match depot.images.prepare(&order).await {
                Ok(image) => match firmware.filter(|firmware| !image.covers(*firmware)) {
                    Some(firmware) => return Image::Bad(not_for(firmware, question)),
                    None => Ok(()),
                },
                Err(problem) => Err(problem),
            }
        }
    };
    match checked {
        Ok(()) => Image::Good,
        Err(problem) if problem.is_transient() => Image::Unreachable(refused(&problem, question)),
        Err(problem) => Image::Bad(refused(&problem, question)),
    }
}

/// Somebody whose URLs are as long as anybody's: whether the image has room for them is part of the question.
fn nobody() -> Holder {
    let word = || "nobody".to_owned();
    Holder {
        kind: String::new(),
        namespace: word(),
        host: word(),
        claim: word(),
        deployment: crate::fingerprint::digest("nobody"),
    }
}

fn refused(problem: &Problem, question: &Question) -> Refused {
    let mut told = format!("{} {}: {problem}.", question.words.image, without_query(&question.image));
    if matches!(problem, Problem::Iso(_)) {
        told = format!("{told} {}", question.words.advice);
    }
    Refused { reason: problem.reason().to_owned(), message: told }
}

fn not_for(firmware: Firmware, question: &Question) -> Refused {
    let (mode, other) = match firmware {
        Firmware::Uefi => ("UEFI", "Legacy"),
        Firmware::Bios => ("Legacy", "UEFI"),
    };
    let (words, image) = (question.words, without_query(&question.image));
    Refused {
        reason: "BootModeNotCovered".to_owned(),
        message: format!(
            "{} {image}: the kernel parameters can be written into what {other} boots of this image, but not into what {mode} boots. Use {} {other}, or another image.",
            words.image, words.firmware
        ),
    }
}

/// A query may be a signature.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use api::beskar7::Beskar7Machine;
    use boot::fetch::{Fetcher, Guard, Patience};
    use boot::links::Links;
    use boot::ticket::Key;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tokio::task::JoinSet;

    use super::*;

    /// A server that never stops sending, but sends one byte every five seconds.
    async fn dribble(listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut asked = vec![0; 4096];
                let got = stream.read(&mut asked).await.unwrap();
                let asked = String::from_utf8_lossy(&asked[..got]).to_lowercase();
                let range = asked.lines().find_map(|line| line.strip_prefix("range: bytes=")).unwrap().trim();
                let (first, last) = range.split_once('-').unwrap();
                let length = last.parse::<u64>().unwrap() - first.parse::<u64>().unwrap() + 1;
                let head = format!(
                    "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {range}/1000000\r\ncontent-length: {length}\r\n\r\n"
                );
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(b"x").await;
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_dribbles_is_told_about_after_seconds_and_given_up_after_minutes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/os.iso?secret", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(dribble(listener));
        let guard = Guard::allowing(["127.0.0.0/8".parse().unwrap()]);
        let fetcher = Fetcher::new(guard, None, Patience::default()).unwrap();
        let key = Key::draw(&ring::rand::SystemRandom::new()).unwrap();
        let depot = Arc::new(Depot::new(Links::new("http://192.0.2.5").unwrap(), key, fetcher, None));
        let (wake, mut woken) = mpsc::unbounded_channel();
        let check = ImageCheck::new(depot, wake);
        let question = Question {
            image: url,
            check: Check::Iso { family: Family::Kairos, config_url: None, firmware: None },
            words: ImageWords { image: "image", firmware: "firmware", advice: "" },
        };
        let asker = ObjectId::named::<Beskar7Machine>(Some("racks"), "node-01");
        check.look(&question, &asker);
        let begun = Instant::now();
        for (reason, seconds) in [("IsoServerSlow", 10), ("IsoServerTooSlow", 120)] {
            assert_eq!(woken.recv().await.unwrap(), asker);
            let Image::Unreachable(why) = check.verdict(&question) else { panic!("{reason}") };
            assert_eq!((why.reason.as_str(), begun.elapsed().as_secs()), (reason, seconds), "{}", why.message);
            assert!(why.message.contains("/os.iso") && !why.message.contains("secret"), "{}", why.message);
            check.look(&question, &asker);
        }
    }
}
