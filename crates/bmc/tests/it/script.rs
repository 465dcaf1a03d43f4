//! A Redfish service that answers what a test tells it to, and remembers what it was asked.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bmc::{Address, Client, Credentials, Endpoint, InProcess, Options, RedfishSystem, SystemChoice};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// What to answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    pub(crate) after: Duration,
    pub(crate) dropped: bool,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), after: Duration::ZERO, dropped: false }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self { body: body.to_string().into(), ..Self::status(status) }.header("content-type", "application/json")
    }

    /// A Redfish error with this message id.
    pub(crate) fn error(status: u16, id: &str) -> Self {
        let info = json!([{"MessageId": id, "Message": format!("The BMC says {id}.")}]);
        Self::json(
            status,
            &json!({"error": {"code": "Base.1.8.GeneralError", "message": "x", "@Message.ExtendedInfo": info}}),
        )
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self { body: body.to_owned().into(), ..Self::status(status) }.header("content-type", "text/plain")
    }

    pub(crate) fn bytes(status: u16, body: &[u8]) -> Self {
        Self { body: Bytes::copy_from_slice(body), ..Self::status(status) }
    }

    pub(crate) fn html(status: u16) -> Self {
        Self { body: "<html><title>Oops</title></html>".into(), ..Self::status(status) }
            .header("content-type", "text/html")
    }

    pub(crate) fn dropped() -> Self {
        Self { dropped: true, ..Self::status(0) }
    }

    pub(crate) fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

type Answer = dyn Fn(&Asked) -> Option<Reply> + Send + Sync;

/// The service. What the test's own function does not answer comes from a small tree.
#[derive(Clone)]
pub(crate) struct Script {
    tree: Arc<BTreeMap<String, Value>>,
    answer: Arc<Answer>,
    log: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Debug)]
pub(crate) struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection reset by peer")
    }
}

impl Script {
    /// A plain server, except for what `answer` says.
    pub(crate) fn new(answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::with(|_| {}, answer)
    }

    /// A plain server with a changed tree.
    pub(crate) fn with(
        change: impl FnOnce(&mut BTreeMap<String, Value>),
        answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let mut tree = plain();
        change(&mut tree);
        Self { tree: Arc::new(tree), answer: Arc::new(answer), log: Arc::default() }
    }

    pub(crate) fn client(&self) -> Arc<Client> {
        self.client_as(Credentials::new("root", "calvin-2"))
    }

    pub(crate) fn client_as(&self, credentials: Credentials) -> Arc<Client> {
        let address = Address::parse("https://bmc.test").unwrap();
        let endpoint = Endpoint { address, credentials, family: None };
        Client::new(endpoint, Arc::new(InProcess::new(self.clone())), Options::default())
    }

    pub(crate) fn system(&self) -> RedfishSystem {
        RedfishSystem::new(self.client(), SystemChoice::Only)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.is(method, path)).count()
    }

    /// Changes that were asked for, sessions left out: `METHOD path body`.
    pub(crate) fn changes(&self) -> Vec<String> {
        let asked = self.asked();
        let changes = asked.iter().filter(|asked| asked.method != "GET" && !asked.path.contains("/Sessions"));
        changes.map(|asked| format!("{} {} {}", asked.method, asked.path, asked.body)).collect()
    }

    pub(crate) fn forget(&self) {
        self.log.lock().unwrap().clear();
    }

    fn reply(&self, asked: &Asked) -> Reply {
        if let Some(reply) = (self.answer)(asked) {
            return reply;
        }
        let path = asked.path.split('?').next().unwrap_or_default();
        match asked.method.as_str() {
            "POST" if path.ends_with("/Sessions") => {
                Reply::json(201, &json!({"@odata.id": "/redfish/v1/SessionService/Sessions/1"}))
                    .header("x-auth-token", "token-1")
                    .header("location", "/redfish/v1/SessionService/Sessions/1")
            }
            "GET" => match self.tree.get(path.trim_end_matches('/')) {
                Some(body) => Reply::json(200, body),
                None => Reply::error(404, "Base.1.8.ResourceMissingAtURI"),
            },
            _ => Reply::status(204),
        }
    }
}

impl tower_service::Service<Request<Bytes>> for Script {
    type Response = Response<Bytes>;
    type Error = Dropped;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Dropped>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Dropped>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let script = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let asked = Asked {
                method: parts.method,
                path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
                headers: parts.headers,
                body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            };
            script.log.lock().unwrap().push(asked.clone());
            let reply = script.reply(&asked);
            tokio::time::sleep(reply.after).await;
            if reply.dropped {
                return Err(Dropped);
            }
            let mut response = Response::builder().status(reply.status);
            for (name, value) in reply.headers {
                response = response.header(name, value);
            }
            Ok(response.body(reply.body).unwrap())
        })
    }
}

pub(crate) const SYSTEM: &str = "/redfish/v1/Systems/1";
pub(crate) const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
pub(crate) const SLOT: &str = "/redfish/v1/Managers/1/VirtualMedia/CD";

fn plain() -> BTreeMap<String, Value> {
    let link = |uri: &str| json!({"@odata.id": uri});
    let root = json!({"@odata.id": "/redfish/v1/", "RedfishVersion": "1.6.0", "Systems": link("/redfish/v1/Systems"),
        "Managers": link("/redfish/v1/Managers"), "Links": {"Sessions": link("/redfish/v1/SessionService/Sessions")}});
    let system = json!({"@odata.id": SYSTEM, "Id": "1", "PowerState": "Off", "Status": {"Health": "OK"},
        "UUID": "34383350-3131-584D-5133-303230393953", "Manufacturer": "Contoso",
        "Boot": {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Cd", "Hdd", "UefiHttp"]},
        "Links": {"ManagedBy": [link("/redfish/v1/Managers/1")]},
        "Actions": {"#ComputerSystem.Reset": {"target": RESET,
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "ForceRestart"]}}});
    let manager = json!({"@odata.id": "/redfish/v1/Managers/1", "Id": "1", "VirtualMedia": link("/redfish/v1/Managers/1/VirtualMedia"),
        "Actions": {"#Manager.Reset": {"target": "/redfish/v1/Managers/1/Actions/Manager.Reset"}}});
    let slot = json!({"@odata.id": SLOT, "Id": "CD", "MediaTypes": ["CD", "DVD"], "Image": null, "Inserted": false, "Actions": {
        "#VirtualMedia.InsertMedia": {"target": format!("{SLOT}/Actions/VirtualMedia.InsertMedia")},
        "#VirtualMedia.EjectMedia": {"target": format!("{SLOT}/Actions/VirtualMedia.EjectMedia")}}});
    let members = |uris: &[&str]| json!({"Members": uris.iter().map(|uri| link(uri)).collect::<Vec<_>>()});
    BTreeMap::from([
        ("/redfish/v1".into(), root),
        ("/redfish/v1/Systems".into(), members(&[SYSTEM])),
        (SYSTEM.into(), system),
        ("/redfish/v1/Managers".into(), members(&["/redfish/v1/Managers/1"])),
        ("/redfish/v1/Managers/1".into(), manager),
        ("/redfish/v1/Managers/1/VirtualMedia".into(), members(&[SLOT])),
        (SLOT.into(), slot),
    ])
}
