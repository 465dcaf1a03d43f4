//! The virtual drive of a machine. As BMCs do, it fetches images by itself, and does not ask whose certificate it sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::network::Lab;
use crate::cert::PROVIDER;

/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An image that cannot be had.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) url: String,
    pub(super) why: Failure,
}

/// A drive, which has an image, is on its way to it, or is empty.
#[derive(Debug)]
pub(super) struct Drive {
    lab: Lab,
    folder: PathBuf,
    /// Number of images so far; each is in a file of its own, for the one before it may still be in use.
    images: u32,
    fetching: JoinSet<Result<(), Failure>>,
    content: Option<Image>,
}

#[derive(Debug)]
struct Image {
    url: String,
    file: String,
}

impl Drive {
    pub(super) fn new(lab: Lab, folder: PathBuf) -> Self {
        Self { lab, folder, images: 0, fetching: JoinSet::new(), content: None }
    }

    /// Changes what is in it. The image is there once [`Drive::fetched`] says so.
    pub(super) fn load(&mut self, url: Option<String>) {
        // Whatever was on its way is not fetched any further.
        self.fetching = JoinSet::new();
        self.remove();
        if let Some(url) = url {
            self.images += 1;
            let file = format!("medium-{}.iso", self.images);
            self.fetching.spawn(fetch(self.lab.clone(), url.clone(), self.folder.join(&file)));
            self.content = Some(Image { url, file });
        }
    }

    /// The file of the image that is in it, once that is complete.
    pub(super) fn file(&self) -> Option<&str> {
        self.content.as_ref().filter(|_| self.fetching.is_empty()).map(|image| image.file.as_str())
    }

    pub(super) fn is_fetching(&self) -> bool {
        !self.fetching.is_empty()
    }

    /// Waits for the image that is on its way. If it cannot be had, the drive is empty.
    pub(super) async fn fetched(&mut self) -> Result<(), Lost> {
        let Some(done) = self.fetching.join_next().await else { return std::future::pending().await };
        let Err(why) = done.map_err(Failure::from).flatten() else { return Ok(()) };
        let url = self.content.as_ref().map(|image| image.url.clone()).unwrap_or_default();
        self.remove();
        Err(Lost { url, why })
    }

    fn remove(&mut self) {
        if let Some(image) = self.content.take() {
            // A machine that has it open keeps it until it lets go.
            let _ = std::fs::remove_file(self.folder.join(image.file));
        }
    }
}

async fn fetch(lab: Lab, url: String, file: PathBuf) -> Result<(), Failure> {
    let url: Uri = url.parse()?;
    let host = url.host().ok_or("the URL has no host")?;
    let is_tls = match url.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err("only http and https can be fetched".into()),
    };
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let stream = timeout(PATIENCE, connect(&lab, bare, port)).await??;
    if is_tls {
        let name = ServerName::try_from(bare.to_owned())?;
        let stream = timeout(PATIENCE, TlsConnector::from(trusting()?).connect(name, stream)).await??;
        download(stream, &url, &file).await
    } else {
        download(stream, &url, &file).await
    }
}

async fn connect(lab: &Lab, host: &str, port: u16) -> Result<TcpStream, Failure> {
    let mut last = Failure::from("the host has no address");
    for address in lookup_host((host, port)).await? {
        match lab.socket_to(address)?.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

async fn download(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    url: &Uri,
    file: &Path,
) -> Result<(), Failure> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, url.authority().map(http::uri::Authority::as_str).unwrap_or_default())
        .header(USER_AGENT, "sim-bmc/1.0")
        .header(ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let response = timeout(PATIENCE, sender.send_request(request)).await??;
        if response.status() != StatusCode::OK {
            return Err(format!("the server answered {}", response.status()).into());
        }
        save(response.into_body(), file).await
    };
    // The connection moves only while somebody waits for it, and may end before the last of the answer is read.
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        done = &mut answer => done,
        ended = connection => {
            ended?;
            answer.await
        }
    }
}

async fn save(mut body: Incoming, file: &Path) -> Result<(), Failure> {
    let mut file = tokio::fs::File::create(file).await?;
    while let Some(frame) = timeout(PATIENCE, body.frame()).await? {
        if let Ok(data) = frame?.into_data() {
            file.write_all(&data).await?;
        }
    }
    file.flush().await?;
    Ok(())
}

/// TLS with whoever answers.
fn trusting() -> Result<Arc<ClientConfig>, Failure> {
    let verifier = Arc::new(Anybody(PROVIDER.signature_verification_algorithms));
    let config = ClientConfig::builder_with_provider(PROVIDER.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
