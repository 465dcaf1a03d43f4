//! Answers BMCs that read a boot image, and servers that fetch their bootstrap data.
//!
//! | path (below the boot URL) | who | what |
//! |---|---|---|
//! | `/iso/<deployment>/<ticket>/boot.iso` | a BMC | any range of the rewritten image, while the deployment lasts |
//! | `/config/<deployment>/<ticket>` | the server | its bootstrap data: after its power-on, from the first address that asks, for 15 minutes |
//! | `/registry/<probe>/<ticket>/…` | a probe | what it has found, see [`registry`] |
//! | `/ipxe/boot.ipxe`, `/ipxe/<mac>/<uuid>` | a server that boots from the network | what it is to boot now, see [`network`] |
//! | `/boot/<deployment>/<ticket>/<file>` | the same server | kernel, initial RAM disk and the like, while the deployment lasts |
//! | `/files/<name>` | firmware | iPXE itself |
//!
//! A client without access learns nothing: an unknown deployment, a ticket of another host and a released host get the same
//! answer. Every replica serves, and none keeps anything that another one would need: what is there to serve and who came first
//! is the [`Directory`]'s to know.

mod directory;
mod gate;
mod image;
mod images;
mod listen;
pub mod network;
mod problem;
mod range;
pub mod registry;
mod room;
mod stall;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue, IF_RANGE,
    RANGE, RETRY_AFTER,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

pub use self::directory::{Boots, Bootstrap, Client, Configuration, Delivery, Directory, Step, Unavailable};
pub use self::gate::{Gate, OPEN_FOR, config_gate};
pub use self::image::{Image, IsoOrder};
pub use self::images::Images;
pub use self::listen::{Limits, TlsInvalid, tls};
use self::network::Network;
pub use self::problem::Problem;
use self::range::Wanted;
use self::registry::{Refusal, Registry};
use crate::fetch::FetchError;
use crate::links::{Asked, Call, ConfigFile, Open, What};
use crate::ticket::{Holder, Key, Purpose, Ticket};

/// What an answer consists of. Ends early, and the connection with it, when the image cannot be read to its end.
pub type Body = UnsyncBoxBody<Bytes, FetchError>;

/// When to ask again after something that passes by itself. BMCs mostly do not read it, `curl` does.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("10");

/// The service, without its sockets.
pub struct Service {
    directory: Arc<dyn Directory>,
    key: Key,
    images: Arc<Images>,
    registry: Option<Arc<dyn Registry>>,
    network: Option<Network>,
    /// A dummy holder whose ticket is checked for unknown deployments, so that the answer takes as long.
    nobody: Holder,
}

impl Service {
    /// Serves what is in the directory to clients that have a ticket made with this key.
    pub fn new(directory: Arc<dyn Directory>, key: Key, images: Arc<Images>) -> Self {
        let word = || "nobody".to_owned();
        let nobody = Holder { kind: String::new(), namespace: word(), host: word(), claim: word(), deployment: word() };
        Self { directory, key, images, registry: None, network: None, nobody }
    }

    /// Takes the reports of probes, too.
    pub fn with_registry(self, registry: Arc<dyn Registry>) -> Self {
        Self { registry: Some(registry), ..self }
    }

    /// Serves servers that boot from the network, too.
    pub fn with_network(self, network: Network) -> Self {
        Self { network: Some(network), ..self }
    }

