//! One exchange with a BMC: lanes, time-out, redirects, breaker and metrics. Knows no sessions.

use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use engine::failure::Kind;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH, LOCATION,
};
use http::{HeaderMap, Method, Uri};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::address::Address;
use crate::breaker::{Admission, Breaker, Trouble};
use crate::credentials::Credentials;
use crate::error::{Error, Refusal};
use crate::error_body::Problem;
use crate::lenient;
use crate::observer::Observer;
use crate::resource::{Resource, View, path_of};
use crate::retry::Dice;
use crate::transport::{Transport, TransportError};

pub(crate) const ROOT: &str = "/redfish/v1/";
/// From the first byte of the request to the last of the answer. Slow BMCs need up to 25 s for a large page.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// The same for a change of virtual media: some BMCs fetch the image before they answer, which takes 75 s and more.
const MEDIA_TIMEOUT: Duration = Duration::from_secs(140);
const REDIRECTS: usize = 3;
/// How many tokens of former sessions are remembered, so that they are not shown.
const TOKENS: usize = 4;
/// As long as an answer may be that comes uncompressed.
const BODY_LIMIT: u64 = 8 * 1024 * 1024;

/// What to ask. Not to be shown: a login carries the password.
#[derive(Clone)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Option<&'a Value>,
    pub(crate) if_match: Option<&'a str>,
    pub(crate) authorisation: Option<(HeaderName, HeaderValue)>,
    /// A failure says nothing about the BMC as a whole: sushy answers 500 for a storage that it lacks.
    pub(crate) optional: bool,
    /// Whether the answer may come compressed.
    pub(crate) compressed: bool,
}

impl<'a> Ask<'a> {
    pub(crate) fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            body: None,
            if_match: None,
            authorisation: None,
            optional: false,
            compressed: false,
        }
    }

    pub(crate) fn with_body(method: Method, path: &'a str, body: &'a Value) -> Self {
        Self { method, body: Some(body), ..Self::get(path) }
    }

    fn limit(&self) -> Duration {
        let is_media = self.method != Method::GET && self.path.contains("VirtualMedia");
        if is_media { MEDIA_TIMEOUT } else { REQUEST_TIMEOUT }
    }
}

/// What came back. Not to be shown: a login brings a token.
#[derive(Clone)]
pub(crate) struct Answer {
    /// The final URL: redirects are followed.
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why nothing came back.
#[derive(Debug, Clone)]
pub(crate) enum WireError {
    Transport(TransportError),
    /// Anything that trying again does not mend.
    Final(Error),
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    }

    fn problem(&self) -> Problem {
        Problem::read(self.status, self.header(CONTENT_TYPE).unwrap_or_default(), &self.body)
    }

    pub(crate) fn json(&self) -> Option<Value> {
        lenient::parse(&self.body).ok()
    }

    /// The resource that was read. Error messages may quote secrets that the BMC was sent.
    fn resource(&self, origin: &str) -> Result<Resource, Error> {
        let body: Value = lenient::parse(&self.body).map_err(|error| Error::BadAnswer {
            url: format!("{origin}{}", self.path),
            why: if self.body.is_empty() {
                "the body is empty".into()
            } else {
                format!("the body is not JSON ({error}): {}", self.problem())
            },
        })?;
        if !body.is_object() {
            return Err(Error::BadAnswer {
                url: format!("{origin}{}", self.path),
                why: "the body is not a JSON object".into(),
            });
        }
        let etag = self.header(ETAG).map(str::to_owned).or_else(|| View(&body).text("/@odata.etag"));
        let uri = self.path.split('?').next().unwrap_or_default().to_owned();
        Ok(Resource { uri, etag, body })
    }
}

