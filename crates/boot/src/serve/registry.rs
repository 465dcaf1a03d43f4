//! Takes what probes tell of the servers that they run on.
//!
//! | path (below the URL that a probe is given) | method | answer |
//! |---|---|---|
//! | `/register` | POST `{"systemUUID": …, "data": {…}}` | 201 |
//! | `/systems/<uuid>` | GET | what was registered, or 404 |
//! | `/delete/<uuid>` | DELETE | 200, or 404 |
//! | `/bootstate` | POST `{"systemUUID": …, "booted": …}` | 200, or 404 |
//!
//! The URL bears a ticket for one probe of one server, so nobody can speak for another one. Without a valid ticket, no body is read.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use engine::hardware::is_same_uuid;
use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body as HttpBody;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{ASK_AGAIN, Body, Unavailable, full, not_allowed, not_found, sent, text};
use crate::links::Call;
use crate::ticket::Holder;

/// The most that a probe may tell at once. One of a server with hundreds of devices tells a tenth of that.
pub const REPORT_LIMIT: usize = 256 * 1024;
/// Probes wait for an answer this long, less a second for the way.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// How long a probe may take to send what it tells.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Keeps what probes tell. Implemented by the part that watches the hosts.
pub trait Registry: Send + Sync + 'static {
    /// The probe of that id, if it is the last one of its server. Called for every request, so it must answer from memory.
    fn probe(&self, id: &str) -> Option<Probe>;

    /// Keeps a report, in place of an earlier one. Called only while the report is waited for.
    fn register<'a>(&'a self, probe: &'a Probe, report: String) -> BoxFuture<'a, Result<(), Unavailable>>;

    /// The report that is kept.
    fn reported<'a>(&'a self, probe: &'a Probe) -> BoxFuture<'a, Result<Option<String>, Unavailable>>;

    /// Forgets the report. Answers whether there was one.
    fn forget<'a>(&'a self, probe: &'a Probe) -> BoxFuture<'a, Result<bool, Unavailable>>;

    /// Notes that the server has booted what it was to boot. Answers whether it was to boot something.
    fn booted<'a>(&'a self, probe: &'a Probe) -> BoxFuture<'a, Result<bool, Unavailable>>;

    /// Counts a request that was refused.
    fn refused(&self, why: Refusal);
}

/// A probe of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Whose tickets open it.
    pub holder: Holder,
    /// UUID of the server.
    pub system: String,
    /// Whether its report is still waited for.
    pub open: bool,
}

/// Why a request to the registry was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The ticket is of another probe, or of one that is over.
    Ticket,
    /// The method is not one that this path takes.
    Method,
    /// The body is larger than [`REPORT_LIMIT`].
    TooLarge,
    /// The body did not come to its end in time.
    TooSlow,
    /// The body is not what it should be.
    Malformed,
    /// The server has another UUID.
    OtherSystem,
    /// The API server does not answer.
    Unavailable,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ticket,
        Self::Method,
        Self::TooLarge,
        Self::TooSlow,
        Self::Malformed,
        Self::OtherSystem,
        Self::Unavailable,
    ];

    /// The CamelCase word for metrics and logs.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Ticket => "TicketRefused",
            Self::Method => "MethodNotAllowed",
            Self::TooLarge => "TooLarge",
            Self::TooSlow => "TooSlow",
            Self::Malformed => "Malformed",
            Self::OtherSystem => "OtherSystem",
            Self::Unavailable => "Unavailable",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

#[derive(Deserialize)]
struct Registration<'a> {
    #[serde(rename = "systemUUID")]
    system: String,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct BootState {
    #[serde(rename = "systemUUID")]
    system: String,
    #[serde(default)]
    booted: bool,
}

/// A request that is not answered as it wants.
struct Refused {
    why: Refusal,
    told: String,
}

impl Refused {
    fn new(why: Refusal, told: impl Into<String>) -> Self {
        Self { why, told: told.into() }
    }

