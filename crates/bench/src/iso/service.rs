//! The boot service in a process of its own, so that nobody else's memory is counted.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use boot::fetch::{Cache, Fetcher, Guard, Patience};
use boot::iso::Parameters;
use boot::links::Links;
use boot::serve::{
    Boots, Bootstrap, Client, Delivery, Directory, Gate, Images, IsoOrder, Limits, Problem, Service, Step, Unavailable,
};
use boot::ticket::{Holder, Key, Purpose};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::readers::Target;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const SAYS: &str = "serves ";

/// This program once more, as the service; it ends with this.
pub(super) struct Served {
    process: Child,
    url: String,
}

/// What the other process is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Part {
    /// Be the service that another process measures, for the image at this URL
    #[arg(long, value_name = "URL", hide = true)]
    serve_iso: Option<String>,
    /// Keep it in this folder
    #[arg(long, value_name = "FOLDER", hide = true)]
    keep_iso: Option<PathBuf>,
}

impl Served {
    /// Serves the image at that URL, and keeps it in a folder, if there is one.
    pub(super) async fn start(url: &str, folder: Option<&Path>) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        if let Some(folder) = folder {
            command.arg("--keep-iso").arg(folder);
        }
        let mut process = command
            .args(["--serve-iso", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = process.stdout.take().context("the service has no output")?;
        let mut lines = BufReader::new(said).lines();
        let Some(line) = lines.next_line().await? else { bail!("the service ended at once") };
        let url = line.strip_prefix(SAYS).context("the service says something odd")?.to_owned();
        Ok(Self { process, url })
    }

    pub(super) fn target(&self) -> Result<Target> {
        let rest = self.url.strip_prefix("http://").context("the service has an odd address")?;
        let slash = rest.find('/').context("the service has an odd address")?;
        let (authority, path) = rest.split_at(slash);
        Ok(Target::new(authority.to_owned(), path.to_owned()))
    }

    pub(super) fn pid(&self) -> Result<u32> {
        self.process.id().context("the service ended")
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        self.process.wait().await?;
        Ok(())
    }
}

/// Plays that part, if it is asked for: serves one deployment, says where, and ends with its standard input.
pub(crate) async fn play(part: &Part) -> Result<bool> {
    let Some(url) = &part.serve_iso else { return Ok(false) };
    let guard = Guard::allowing(["127.0.0.0/8".parse()?]);
    let mut fetcher = Fetcher::new(guard, None, Patience::default())?;
    if let Some(folder) = &part.keep_iso {
        fetcher = fetcher.with_cache(Arc::new(Cache::open(folder, Cache::DEFAULT_LIMIT)?));
    }
    let parameters = Parameters::new(["config_url=http://192.0.2.1/config", "beskar7"])?;
    let holder = Holder {
        kind: String::new(),
        namespace: "default".to_owned(),
        host: "server-01".to_owned(),
        claim: "claim".to_owned(),
        deployment: "deployment".to_owned(),
    };
    let key = Key::from_text(KEY)?;
    let ticket = key.ticket(Purpose::Iso, &holder);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let links = Links::new(&format!("http://{}", listener.local_addr()?))?;
    println!("{SAYS}{}", links.iso(&holder.deployment, &ticket)?);
    let iso = Some(IsoOrder { url: url.clone(), parameters });
    let directory = Arc::new(OneDelivery(Delivery {
        holder,
        iso,
        payload: None,
        configuration: None,
        config: false,
        powered_on: true,
    }));
    let service = Arc::new(Service::new(directory, key, Arc::new(Images::new(fetcher))));
    let ended = spawn_blocking(|| std::io::read_to_string(std::io::stdin()));
    tokio::select! {
        () = service.serve(listener, None, Limits::default(), CancellationToken::new()) => {}
        _ = ended => {}
    }
    Ok(true)
}

/// A directory of one deployment, without bootstrap data.
struct OneDelivery(Delivery);

impl Directory for OneDelivery {
    fn delivery(&self, deployment: &str) -> Option<Delivery> {
        (deployment == self.0.holder.deployment).then(|| self.0.clone())
    }

    fn bootstrap<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>> {
        async { Err(Unavailable { why: "there is none".to_owned() }) }.boxed()
    }

    fn first_seen<'a>(&'a self, _: &'a Delivery, _: IpAddr) -> BoxFuture<'a, Result<Gate, Unavailable>> {
        async { Err(Unavailable { why: "there is none".to_owned() }) }.boxed()
    }

    fn boots(&self, _: &Client) -> Boots {
        Boots::Nothing("there is none".to_owned())
    }

    fn note(&self, _: &Delivery, _: Step, _: IpAddr) {}

    #[expect(clippy::print_stderr, reason = "a measurement of failures would be none")]
    fn report(&self, _: &Delivery, problem: &Problem) {
        eprintln!("the service has a problem: {problem}");
    }
}
