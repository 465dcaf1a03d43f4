//! Requests to an API server: each has a `User-Agent` and a deadline.
//!
//! A server that accepts a request and never answers (a hung webhook, a network that drops packets) must delay one caller for
//! seconds, not the whole operator for minutes. Watches have no end; only their first answer has a deadline.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;
use tower_service::Service;

/// Longer than the ten seconds that a webhook gets by default.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// For one page of a list: 500 hosts are about 5 MB.
pub const LIST_WITHIN: Duration = Duration::from_secs(30);

const WHO: HeaderValue = HeaderValue::from_static(concat!("beskar7/", env!("CARGO_PKG_VERSION")));

/// A request that was not answered in time. Whether it took effect is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API server did not answer {method} {path} within {} s", within.as_secs())]
pub struct NoAnswer {
    /// HTTP method.
    pub method: Method,
    /// Path.
    pub path: String,
    /// How long it had.
    pub within: Duration,
}

/// The same client, with a deadline for every request and the header `User-Agent: beskar7/<version>`.
pub fn bounded(client: Client) -> Client {
    let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
    Client::new(Bounded(client), namespace).with_valid_until(valid_until)
}

struct Bounded(Client);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Bounded {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().entry(USER_AGENT).or_insert(WHO);
        let (watches, within) = (is_watch(request.uri()), deadline(request.uri()));
        let no_answer = NoAnswer { method: request.method().clone(), path: request.uri().path().to_owned(), within };
        let client = self.0.clone();
        Box::pin(async move {
            let whole = async {
                let answer = client.send(request).await?;
                if watches {
                    return Ok(answer);
                }
                let (head, body) = answer.into_parts();
                Ok(Response::from_parts(head, Body::from(body.collect_bytes().await?)))
            };
            timeout(within, whole).await.unwrap_or_else(|_| Err(no_answer.into()))
        })
    }
}

fn deadline(uri: &Uri) -> Duration {
    if says(uri, |name, _| name == "limit") { LIST_WITHIN } else { ANSWER_WITHIN }
}

fn is_watch(uri: &Uri) -> bool {
    says(uri, |name, value| name == "watch" && (value == "true" || value == "1"))
}

fn says(uri: &Uri, what: impl Fn(&str, &str) -> bool) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        what(name, value)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::Router;
    use bytes::Bytes;
    use futures::StreamExt as _;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::Api;
    use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;

    /// An API server that takes requests and answers none; of ConfigMaps it sends the head of an answer.
    fn hung() -> Client {
        let router = Router::new().fallback(|request: axum::extract::Request| async move {
            if request.uri().path().contains("configmaps") {
                let nothing = futures::stream::pending::<Result<Bytes, Infallible>>();
                return Response::new(axum::body::Body::from_stream(nothing));
            }
            std::future::pending().await
        });
        bounded(Client::new(router, "default"))
    }

    #[tokio::test(start_paused = true)]
    async fn every_request_that_is_not_answered_ends_after_seconds() {
        let secrets: Api<Secret> = Api::default_namespaced(hung());
        let begun = Instant::now();
        let error = secrets.get("x").await.unwrap_err();
        assert_eq!(begun.elapsed(), ANSWER_WITHIN);
        let kube::Error::Service(source) = &error else { panic!("{error:?}") };
        let told = source.downcast_ref::<NoAnswer>().expect("the reason is not lost");
        assert_eq!(
            told.to_string(),
            "the API server did not answer GET /api/v1/namespaces/default/secrets/x within 15 s"
        );
        let patch = Patch::Merge(json!({}));
        secrets.patch("x", &PatchParams::default(), &patch).await.unwrap_err();
        secrets.create(&PostParams::default(), &Secret::default()).await.unwrap_err();
        secrets.delete("x", &DeleteParams::default()).await.unwrap_err();
        assert_eq!(begun.elapsed(), 4 * ANSWER_WITHIN);
        secrets.list(&ListParams::default().limit(500)).await.unwrap_err();
        assert_eq!(begun.elapsed(), 4 * ANSWER_WITHIN + LIST_WITHIN);
        // A watch that is not even begun.
        assert!(secrets.watch(&WatchParams::default(), "0").await.is_err());
        assert_eq!(begun.elapsed(), 5 * ANSWER_WITHIN + LIST_WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stops_in_the_middle_ends_too_but_a_quiet_watch_does_not() {
        let maps: Api<ConfigMap> = Api::default_namespaced(hung());
        let begun = Instant::now();
        maps.get("x").await.unwrap_err();
        assert_eq!(begun.elapsed(), ANSWER_WITHIN);
        let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        assert!(timeout(Duration::from_mins(4), watch.next()).await.is_err(), "it goes on");
    }

    #[tokio::test]
    async fn requests_say_who_sends_them() {
        let router = Router::new().fallback(|request: axum::extract::Request| async move {
            let who = request.headers()[USER_AGENT].to_str().unwrap().to_owned();
            axum::Json(json!({ "metadata": { "name": who } }))
        });
        let maps: Api<ConfigMap> = Api::default_namespaced(bounded(Client::new(router, "default")));
        let who = maps.get("x").await.unwrap().metadata.name.unwrap();
        assert_eq!(who, format!("beskar7/{}", env!("CARGO_PKG_VERSION")));
    }
}