    fn answer(self, call: &Call) -> Response<Body> {
        let status = match self.why {
            Refusal::Method => return not_allowed(method_of(call)),
            Refusal::Ticket | Refusal::OtherSystem => StatusCode::NOT_FOUND,
            Refusal::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Refusal::Malformed => StatusCode::BAD_REQUEST,
            Refusal::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut answer = Response::builder().status(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            answer = answer.header(RETRY_AFTER, ASK_AGAIN);
        }
        sent(answer.body(full(format!("{}\n", self.told).into())))
    }
}

impl From<Unavailable> for Refused {
    fn from(Unavailable { why }: Unavailable) -> Self {
        tracing::warn!(why, "the registry cannot keep or read a report");
        Self::new(Refusal::Unavailable, "this cannot be kept now; try again")
    }
}

/// Answers a request whose ticket is valid.
pub(super) async fn answer<B>(
    registry: &dyn Registry,
    probe: &Probe,
    call: &Call,
    from: IpAddr,
    head: &Parts,
    body: B,
) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let answered = match (call, &head.method) {
        (Call::Register, &Method::POST) => register(registry, probe, head, body).await,
        (Call::BootState, &Method::POST) => boot_state(registry, probe, head, body).await,
        (Call::System(uuid), &Method::GET) => read(registry, probe, uuid).await,
        (Call::Delete(uuid), &Method::DELETE) => forget(registry, probe, uuid).await,
        _ => Err(Refused::new(Refusal::Method, "")),
    };
    match answered {
        Ok(answer) => answer,
        Err(refused) => {
            let (reason, why) = (refused.why.reason(), refused.told.as_str());
            let Holder { host, deployment, .. } = &probe.holder;
            tracing::warn!(host, probe = deployment, %from, reason, why, "the registry refused a request");
            registry.refused(refused.why);
            refused.answer(call)
        }
    }
}

fn method_of(call: &Call) -> &'static str {
    match call {
        Call::Register | Call::BootState => "POST",
        Call::System(_) => "GET",
        Call::Delete(_) => "DELETE",
    }
}

async fn register<B>(registry: &dyn Registry, probe: &Probe, head: &Parts, body: B) -> Result<Response<Body>, Refused>
where
    B: HttpBody<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = read_body(head, body).await?;
    let told: Registration<'_> = parse(&bytes)?;
    check_system(probe, &told.system)?;
    if !told.data.get().starts_with('{') {
        return Err(malformed("data is not an object"));
    }
    let created = || sent(Response::builder().status(StatusCode::CREATED).body(text("")));
    if !probe.open {
        // It reports again and again until it is switched off.
        return Ok(created());
    }
    in_time(registry.register(probe, told.data.get().to_owned())).await?;
    tracing::info!(
        host = probe.holder.host,
        probe = probe.holder.deployment,
        bytes = bytes.len(),
        "probe has reported"
    );
    Ok(created())
}

async fn boot_state<B>(registry: &dyn Registry, probe: &Probe, head: &Parts, body: B) -> Result<Response<Body>, Refused>
where
    B: HttpBody<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = read_body(head, body).await?;
    let told: BootState = parse(&bytes)?;
    check_system(probe, &told.system)?;
    if told.booted && !in_time(registry.booted(probe)).await? {
        let told = format!("server {} has no boot configuration\n", probe.holder.host);
        return Ok(sent(Response::builder().status(StatusCode::NOT_FOUND).body(full(told.into()))));
    }
    Ok(sent(Response::builder().body(text(""))))
}

async fn read(registry: &dyn Registry, probe: &Probe, uuid: &str) -> Result<Response<Body>, Refused> {
    check_system(probe, uuid)?;
    let Some(report) = in_time(registry.reported(probe)).await? else { return Ok(not_found()) };
    let answer = Response::builder().header(CONTENT_TYPE, "application/json").header(CACHE_CONTROL, "no-store");
    Ok(sent(answer.body(full(report.into()))))
}

async fn forget(registry: &dyn Registry, probe: &Probe, uuid: &str) -> Result<Response<Body>, Refused> {
    check_system(probe, uuid)?;
    let known = in_time(registry.forget(probe)).await?;
    Ok(if known { sent(Response::builder().body(text(""))) } else { not_found() })
}

/// Whoever has the ticket of one server speaks for that one only.
fn check_system(probe: &Probe, uuid: &str) -> Result<(), Refused> {
    if is_same_uuid(&probe.system, uuid) {
        return Ok(());
    }
    Err(Refused::new(Refusal::OtherSystem, "this URL is for the probe of a server with another UUID"))
}

async fn in_time<T>(answer: BoxFuture<'_, Result<T, Unavailable>>) -> Result<T, Refused> {
    match timeout(ANSWER_WITHIN, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Unavailable { why: "the API server does not answer in time".to_owned() }.into()),
    }
}

async fn read_body<B>(head: &Parts, body: B) -> Result<Bytes, Refused>
where
    B: HttpBody<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || Refused::new(Refusal::TooLarge, format!("a report may have {REPORT_LIMIT} bytes at most"));
    let announced =
        head.headers.get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > REPORT_LIMIT as u64) {
        return Err(too_large());
    }
    match timeout(BODY_WITHIN, Limited::new(body, REPORT_LIMIT).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(malformed("the body ends early")),
        Err(_) => {
            let told = format!("the body did not come within {} s", BODY_WITHIN.as_secs());
            Err(Refused::new(Refusal::TooSlow, told))
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a Bytes) -> Result<T, Refused> {
    serde_json::from_slice(bytes).map_err(|error| malformed(&error.to_string()))
}

fn malformed(why: &str) -> Refused {
    Refused::new(Refusal::Malformed, why)
}