/// The line to one BMC.
pub(crate) struct Wire {
    address: Address,
    origin: String,
    credentials: Credentials,
    transport: Arc<dyn Transport>,
    observer: Arc<dyn Observer>,
    pub(crate) dice: Dice,
    breaker: Breaker,
    /// A BMC is a slow single core: two reads and one change at a time, first come first served.
    reads: Semaphore,
    changes: Semaphore,
    /// The last thing that went wrong, for operations that run out of time.
    trouble: Mutex<Option<(Kind, String)>>,
    /// How many requests were sent.
    sent: AtomicU64,
    /// Tokens of sessions that we had: a BMC may quote them.
    tokens: Mutex<Vec<SecretString>>,
}

impl Wire {
    pub(crate) fn new(
        address: Address,
        credentials: Credentials,
        transport: Arc<dyn Transport>,
        observer: Arc<dyn Observer>,
        seed: u64,
    ) -> Self {
        let origin = address.origin();
        Self {
            address,
            origin,
            credentials,
            transport,
            observer,
            dice: Dice::new(seed),
            breaker: Breaker::new(),
            reads: Semaphore::new(2),
            changes: Semaphore::new(1),
            trouble: Mutex::new(None),
            sent: AtomicU64::new(0),
            tokens: Mutex::default(),
        }
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        self.transport.as_ref()
    }

    /// Nothing is sent from now on but the end of a session, also not what waits for its turn already.
    pub(crate) fn close(&self) {
        self.reads.close();
        self.changes.close();
    }

    /// How many requests were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Takes and forgets what went wrong last.
    pub(crate) fn take_trouble(&self) -> Option<(Kind, String)> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn note_trouble(&self, kind: Kind, what: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some((kind, what));
    }

    /// Sends one request, if the breaker lets it, and follows redirects within the same BMC.
    pub(crate) async fn exchange(&self, ask: &Ask<'_>) -> Result<Answer, WireError> {
        match self.breaker.admit() {
            Admission::Yes => {}
            Admission::No { last } => return Err(Self::left_alone(last).into()),
            Admission::AfterProbe(probe) => {
                let answer = self.send(&Ask::get(ROOT)).await;
                drop(probe);
                match answer {
                    Ok(answer) if answer.status < 500 => {}
                    _ => match self.breaker.admit() {
                        Admission::No { last } => return Err(Self::left_alone(last).into()),
                        _ => answer.map(|_| ())?,
                    },
                }
            }
        }
        self.follow(ask).await
    }

    /// Sends one request past breaker and queue: a session must be ended even while a change hangs.
    pub(crate) async fn exchange_anyway(&self, ask: &Ask<'_>) -> Result<Answer, WireError> {
        self.send_now(ask).await
    }

    /// The BMC's message, without secrets that it was sent.
    pub(crate) fn problem(&self, answer: &Answer) -> Problem {
        answer.problem().map_sentence(|text| self.redact(text))
    }

    /// A text of the BMC, without secrets that it was sent.
    pub(crate) fn redact(&self, text: String) -> String {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let text = tokens
            .iter()
            .map(ExposeSecret::expose_secret)
            .fold(text, |text, token| if text.contains(token) { text.replace(token, "[token]") } else { text });
        self.credentials.redact(text)
    }

    /// Never to be shown from now on.
    pub(crate) fn learn_token(&self, token: &HeaderValue) {
        // Removing a very short secret would cut words apart and reveal more than it hides.
        let Some(token) = token.to_str().ok().filter(|token| token.len() >= 4) else { return };
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS {
            tokens.remove(0);
        }
        tokens.push(SecretString::from(token.to_owned()));
    }

    /// The resource that was read.
    pub(crate) fn resource(&self, answer: &Answer) -> Result<Resource, Error> {
        answer.resource(&self.origin).map_err(|error| match error {
            Error::BadAnswer { url, why } => Error::BadAnswer { url, why: self.redact(why) },
            other => other,
        })
    }

