//! Boots from the network: scripts for iPXE, and the files that they name.
//!
//! What a server boots is not decided here: the [`Directory`](super::Directory) says it of each client, and this tells iPXE. Whoever asks
//! first as a server gets what that server boots: nothing on such a network proves who somebody is.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use engine::host::Payload;
use futures::TryStreamExt as _;
use http::request::Parts;
use http::{Method, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;

use super::{
    Body, Boots, Client, Configuration, Delivery, Directory, Problem, Service, Step, full, not_allowed, not_found,
    plain, ranged, sent, text,
};
use crate::fetch::{Fetcher, HttpSource};
use crate::ipxe::{self, Fetched};
use crate::iso::{Parameters, Source as _};
use crate::kind::{HEAD, Wanted};
use crate::links::{Links, Open, Part};
use crate::ticket::Purpose;
use crate::uki;

/// A word in kernel parameters that stands for the URL of the configuration.
pub const CONFIG_WORD: &str = "BESKAR7_CONFIG_URL";
/// The longest kernel command line on x86, without the closing zero.
const LINE_LIMIT: usize = 2047;

/// What servers need that boot from the network.
#[derive(Debug, Clone)]
pub struct Network {
    links: Links,
    fetcher: Fetcher,
    /// Boot files such as iPXE, by name.
    files: Arc<BTreeMap<String, Bytes>>,
}

impl Network {
    /// Serves below these links what is read through the fetcher, and these boot files.
    pub fn new(links: Links, fetcher: Fetcher, files: Arc<BTreeMap<String, Bytes>>) -> Self {
        Self { links, fetcher, files }
    }
}

/// A part on its way to a server. It is told when the connection has taken the last byte, and lets go of the body.
struct Handing {
    left: u64,
    directory: Arc<dyn Directory>,
    delivery: Delivery,
    part: Part,
    from: IpAddr,
}

impl Drop for Handing {
    fn drop(&mut self) {
        if self.left == 0 {
            self.directory.note(&self.delivery, Step::Fetched(self.part), self.from);
        }
    }
}

impl Service {
    pub(super) async fn answer_openly(
        &self,
        network: &Network,
        open: Open,
        from: IpAddr,
        head: &Parts,
    ) -> Response<Body> {
        match open {
            Open::Entrance => script(ipxe::entrance(&network.links)),
            Open::File(name) => match network.files.get(&name) {
                Some(file) => boot_file(file, head),
                None => not_found(),
            },
            // Whether a script is there is asked by no client, and it would count as asked.
            Open::Script { .. } if head.method != Method::GET => not_allowed("GET"),
            Open::Script { mac, uuid } => self.script(network, Client { mac, uuid }, from).await,
        }
    }

    async fn script(&self, network: &Network, client: Client, from: IpAddr) -> Response<Body> {
        let again = network.links.script(&client.mac, &client.uuid);
        let delivery = match self.directory.boots(&client) {
            Boots::Nothing(why) => {
                tracing::info!(mac = ?client.mac, uuid = ?client.uuid, %from, why, "nothing to boot for a client");
                return script(ipxe::local(&why));
            }
            Boots::Disk => return script(ipxe::local("This server boots its disk.")),
            Boots::Payload(delivery) => *delivery,
        };
        self.directory.note(&delivery, Step::Asked, from);
        match self.told(network, &delivery, &again).await {
            Ok(told) => {
                tracing::info!(host = delivery.holder.host, deployment = delivery.holder.deployment, %from, "script handed out");
                script(told)
            }
            Err(problem) => {
                self.failed(&delivery, &problem);
                script(ipxe::wait(
                    "What this server is to boot cannot be served now; the conditions of the host say why.",
                    &again,
                ))
            }
        }
    }

    /// The script for what is ordered.
    async fn told(&self, network: &Network, delivery: &Delivery, again: &str) -> Result<String, Problem> {
        let ticket = self.key.ticket(Purpose::Boot, &delivery.holder);
        let link = |part: Part| {
            let url = network.links.part(part, &delivery.holder.deployment, &ticket);
            url.map_err(|error| Problem::Untellable(error.to_string()))
        };
        let fetched = |part: Part| Ok::<_, Problem>(Fetched { name: part.to_string(), url: link(part)? });
        match &delivery.payload {
            None | Some(Payload::Site) => Ok(ipxe::local("Other servers of this network say what to boot.")),
            Some(Payload::Script { .. }) => {
                let mut variables = vec![("beskar7-host", delivery.holder.host.clone())];
                if let Some(configuration) = &delivery.configuration {
                    variables.push(("beskar7-config-url", self.config_link(network, delivery, configuration)?));
                }
                Ok(ipxe::script(&link(Part::Script)?, &variables, again))
            }
            Some(Payload::Kernel { initrds, parameters, .. }) => {
                let parameters = self.parameters(network, delivery, parameters).await?;
                let initrds =
                    (0..initrds.len()).map(|number| fetched(Part::Initrd(number))).collect::<Result<Vec<_>, _>>()?;
                Ok(ipxe::kernel(&fetched(Part::Kernel)?, &initrds, &parameters, again))
            }
            Some(Payload::Efi { url, parameters }) => {
                let parameters = self.parameters(network, delivery, parameters).await?;
                let built_in =
                    uki::command_line(&network.fetcher.open(url).await?).await.map_err(crate::iso::IsoError::from)?;
                let all = [built_in.unwrap_or_default(), parameters].join(" ").trim().to_owned();
                Ok(ipxe::efi(&fetched(Part::Efi)?, &checked(all)?, again))
            }
        }
    }

    /// What the kernel is told: what the user wants, and where the configuration is.
    async fn parameters(&self, network: &Network, delivery: &Delivery, given: &str) -> Result<String, Problem> {
        let Some(configuration) = &delivery.configuration else { return checked(given.to_owned()) };
        let url = self.config_link(network, delivery, configuration)?;
        if given.contains(CONFIG_WORD) {
            return checked(given.replace(CONFIG_WORD, &url));
        }
        let ours = match (configuration.family, &configuration.url) {
            (Some(family), _) => family.parameters(&url)?,
            (None, Some(_)) => {
                return Err(Problem::Untellable(format!(
                    "which kernel parameter leads to the configuration is not known: name the system in osFamily, or put {CONFIG_WORD} into the kernel parameters"
                )));
            }
            (None, None) => {
                let bootstrap = self.directory.bootstrap(delivery).await.map_err(Problem::Bootstrap)?;
                if bootstrap.content_type.as_bytes().starts_with(b"application/vnd.coreos.ignition") {
                    Parameters::new([
                        "ignition.firstboot".to_owned(),
                        "ignition.platform.id=metal".into(),
                        format!("ignition.config.url={url}"),
                    ])?
                } else {
                    let ticket = self.key.ticket(Purpose::Config, &delivery.holder);
                    let seed = network.links.no_cloud(&delivery.holder.deployment, &ticket);
                    let seed = seed.map_err(|error| Problem::Untellable(error.to_string()))?;
                    Parameters::new([format!("ds=nocloud-net;s={seed}")])?
                }
            }
        };
        checked([given, &ours.line()].join(" ").trim().to_owned())
    }

    fn config_link(
        &self,
        network: &Network,
        delivery: &Delivery,
        configuration: &Configuration,
    ) -> Result<String, Problem> {
        if let Some(url) = &configuration.url {
            return Ok(url.clone());
        }
        let ticket = self.key.ticket(Purpose::Config, &delivery.holder);
        let link = network.links.config(&delivery.holder.deployment, &ticket);
        link.map_err(|error| Problem::Untellable(error.to_string()))
    }

    /// A part of what is booted, from the user's server.
    pub(super) async fn part(&self, delivery: Delivery, part: Part, from: IpAddr, head: &Parts) -> Response<Body> {
        let Some((network, url, wanted)) =
            self.network.as_ref().zip(place(&delivery, part)).map(|(network, (url, wanted))| (network, url, wanted))
        else {
            return not_found();
        };
        let source = match open(&network.fetcher, url, wanted).await {
            Ok(source) => Arc::new(source),
            Err(problem) => return self.failed(&delivery, &problem),
        };
        let size = source.size();
        let (answer, range) = match ranged(head, size, None, content_type(part)) {
            Ok(found) => found,
            Err(answer) => return *answer,
        };
        if head.method == Method::HEAD {
            return sent(answer.body(text("")));
        }
        let mut handed = (range.end == size).then(|| Handing {
            left: range.end - range.start,
            directory: self.directory.clone(),
            delivery: delivery.clone(),
            part,
            from,
        });
        let directory = self.directory.clone();
        let bytes = source.stream(range).inspect_err(move |error| {
            let problem = Problem::Fetch(error.clone());
            tracing::warn!(deployment = delivery.holder.deployment, %part, %problem, "cannot read a boot image to its end");
            directory.report(&delivery, &problem);
        });
        let bytes = bytes.inspect_ok(move |bytes| {
            if let Some(handed) = &mut handed {
                handed.left = handed.left.saturating_sub(bytes.len() as u64);
            }
        });
        sent(answer.body(StreamBody::new(bytes.map_ok(Frame::data)).boxed_unsync()))
    }
}

/// Looks whether everything is there that is to be booted, and is what it should be.
pub async fn inspect(fetcher: &Fetcher, payload: &Payload) -> Result<(), Problem> {
    match payload {
        Payload::Site => {}
        Payload::Script { url } => drop(open(fetcher, url, Wanted::Script).await?),
        Payload::Efi { url, .. } => drop(open(fetcher, url, Wanted::Efi).await?),
        Payload::Kernel { url, initrds, .. } => {
            open(fetcher, url, Wanted::Kernel).await?;
            for initrd in initrds {
                open(fetcher, initrd, Wanted::Initrd).await?;
            }
        }
    }
    Ok(())
}

async fn open(fetcher: &Fetcher, url: &str, wanted: Wanted) -> Result<HttpSource, Problem> {
    let source = fetcher.open(url).await?;
    let length = HEAD.min(usize::try_from(source.size()).unwrap_or(HEAD));
    let head = source.read_at(0, length).await.map_err(crate::iso::IsoError::from)?;
    wanted.check(&head, &Fetcher::origin_of(url))?;
    Ok(source)
}

/// Where a part comes from, and what it should be.
fn place(delivery: &Delivery, part: Part) -> Option<(&str, Wanted)> {
    match (delivery.payload.as_ref()?, part) {
        (Payload::Script { url }, Part::Script) => Some((url, Wanted::Script)),
        (Payload::Kernel { url, .. }, Part::Kernel) => Some((url, Wanted::Kernel)),
        (Payload::Kernel { initrds, .. }, Part::Initrd(number)) => Some((initrds.get(number)?, Wanted::Initrd)),
        (Payload::Efi { url, .. }, Part::Efi) => Some((url, Wanted::Efi)),
        _ => None,
    }
}

/// A line that a kernel takes as it is, and iPXE passes on as it is.
fn checked(line: String) -> Result<String, Problem> {
    if line.len() > LINE_LIMIT {
        return Err(Problem::Untellable(format!(
            "the kernel parameters have {} bytes, and kernels take {LINE_LIMIT}",
            line.len()
        )));
    }
    let is_plain = |word: &str| word.chars().all(|char| !char.is_control()) && !["&&", "||"].contains(&word);
    if line.split(' ').all(is_plain) {
        return Ok(line);
    }
    Err(Problem::Untellable(
        "the kernel parameters contain control characters, or && or || as a word, which iPXE would obey".to_owned(),
    ))
}

fn content_type(part: Part) -> &'static str {
    match part {
        Part::Script => "text/plain",
        Part::Kernel | Part::Initrd(_) => "application/octet-stream",
        // Some firmware looks at it.
        Part::Efi => "application/efi",
    }
}

fn script(told: String) -> Response<Body> {
    plain(full(told.into()))
}

fn boot_file(file: &Bytes, head: &Parts) -> Response<Body> {
    let (answer, range) = match ranged(head, file.len() as u64, None, "application/efi") {
        Ok(found) => found,
        Err(answer) => return *answer,
    };
    let is_head = head.method == Method::HEAD;
    let part = usize::try_from(range.start)
        .ok()
        .zip(usize::try_from(range.end).ok())
        .map(|(start, end)| file.slice(start..end));
    sent(answer.body(if is_head { text("") } else { full(part.unwrap_or_default()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_a_kernel_or_ipxe_would_not_take_as_it_is_is_refused() {
        assert_eq!(checked("console=ttyS0 a=b;c ${uuid}".into()).unwrap(), "console=ttyS0 a=b;c ${uuid}");
        for bad in ["a\nboot", "a || shell", "a && reboot", &"x".repeat(2048)] {
            assert!(matches!(checked(bad.to_owned()), Err(Problem::Untellable(_))), "{bad:?}");
        }
    }
}
