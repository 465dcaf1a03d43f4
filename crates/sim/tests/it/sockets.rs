//! With real sockets, and therefore in real time.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use sim::{Certificate, Effect, Endpoint, Fleet, FleetSpec, PowerState, ServeSpec, Serving, Timing, personality};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Http = SendRequest<Full<bytes::Bytes>>;

/// A client that trusts this certificate and no other.
async fn connect(endpoint: &Endpoint, trusted: &Certificate, tasks: &mut JoinSet<()>) -> Result<Http, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(trusted.der().to_vec())).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(endpoint.address().ip());
    let tcp = TcpStream::connect(endpoint.address()).await?;
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    Ok(speak(TokioIo::new(tls), tasks).await)
}

async fn speak<T>(io: T, tasks: &mut JoinSet<()>) -> Http
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (http, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tasks.spawn(async move {
        let _ = connection.await;
    });
    http
}

async fn get(http: &mut Http, path: &str) -> hyper::Result<(StatusCode, Value)> {
    ask(http, "GET", path, json!(null)).await
}

async fn ask(http: &mut Http, method: &str, path: &str, body: Value) -> hyper::Result<(StatusCode, Value)> {
    http.ready().await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "bmc")
        .header("authorization", "Basic YWRtaW46cGFzc3dvcmQ=")
        .body(Full::from(body.to_string()))
        .unwrap();
    let response = http.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

async fn serving(count: u32, spec: ServeSpec) -> Serving {
    let fleet = FleetSpec { count, timing: Timing::INSTANT, ..FleetSpec::default() };
    Fleet::new(&fleet).serve(spec).await.unwrap()
}

#[tokio::test]
async fn https_with_a_certificate_of_its_own_and_keep_alive() {
    let serving = serving(2, ServeSpec::default()).await;
    let [first, second] = serving.endpoints() else { panic!() };
    let (one, two) = (first.certificate().unwrap(), second.certificate().unwrap());
    assert_ne!(one.fingerprint(), two.fingerprint());
    assert_eq!(one.fingerprint().len(), 64);
    assert!(one.pem().starts_with("-----BEGIN CERTIFICATE-----"));
    let mut tasks = JoinSet::new();
    assert!(connect(first, &two, &mut tasks).await.is_err(), "the certificate of another BMC");
    let mut http = connect(first, &one, &mut tasks).await.unwrap();
    for _ in 0..3 {
        let (status, root) = get(&mut http, "/redfish/v1").await.unwrap();
        assert_eq!((status.as_u16(), &root["Id"]), (200, &json!("RootService")));
    }
    assert_eq!(get(&mut http, "/redfish/v1/Systems/1").await.unwrap().0, 200);
    assert_eq!(first.bmc().counters().total(), 4);
    assert_eq!(second.bmc().counters().total(), 0);

    first.rotate_certificate().unwrap();
    let new = first.certificate().unwrap();
    assert_ne!(new.fingerprint(), one.fingerprint());
    assert!(connect(first, &one, &mut tasks).await.is_err(), "the old certificate");
    connect(first, &new, &mut tasks).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), serving.stop()).await.unwrap();
    assert!(get(&mut http, "/redfish/v1").await.is_err());
}

#[tokio::test]
async fn a_dropped_connection_is_reset_without_an_answer() {
    let serving = serving(1, ServeSpec { tls: false, ..ServeSpec::default() }).await;
    let endpoint = &serving.endpoints()[0];
    assert!(endpoint.url().starts_with("http://127.0.0.1:"));
    let mut tasks = JoinSet::new();
    let tcp = async || TokioIo::new(TcpStream::connect(endpoint.address()).await.unwrap());
    let mut http = speak(tcp().await, &mut tasks).await;
    assert_eq!(get(&mut http, "/redfish/v1").await.unwrap().0, 200);
    endpoint.bmc().faults().add(Effect::Drop.always().times(1));
    assert!(get(&mut http, "/redfish/v1").await.is_err());
    let mut http = speak(tcp().await, &mut tasks).await;
    assert_eq!(get(&mut http, "/redfish/v1").await.unwrap().0, 200);
    // A request that hangs does not keep everything from stopping.
    endpoint.bmc().faults().add(Effect::Hang.always());
    let bmc = endpoint.bmc().clone();
    let before = bmc.counters().total();
    let hanging = get(&mut http, "/redfish/v1");
    let (hung, ()) = tokio::join!(hanging, async {
        while bmc.counters().total() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::timeout(Duration::from_secs(10), serving.stop()).await.unwrap();
    });
    assert!(hung.is_err());
}