    /// The refusal that an answer is.
    pub(crate) fn refusal(&self, method: &Method, answer: &Answer) -> Error {
        let problem = self.problem(answer);
        let url = format!("{}{}", self.origin, answer.path);
        Error::Refused(Box::new(Refusal { method: method.to_string(), url, status: answer.status, problem }))
    }

    /// The path of a redirect; `None` when it leads elsewhere.
    fn own_path(&self, link: &str) -> Option<String> {
        if link.starts_with('/') && !link.starts_with("//") {
            return Some(link.to_owned());
        }
        let uri: Uri = link.parse().ok()?;
        let there = Address::parse(&format!("{}://{}", uri.scheme_str()?, uri.authority()?)).ok()?;
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        (there.origin() == self.origin).then(|| path.to_owned())
    }

    /// A BMC that only adds a slash may name itself otherwise than we do.
    fn own_slash(&self, location: &str, asked: &str) -> Option<String> {
        let scheme = self.origin.split(':').next()?;
        let path = path_of(location).filter(|_| location.starts_with(&format!("{scheme}://")))?;
        (path != asked && path.trim_end_matches('/') == asked.trim_end_matches('/')).then_some(path)
    }

    pub(crate) fn explain(&self, error: WireError) -> Error {
        let url = self.origin.clone();
        match error {
            WireError::Final(error) => error,
            WireError::Transport(error) => match error {
                TransportError::Untrusted { why, fingerprint } => Error::CertificateUntrusted { url, why, fingerprint },
                TransportError::Changed { pinned, seen } => Error::CertificateChanged { url, pinned, seen },
                TransportError::NotTls(_) | TransportError::NotHttp(_) => {
                    Error::NotRedfish { url, why: error.to_string() }
                }
                TransportError::TooLong(_) => Error::BadAnswer { url, why: error.to_string() },
                other => Error::Unreachable { url, why: other.to_string() },
            },
        }
    }

    fn left_alone(last: Trouble) -> Error {
        Error::BreakerOpen { last: last.told, kind: last.kind }
    }

    async fn follow(&self, ask: &Ask<'_>) -> Result<Answer, WireError> {
        let mut answer = self.send(ask).await?;
        // iLO keeps some resources compressed, and in no other form.
        if answer.status == 406 && ask.method == Method::GET && !ask.compressed {
            answer = self.send(&Ask { compressed: true, ..ask.clone() }).await?;
        }
        let mut hops = 0;
        while is_redirect(&ask.method, answer.status) {
            let Some(location) = answer.header(LOCATION) else { break };
            let Some(path) = self.own_path(location).or_else(|| self.own_slash(location, &answer.path)) else {
                let there = location
                    .parse::<Uri>()
                    .ok()
                    .and_then(|uri| Some(format!("{}://{}", uri.scheme_str()?, uri.host()?)));
                let why = format!(
                    "it redirects to {}, which is not followed; write that address instead if it is the BMC",
                    there.as_deref().unwrap_or("somewhere else")
                );
                return Err(Error::NotRedfish { url: self.origin.clone(), why }.into());
            };
            hops += 1;
            if hops > REDIRECTS {
                return Err(Error::BadAnswer {
                    url: format!("{}{}", self.origin, ask.path),
                    why: "it redirects in circles".into(),
                }
                .into());
            }
            answer = self.send(&Ask { path: &path, ..ask.clone() }).await?;
        }
        Ok(answer)
    }

    async fn send(&self, ask: &Ask<'_>) -> Result<Answer, WireError> {
        let lane = if ask.method == Method::GET { &self.reads } else { &self.changes };
        let closed = |_| Error::Closed { url: self.origin.clone() };
        let _permit = lane.acquire().await.map_err(closed)?;
        self.send_now(ask).await
    }