    /// Answers one request from that address. Its body is only read if a ticket allows for one.
    pub async fn answer<B>(&self, from: IpAddr, head: &Parts, body: B) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match Asked::parse(head.uri.path()) {
            Some(Asked { what: What::Registry(call), deployment, ticket }) => {
                self.take_report(&call, &deployment, &ticket, from, head, body).await
            }
            _ if head.method != Method::GET && head.method != Method::HEAD => not_allowed("GET, HEAD"),
            Some(asked) => self.hand_out(&asked, from, head).await,
            None => match (&self.network, Open::parse(head.uri.path())) {
                (Some(network), Some(open)) => self.answer_openly(network, open, from, head).await,
                _ => not_found(),
            },
        }
    }

    async fn hand_out(&self, asked: &Asked, from: IpAddr, head: &Parts) -> Response<Body> {
        let delivery = self.directory.delivery(&asked.deployment);
        let holder = delivery.as_ref().map_or(&self.nobody, |delivery| &delivery.holder);
        let admitted = self.key.admits(&asked.ticket, asked.what.purpose(), holder);
        match delivery {
            Some(delivery) if admitted => match asked.what {
                What::Iso => self.iso(delivery, head).await,
                What::Config(file) => self.config(&delivery, file, from, &head.method).await,
                What::Boot(part) => self.part(delivery, part, from, head).await,
                What::Registry(_) => not_found(),
            },
            _ => {
                tracing::debug!(deployment = asked.deployment, %from, "ticket refused");
                not_found()
            }
        }
    }

    async fn take_report<B>(
        &self,
        call: &Call,
        id: &str,
        ticket: &Ticket,
        from: IpAddr,
        head: &Parts,
        body: B,
    ) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Some(registry) = &self.registry else { return not_found() };
        let probe = registry.probe(id);
        let holder = probe.as_ref().map_or(&self.nobody, |probe| &probe.holder);
        let admitted = self.key.admits(ticket, Purpose::Registry, holder);
        let Some(probe) = probe.filter(|_| admitted) else {
            tracing::debug!(probe = id, %from, "ticket refused");
            registry.refused(Refusal::Ticket);
            return not_found();
        };
        registry::answer(registry.as_ref(), &probe, call, from, head, body).await
    }

    async fn iso(&self, delivery: Delivery, head: &Parts) -> Response<Body> {
        let Some(order) = &delivery.iso else { return not_found() };
        let image = match self.images.prepare(order).await {
            Ok(image) => image,
            Err(problem) => return self.failed(&delivery, &problem),
        };
        let (answer, range) = match ranged(head, image.size(), image.etag(), "application/x-iso9660-image") {
            Ok(found) => found,
            Err(answer) => return *answer,
        };
        let body = if head.method == Method::HEAD { text("") } else { self.body(delivery, image, range) };
        sent(answer.body(body))
    }

    fn body(&self, delivery: Delivery, image: Arc<Image>, range: std::ops::Range<u64>) -> Body {
        let (directory, images) = (self.directory.clone(), self.images.clone());
        let bytes = image.clone().stream(range).inspect_err(move |error| {
            let problem = Problem::Fetch(error.clone());
            tracing::warn!(deployment = delivery.holder.deployment, %problem, "cannot read an ISO to its end");
            directory.report(&delivery, &problem);
            if matches!(error, FetchError::Changed { .. })
                && let Some(order) = &delivery.iso
            {
                images.forget(order, &image);
            }
        });
        StreamBody::new(bytes.map_ok(Frame::data)).boxed_unsync()
    }

    async fn config(&self, delivery: &Delivery, file: ConfigFile, from: IpAddr, method: &Method) -> Response<Body> {
        if !delivery.config {
            return not_found();
        }
        match file {
            ConfigFile::Whole | ConfigFile::UserData => {}
            // Nothing that must be kept from anybody who has the ticket.
            ConfigFile::MetaData => return plain(full(meta_data(&delivery.holder).into())),
            ConfigFile::VendorData => return plain(text("")),
        }
        // A HEAD request must not lock out the server that needs the data.
        if method != Method::GET {
            return not_allowed("GET");
        }
        if !delivery.powered_on {
            return self.failed(delivery, &Problem::TooEarly { from });
        }
        // First the data, then the gate: the time begins when there is something to fetch.
        let bootstrap = match self.directory.bootstrap(delivery).await {
            Ok(bootstrap) => bootstrap,
            Err(unavailable) => return self.failed(delivery, &Problem::Bootstrap(unavailable)),
        };
        let gate = match self.directory.first_seen(delivery, from).await {
            Ok(gate) => gate,
            Err(unavailable) => return self.failed(delivery, &Problem::Bootstrap(unavailable)),
        };
        if let Some(problem) = Problem::of_gate(gate, from) {
            tracing::warn!(deployment = delivery.holder.deployment, %problem, "bootstrap data refused");
            self.directory.report(delivery, &problem);
            return not_found();
        }
        tracing::info!(deployment = delivery.holder.deployment, %from, "bootstrap data fetched");
        let answer = Response::builder().header(CACHE_CONTROL, "no-store").header(CONTENT_TYPE, bootstrap.content_type);
        sent(answer.body(full(bootstrap.bytes)))
    }

    fn failed(&self, delivery: &Delivery, problem: &Problem) -> Response<Body> {
        tracing::warn!(deployment = delivery.holder.deployment, %problem, "cannot serve the request");
        self.directory.report(delivery, problem);
        let answer = Response::builder().header(CACHE_CONTROL, "no-store");
        let answer = if problem.is_transient() {
            answer.status(StatusCode::SERVICE_UNAVAILABLE).header(RETRY_AFTER, ASK_AGAIN)
        } else {
            answer.status(StatusCode::BAD_GATEWAY)
        };
        sent(answer.body(text("this cannot be served now; the conditions of the host say why\n")))
    }
}

