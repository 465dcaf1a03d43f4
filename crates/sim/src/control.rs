//! A small HTTP service to steer a running fleet: JSON, on loopback, without a password.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bmc::Bmc;
use crate::fault::{Fault, FaultId};
use crate::listen::{Endpoint, next, serve};
use crate::login::Credentials;
use crate::server::{Guest, ResetType, Server};

const HELP: &[(&str, &str)] = &[
    ("GET /bmcs", "all BMCs: URL, fingerprint, power, what they booted"),
    ("GET /bmcs/NAME", "one BMC: the truth about its servers, counters, faults, journal"),
    (
        "POST /bmcs/NAME/faults",
        "add a fault, such as {\"kind\":\"Reset\",\"times\":2,\"effect\":{\"Status\":{\"code\":503}}}",
    ),
    ("DELETE /bmcs/NAME/faults[/ID]", "remove all faults, or one"),
    (
        "POST /bmcs/NAME/power",
        "somebody at the rack: {\"action\":\"PushPowerButton\"}, with \"system\" if there are several",
    ),
    ("PUT /bmcs/NAME/credentials", "{\"username\":…,\"password\":…}"),
    ("PUT /bmcs/NAME/guest", "\"Obeys\" or \"Ignores\": how the system on it reacts to a polite shutdown"),
    ("POST /bmcs/NAME/certificate", "show another certificate"),
    ("DELETE /bmcs/NAME/counters", "count anew"),
    ("* as NAME", "stands for all BMCs, except in GET"),
];

/// Steers BMCs by requests.
#[derive(Clone, Debug)]
pub struct Control(Arc<Vec<Endpoint>>);

#[derive(Debug, Deserialize)]
struct Press {
    action: ResetType,
    system: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Login {
    username: String,
    password: String,
}

/// What went wrong, as a sentence.
type Refused = (StatusCode, String);

impl Control {
    /// Over these endpoints.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self(Arc::new(endpoints))
    }

    pub(crate) async fn accept(self, listener: TcpListener, tasks: TaskTracker, stop: CancellationToken) {
        while let Some(stream) = next(&listener, &stop).await {
            let (control, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move {
                serve(stream, stop, |request| {
                    std::future::ready(Ok::<_, std::convert::Infallible>(control.answer(&request)))
                })
                .await;
            });
        }
    }