    async fn send_now(&self, ask: &Ask<'_>) -> Result<Answer, WireError> {
        let request = self.request(ask)?;
        self.sent.fetch_add(1, Ordering::Relaxed);
        let started = Instant::now();
        let limit = ask.limit();
        let sent = tokio::time::timeout(limit, self.transport.send(request)).await;
        let took = started.elapsed();
        let outcome = sent.unwrap_or(Err(TransportError::TimedOut(limit.as_secs())));
        match outcome {
            Ok(response) => {
                let status = response.status().as_u16();
                self.observer.request(&ask.method, outcome_of_status(status), Some(status), took);
                let (parts, body) = response.into_parts();
                let body = if is_gzip(&parts.headers) { unpacked(body) } else { body };
                let answer = Answer { path: ask.path.to_owned(), status, headers: parts.headers, body };
                if status < 500 || status == 501 {
                    self.breaker.succeeded();
                } else {
                    let refusal = self.refusal(&ask.method, &answer);
                    self.note_trouble(refusal.kind(), refusal.to_string());
                    if !ask.optional {
                        self.breaker.failed(Trouble::of(&refusal), self.dice.roll());
                    }
                }
                Ok(answer)
            }
            Err(error) => {
                self.observer.request(&ask.method, outcome_of_error(&error), None, took);
                let told = self.explain(WireError::Transport(error.clone()));
                tracing::debug!(method = %ask.method, path = ask.path, %error, "no answer from {}", self.origin);
                self.note_trouble(told.kind(), told.to_string());
                if error.is_transient() && !ask.optional {
                    self.breaker.failed(Trouble::of(&told), self.dice.roll());
                }
                Err(WireError::Transport(error))
            }
        }
    }

    fn request(&self, ask: &Ask<'_>) -> Result<http::Request<Bytes>, Error> {
        let unusable =
            || Error::BadAnswer { url: self.origin.clone(), why: format!("it gave {:?} as a link", ask.path) };
        // Links may point into a resource; and some contain blanks.
        let path = ask.path.split('#').next().unwrap_or_default().replace(' ', "%20");
        let uri: Uri = format!("{}{path}", self.origin).parse().map_err(|_| unusable())?;
        let mut request = http::Request::new(ask.body.map(|body| Bytes::from(body.to_string())).unwrap_or_default());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        // Offering compression makes some BMCs turn their ETags weak.
        let encoding = if ask.compressed { "gzip" } else { "identity" };
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        headers.insert(HeaderName::from_static("odata-version"), HeaderValue::from_static("4.0"));
        if ask.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(etag) = ask.if_match.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert(IF_MATCH, etag);
        }
        if let Some((name, value)) = &ask.authorisation {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }
}

/// A change is redirected only if the standard says that it was not carried out.
fn is_redirect(method: &Method, status: u16) -> bool {
    matches!(status, 307 | 308) || (method == Method::GET && matches!(status, 301 | 302))
}

fn is_gzip(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|encoding| encoding.contains("gzip"))
}

/// What cannot be unpacked, or grows too large, stays packed and then fails as JSON.
fn unpacked(body: Bytes) -> Bytes {
    let mut text = Vec::new();
    let read = flate2::read::GzDecoder::new(body.as_ref()).take(BODY_LIMIT + 1).read_to_end(&mut text);
    if read.is_ok_and(|length| length as u64 <= BODY_LIMIT) { text.into() } else { body }
}

fn outcome_of_status(status: u16) -> &'static str {
    match status {
        ..400 => "ok",
        401 => "unauthorized",
        408 | 429 | 503 => "busy",
        400..500 => "refused",
        _ => "failed",
    }
}

fn outcome_of_error(error: &TransportError) -> &'static str {
    match error {
        TransportError::Connect(_) | TransportError::Broken(_) | TransportError::Tls(_) => "unreachable",
        TransportError::TimedOut(_) => "timeout",
        TransportError::Untrusted { .. } | TransportError::Changed { .. } => "untrusted",
        TransportError::NotTls(_) | TransportError::NotHttp(_) | TransportError::TooLong(_) => "garbled",
    }
}