/// What cloud-init wants to know of the server. Another deployment is another instance, for which everything is set up anew.
fn meta_data(holder: &Holder) -> String {
    format!("instance-id: {}\nlocal-hostname: {}\n", holder.deployment, holder.host)
}

/// The head of an answer with a file of that size, and the part of the file that is wanted; or the whole answer, if that has no body.
fn ranged(
    head: &Parts,
    size: u64,
    etag: Option<&HeaderValue>,
    content_type: &'static str,
) -> Result<(http::response::Builder, std::ops::Range<u64>), Box<Response<Body>>> {
    let header = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // Whether parts fit to what the client has, by its `If-Range`. Dates are not ours.
    let fits = header(IF_RANGE).is_none_or(|mark| etag.is_some_and(|etag| etag.as_bytes() == mark.trim().as_bytes()));
    let wanted = match head.method {
        Method::GET if fits => range::wanted(header(RANGE), size),
        _ => Wanted::Whole,
    };
    let mut answer = Response::builder()
        .header(ACCEPT_RANGES, "bytes")
        .header(CONTENT_TYPE, content_type)
        // It may contain a ticket.
        .header(CACHE_CONTROL, "private, no-store");
    if let Some(etag) = etag {
        answer = answer.header(ETAG, etag);
    }
    let range = match wanted {
        Wanted::Whole => 0..size,
        Wanted::Part(range) => {
            let said = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            answer = answer.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, said);
            range
        }
        Wanted::Nothing => {
            let answer = answer.status(StatusCode::RANGE_NOT_SATISFIABLE);
            return Err(Box::new(sent(answer.header(CONTENT_RANGE, format!("bytes */{size}")).body(text("")))));
        }
    };
    Ok((answer.header(CONTENT_LENGTH, range.end - range.start), range))
}

/// Text that nobody may keep.
fn plain(body: Body) -> Response<Body> {
    sent(Response::builder().header(CONTENT_TYPE, "text/plain").header(CACHE_CONTROL, "no-store").body(body))
}

fn not_found() -> Response<Body> {
    let answer = Response::builder().status(StatusCode::NOT_FOUND).header(CACHE_CONTROL, "no-store");
    sent(answer.body(text("not found\n")))
}

fn not_allowed(methods: &'static str) -> Response<Body> {
    sent(Response::builder().status(StatusCode::METHOD_NOT_ALLOWED).header(ALLOW, methods).body(text("")))
}

fn text(text: &'static str) -> Body {
    full(Bytes::from_static(text.as_bytes()))
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// Our headers are always valid; if one is not, the answer is an empty 500 instead of a panic.
fn sent(answer: Result<Response<Body>, http::Error>) -> Response<Body> {
    answer.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot build the response");
        let mut answer = Response::new(text(""));
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        answer
    })
}
