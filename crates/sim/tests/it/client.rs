//! The least client that can talk to a BMC: it follows nothing and retries nothing.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use sim::{Bmc, BmcSpec, Dropped, Personality, PowerState};

pub(crate) struct Client {
    pub(crate) bmc: Bmc,
    token: String,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) raw: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|v| v.to_str().unwrap()).unwrap_or_default()
    }

    /// The first message id of an error, without its registry.
    pub(crate) fn problem(&self) -> &str {
        let info = &self.body["error"]["@Message.ExtendedInfo"];
        let id = info[0]["MessageId"].as_str().or_else(|| info["MessageId"].as_str()).unwrap_or_default();
        id.rsplit('.').next().unwrap()
    }

    pub(crate) fn refused(&self, status: u16, problem: &str) {
        assert_eq!((self.status.as_u16(), self.problem()), (status, problem), "{}", self.body);
    }

    #[track_caller]
    pub(crate) fn worked(self) -> Self {
        assert!(self.status.is_success(), "{} {}", self.status, self.body);
        self
    }
}

pub(crate) async fn send(
    bmc: &Bmc,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Result<Answer, Dropped> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map(|b| Bytes::from(b.to_string())).unwrap_or_default();
    let response = bmc.call(request.body(body).unwrap()).await?;
    let (parts, raw) = response.into_parts();
    let body = serde_json::from_slice(&raw).unwrap_or_default();
    Ok(Answer { status: parts.status, headers: parts.headers, body, raw })
}

pub(crate) fn login() -> Value {
    json!({ "UserName": "admin", "Password": "password" })
}

pub(crate) const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

impl Client {
    pub(crate) async fn new(bmc: Bmc) -> Self {
        let answer = send(&bmc, Method::POST, SESSIONS, &[], Some(&login())).await.unwrap().worked();
        let token = answer.header("x-auth-token").to_owned();
        Self { bmc, token }
    }

    pub(crate) async fn of(personality: Personality) -> Self {
        Self::new(Bmc::new(BmcSpec::new(personality))).await
    }

    pub(crate) async fn on(personality: Personality) -> Self {
        Self::new(Bmc::new(BmcSpec::new(personality).power(PowerState::On))).await
    }

    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer, Dropped> {
        let mut all = vec![("x-auth-token", self.token.as_str())];
        all.extend(headers);
        send(&self.bmc, method, path, &all, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.try_send(Method::GET, path, &[], None).await.unwrap()
    }

    pub(crate) async fn read(&self, path: &str) -> Value {
        self.get(path).await.worked().body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.try_send(Method::POST, path, &[], Some(&body)).await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.try_send(Method::PATCH, path, &[], Some(&body)).await.unwrap()
    }

    /// Path of the first system.
    pub(crate) async fn system(&self) -> String {
        let systems = self.read("/redfish/v1/Systems").await;
        systems["Members"][0]["@odata.id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn power(&self) -> Value {
        self.read(&self.system().await).await["PowerState"].take()
    }

    pub(crate) async fn reset(&self, kind: &str) -> Answer {
        let system = self.read(&self.system().await).await;
        let target = system["Actions"]["#ComputerSystem.Reset"]["target"].as_str().unwrap();
        self.post(target, json!({ "ResetType": kind })).await
    }

    pub(crate) async fn boot(&self, boot: Value) -> Answer {
        self.patch(&self.system().await, json!({ "Boot": boot })).await
    }

    /// Paths of the virtual drives, wherever this BMC has them.
    pub(crate) async fn drives(&self) -> Vec<String> {
        let system = self.read(&self.system().await).await;
        let manager = &system["Links"]["ManagedBy"][0]["@odata.id"];
        let link = match system["VirtualMedia"]["@odata.id"].as_str() {
            Some(link) => link.to_owned(),
            None => {
                self.read(manager.as_str().unwrap()).await["VirtualMedia"]["@odata.id"].as_str().unwrap().to_owned()
            }
        };
        let members = self.read(&link).await["Members"].take();
        members.as_array().unwrap().iter().map(|m| m["@odata.id"].as_str().unwrap().to_owned()).collect()
    }

    /// The first drive that takes a CD.
    pub(crate) async fn cd(&self) -> String {
        for drive in self.drives().await {
            let body = self.read(&drive).await;
            if body["MediaTypes"].as_array().unwrap().iter().any(|t| t == "CD") {
                return drive;
            }
        }
        panic!("no drive for a CD");
    }

    pub(crate) async fn insert(&self, image: &str) -> Answer {
        self.insert_with(json!({ "Image": image })).await
    }

    pub(crate) async fn insert_with(&self, body: Value) -> Answer {
        let drive = self.read(&self.cd().await).await;
        self.post(drive["Actions"]["#VirtualMedia.InsertMedia"]["target"].as_str().unwrap(), body).await
    }

    pub(crate) async fn eject(&self) -> Answer {
        let drive = self.cd().await;
        self.post(&format!("{}/Actions/VirtualMedia.EjectMedia", drive.trim_end_matches('/')), json!({})).await
    }
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}