    /// Answers one request.
    pub fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let (status, body) = match self.act(request) {
            Ok(body) => (StatusCode::OK, body),
            Err((status, error)) => (status, json!({ "error": error })),
        };
        let mut response = Response::new(Bytes::from(format!("{body:#}\n")));
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        response
    }

    fn act(&self, request: &Request<Bytes>) -> Result<Value, Refused> {
        let path = crate::query::decode(request.uri().path());
        let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
        let body = request.body();
        match (request.method(), parts.as_slice()) {
            (&Method::GET, []) => Ok(HELP.iter().map(|&(route, what)| (route.to_owned(), json!(what))).collect()),
            (&Method::GET, ["bmcs"]) => Ok(self.0.iter().map(summary).collect()),
            (&Method::GET, ["bmcs", name]) => match self.chosen(name)?.as_slice() {
                [endpoint] => Ok(detail(endpoint)),
                _ => Err((StatusCode::BAD_REQUEST, "name one BMC, or GET /bmcs".to_owned())),
            },
            (&Method::POST, ["bmcs", name, "faults"]) => {
                let fault: Fault = parse(body)?;
                self.each(name, |e| Ok(json!({ "fault": e.bmc().faults().add(fault.clone()) })))
            }
            (&Method::DELETE, ["bmcs", name, "faults"]) => self.each(name, |e| {
                e.bmc().faults().clear();
                Ok(json!({}))
            }),
            (&Method::DELETE, ["bmcs", name, "faults", id]) => {
                let id = FaultId(id.parse().map_err(|_| (StatusCode::BAD_REQUEST, "a fault's id is a number".into()))?);
                self.each(name, |e| Ok(json!({ "removed": e.bmc().faults().remove(id) })))
            }
            (&Method::POST, ["bmcs", name, "power"]) => {
                let press: Press = parse(body)?;
                self.each(name, |e| power(e.bmc(), &press))
            }
            (&Method::PUT, ["bmcs", name, "credentials"]) => {
                let login: Login = parse(body)?;
                self.each(name, |e| {
                    e.bmc().set_credentials(Credentials::new(login.username.clone(), login.password.clone()));
                    Ok(json!({}))
                })
            }
            (&Method::PUT, ["bmcs", name, "guest"]) => {
                let guest: Guest = parse(body)?;
                self.each(name, |e| {
                    e.bmc().set_guest(guest);
                    Ok(json!({}))
                })
            }
            (&Method::POST, ["bmcs", name, "certificate"]) => self.each(name, |e| {
                e.rotate_certificate().map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
                Ok(json!({ "fingerprint": e.certificate().map(|c| c.fingerprint()) }))
            }),
            (&Method::DELETE, ["bmcs", name, "counters"]) => self.each(name, |e| {
                e.bmc().reset_counters();
                Ok(json!({}))
            }),
            _ => Err((
                StatusCode::NOT_FOUND,
                format!("no such thing as {} {path}; GET / tells what there is", request.method()),
            )),
        }
    }

    fn chosen(&self, name: &str) -> Result<Vec<&Endpoint>, Refused> {
        let found: Vec<_> = self.0.iter().filter(|e| name == "*" || e.bmc().name() == name).collect();
        if found.is_empty() { Err((StatusCode::NOT_FOUND, format!("no BMC is called {name}"))) } else { Ok(found) }
    }

    /// The answers by name.
    fn each(&self, name: &str, act: impl Fn(&Endpoint) -> Result<Value, Refused>) -> Result<Value, Refused> {
        self.chosen(name)?.into_iter().map(|e| Ok((e.bmc().name().to_owned(), act(e)?))).collect()
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, format!("the body is wrong: {error}")))
}

fn power(bmc: &Bmc, press: &Press) -> Result<Value, Refused> {
    let system = press.system.clone().unwrap_or_else(|| bmc.first().id);
    if bmc.by_hand(&system, press.action) {
        Ok(json!({ "power": bmc.server(&system).map(|s| s.power()) }))
    } else {
        Err((StatusCode::NOT_FOUND, format!("{} has no system {system}", bmc.name())))
    }
}

fn summary(endpoint: &Endpoint) -> Value {
    let bmc = endpoint.bmc();
    json!({
        "name": bmc.name(),
        "url": endpoint.url(),
        "fingerprint": endpoint.certificate().map(|c| c.fingerprint()),
        "personality": bmc.personality().name,
        "requests": bmc.counters().total(),
        "sessions": bmc.sessions_open(),
        "faults": bmc.faults().list().len(),
        "servers": bmc.servers().iter().map(truth).collect::<Value>(),
    })
}

fn truth(server: &Server) -> Value {
    json!({
        "id": server.id,
        "power": server.power(),
        "inPost": server.in_post(),
        "booted": server.booted.as_ref().map(|b| &b.from),
        "boots": server.boots,
        "resets": server.resets,
        "override": server.boot,
        "media": server.slots,
    })
}

fn detail(endpoint: &Endpoint) -> Value {
    let bmc = endpoint.bmc();
    let now = Instant::now();
    let mut all = summary(endpoint);
    all["username"] = json!(bmc.credentials().username);
    all["faults"] = bmc.faults().list().iter().map(|(id, fault)| json!({ "id": id, "fault": fault })).collect();
    all["counters"] = bmc
        .counters()
        .iter()
        .map(|(verb, kind, outcome, count)| json!({ "method": verb, "kind": kind, "outcome": outcome, "count": count }))
        .collect();
    all["journal"] = bmc
        .journal()
        .iter()
        .map(|m| {
            json!({
                "secondsAgo": now.saturating_duration_since(m.at).as_secs(),
                "method": m.verb,
                "kind": m.kind,
                "path": m.path,
                "body": m.body,
                "outcome": m.outcome,
            })
        })
        .collect();
    all
}
