//! How many requests a BMC gets.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bmc::{
    Address, Bmc as _, Client, Credentials, Endpoint, InProcess, Observer, Options, RedfishSystem, SystemChoice,
};
use engine::server::{BootOverride, Scope};
use sim::{BmcSpec, Personality, Timing, Tree};

#[derive(Default)]
struct Count(AtomicU32);

impl Observer for Count {
    fn request(&self, _: &http::Method, _: &'static str, _: Option<u16>, _: Duration) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn take(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Prints a table of requests per operation, for each recorded or invented BMC.
pub(crate) async fn print(captures: Option<&Path>) -> Result<()> {
    println!("BMC requests (session included)");
    println!("  {:<22} {:>22} {:>14} {:>12}", "", "register and inventory", "boot an ISO", "one look");
    for (name, bmc) in bmcs(captures)? {
        let (register, boot, rest) = count(bmc).await.with_context(|| name.clone())?;
        println!("  {name:<22} {register:>22} {boot:>14} {rest:>12}");
    }
    if captures.is_none() {
        println!("  (recorded BMCs were left out: set BESKAR7_CAPTURES)");
    }
    println!();
    Ok(())
}

fn bmcs(captures: Option<&Path>) -> Result<Vec<(String, sim::Bmc)>> {
    let mut bmcs = Vec::new();
    for personality in Personality::all() {
        let name = personality.name.to_owned();
        bmcs.push((name, sim::Bmc::new(BmcSpec::new(personality).timing(Timing::INSTANT))));
    }
    let Some(captures) = captures else { return Ok(bmcs) };
    let mut files: Vec<_> = std::fs::read_dir(captures)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "gz")) {
        let tree = Arc::new(Tree::open(file)?);
        let name = file.file_name().map(|name| name.to_string_lossy().replace(".tar.gz", "")).unwrap_or_default();
        let spec = BmcSpec::new(tree.personality()).timing(Timing::INSTANT);
        bmcs.push((format!("{name} *"), sim::Bmc::replay(tree, spec)));
    }
    Ok(bmcs)
}

async fn count(bmc: sim::Bmc) -> Result<(u32, String, u32)> {
    let requests = Arc::new(Count::default());
    let endpoint = Endpoint {
        address: Address::parse("https://bmc")?,
        credentials: Credentials::new("admin", "password"),
        family: None,
    };
    let options = Options { observer: requests.clone(), ..Options::default() };
    let client = Client::new(endpoint, Arc::new(InProcess::new(bmc)), options);
    let server = RedfishSystem::new(client.clone(), SystemChoice::Only);
    server.look(Scope::Inventory).await?;
    let register = requests.take();
    // As the engine does it: off, look, insert and override, look, on, look.
    let boot = async {
        server.power_off(bmc::Manner::Hard).await?;
        server.look(Scope::Boot).await?;
        requests.take();
        server.insert_media("https://images.test/os.iso").await?;
        server.set_boot(&BootOverride::cd_once(None)).await?;
        server.look(Scope::Boot).await?;
        server.power_on().await?;
        server.look(Scope::Power).await
    };
    let boot = match boot.await {
        Ok(_) => requests.take().to_string(),
        Err(error) => format!("({})", error.kind().reason()),
    };
    requests.take();
    server.look(Scope::Power).await?;
    let rest = requests.take();
    client.close().await;
    Ok((register, boot, rest))
}