#[tokio::test]
async fn ilo_resets_a_connection_that_was_idle() {
    // Longer than a busy machine takes from a connection to the first request.
    const IDLE: Duration = Duration::from_secs(2);
    let mut ilo = personality::hpe_ilo5();
    ilo.login.forgets_connections = Some(IDLE);
    let fleet = Fleet::new(&FleetSpec { mix: vec![(ilo, 1)], ..FleetSpec::default() });
    let serving = fleet.serve(ServeSpec { tls: false, ..ServeSpec::default() }).await.unwrap();
    let mut tasks = JoinSet::new();
    let tcp = TokioIo::new(TcpStream::connect(serving.endpoints()[0].address()).await.unwrap());
    let mut http = speak(tcp, &mut tasks).await;
    assert_eq!(get(&mut http, "/redfish/v1").await.unwrap().0, 200);
    tokio::time::sleep(IDLE * 3 / 2).await;
    assert!(get(&mut http, "/redfish/v1").await.is_err());
    // It was not carried out, and a new connection works.
    assert_eq!(fleet.bmcs()[0].counters().total(), 1);
    let tcp = TokioIo::new(TcpStream::connect(serving.endpoints()[0].address()).await.unwrap());
    assert_eq!(get(&mut speak(tcp, &mut tasks).await, "/redfish/v1").await.unwrap().0, 200);
}

#[tokio::test]
async fn the_control_steers_a_running_fleet() {
    let serving = serving(2, ServeSpec { control_port: Some(0), ..ServeSpec::default() }).await;
    let url = serving.control_url().unwrap();
    let mut tasks = JoinSet::new();
    let tcp = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    let mut http = speak(TokioIo::new(tcp), &mut tasks).await;
    let (_, help) = get(&mut http, "/").await.unwrap();
    assert!(help["GET /bmcs"].is_string());
    let (_, list) = get(&mut http, "/bmcs").await.unwrap();
    assert_eq!(list[1]["name"], "sim-001");
    assert_eq!(list[1]["url"], serving.endpoints()[1].url());
    assert_eq!(list[1]["servers"][0]["power"], "Off");

    let press = json!({ "action": "PushPowerButton" });
    let (status, _) = ask(&mut http, "POST", "/bmcs/sim-001/power", press).await.unwrap();
    assert_eq!(status, 200);
    assert_eq!(serving.by_name()["sim-001"].bmc().first().power(), PowerState::On);
    assert_eq!(serving.by_name()["sim-000"].bmc().first().power(), PowerState::Off);

    let fault = json!({ "kind": "System", "effect": { "Status": { "code": 503, "body": "Html" } } });
    let (status, added) = ask(&mut http, "POST", "/bmcs/*/faults", fault).await.unwrap();
    assert_eq!((status.as_u16(), &added["sim-000"]["fault"]), (200, &json!(1)));
    let (_, one) = get(&mut http, "/bmcs/sim-000").await.unwrap();
    assert_eq!(one["faults"][0]["fault"]["kind"], "System");
    let (_, removed) = ask(&mut http, "DELETE", "/bmcs/sim-000/faults/1", json!(null)).await.unwrap();
    assert_eq!(removed["sim-000"]["removed"], true);
    ask(&mut http, "DELETE", "/bmcs/*/faults", json!(null)).await.unwrap();
    assert!(serving.endpoints().iter().all(|e| e.bmc().faults().list().is_empty()));

    let before = serving.endpoints()[0].certificate().unwrap().fingerprint();
    let (_, shown) = ask(&mut http, "POST", "/bmcs/sim-000/certificate", json!(null)).await.unwrap();
    assert_ne!(shown["sim-000"]["fingerprint"], before);
    let login = json!({ "username": "root", "password": "calvin" });
    ask(&mut http, "PUT", "/bmcs/sim-000/credentials", login).await.unwrap();
    assert_eq!(serving.endpoints()[0].bmc().credentials().username, "root");

    for (method, path, body, expected) in [
        ("GET", "/bmcs/nobody", json!(null), 404),
        ("GET", "/nothing", json!(null), 404),
        ("POST", "/bmcs/sim-000/faults", json!({ "effect": "Explode" }), 400),
        ("POST", "/bmcs/sim-000/power", json!({ "action": "On", "system": "9" }), 404),
    ] {
        let (status, body) = ask(&mut http, method, path, body).await.unwrap();
        assert_eq!(status.as_u16(), expected, "{path}");
        assert!(body["error"].is_string());
    }
}

#[tokio::test]
async fn a_taken_port_is_an_error_with_a_name() {
    let first = serving(1, ServeSpec::default()).await;
    let port = first.endpoints()[0].address().port();
    let fleet = Fleet::new(&FleetSpec::default());
    let error = fleet.serve(ServeSpec { base_port: port, ..ServeSpec::default() }).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on 127.0.0.1:{port} for sim-000")), "{error}");
    let many = Fleet::new(&FleetSpec { count: 3, ..FleetSpec::default() });
    let error = many.serve(ServeSpec { base_port: 65534, ..ServeSpec::default() }).await.unwrap_err().to_string();
    assert_eq!(error, "3 BMCs from port 65534 on do not fit below port 65536");
}
