//! The flags of the boot service.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use boot::fetch::{Cache, Fetcher, Guard, Network, Patience};
use boot::links::Links;
use boot::serve;
use controllers::depot::BootConfig;

use crate::run::{Bind, bind};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Boot service")]
#[expect(clippy::struct_field_names, reason = "the fields are named after the flags")]
pub(crate) struct BootArgs {
    /// Address under which BMCs and servers reach the boot service, such as http://192.0.2.5:8082; without it, RemoteConfig does not work
    #[arg(long, value_name = "URL", env = "BESKAR7_BOOT_URL")]
    boot_url: Option<String>,
    /// Where the boot service listens
    #[arg(long, value_name = "ADDRESS", default_value = ":8082", env = "BESKAR7_BOOT_BIND_ADDRESS", value_parser = bind)]
    boot_bind_address: Bind,
    /// Certificate chain of the boot service (PEM); without it, it speaks plain HTTP
    #[arg(long, value_name = "FILE", requires = "boot_tls_key", env = "BESKAR7_BOOT_TLS_CERT")]
    boot_tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "boot_tls_cert", env = "BESKAR7_BOOT_TLS_KEY")]
    boot_tls_key: Option<PathBuf>,
    /// More certificate authorities to trust when an image is fetched (PEM)
    #[arg(long, value_name = "FILE", env = "BESKAR7_BOOT_CA_BUNDLE")]
    boot_ca_bundle: Option<PathBuf>,
    /// Folder for cached images; without it, each server causes a download
    #[arg(long, value_name = "DIR", env = "BESKAR7_BOOT_CACHE")]
    boot_cache: Option<PathBuf>,
    /// Size of that cache in GiB
    #[arg(long, value_name = "GIB", default_value = "4", env = "BESKAR7_BOOT_CACHE_SIZE")]
    boot_cache_size: u32,
    /// Networks that images may be downloaded from although they are blocked by default (loopback, link-local, cloud metadata)
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', env = "BESKAR7_BOOT_ALLOW_NETWORKS")]
    boot_allow_networks: Vec<Network>,
}

impl BootArgs {
    /// Whether there is to be a boot service.
    pub(crate) fn is_wanted(&self) -> bool {
        self.url().is_some()
    }

    fn url(&self) -> Option<&str> {
        self.boot_url.as_deref().filter(|url| !url.is_empty())
    }

    /// The boot service, if it is wanted. Its key is kept in that namespace.
    pub(crate) fn open(&self, key_namespace: &str) -> anyhow::Result<Option<BootConfig>> {
        let Some(url) = self.url() else { return Ok(None) };
        let links = Links::new(url).context("--boot-url")?;
        let Some(address) = self.boot_bind_address.0 else {
            bail!(
                "--boot-url says where the boot service is reached, but --boot-bind-address 0 leaves it without a socket: remove one of them"
            );
        };
        let tls = match (&self.boot_tls_cert, &self.boot_tls_key) {
            (Some(chain), Some(key)) => {
                Some(serve::tls(&read(chain, "--boot-tls-cert")?, &read(key, "--boot-tls-key")?)?)
            }
            _ => None,
        };
        let roots = self.boot_ca_bundle.as_deref().map(|path| read(path, "--boot-ca-bundle")).transpose()?;
        let roots = roots.map(String::from_utf8).transpose().context("--boot-ca-bundle is not a PEM file")?;
        let guard = Guard::allowing(self.boot_allow_networks.iter().copied());
        let fetcher = Fetcher::new(guard, roots.as_deref(), Patience::default()).context("--boot-ca-bundle")?;
        let fetcher = match self.boot_cache.as_deref().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => {
                let cache = Cache::open(folder, u64::from(self.boot_cache_size) << 30);
                let cache =
                    cache.with_context(|| format!("--boot-cache: cannot keep images in {}", folder.display()))?;
                fetcher.with_cache(Arc::new(cache))
            }
            None => fetcher,
        };
        let listener = TcpListener::bind(address).with_context(|| {
            format!("the boot service cannot listen on {address}: choose another address with --boot-bind-address")
        })?;
        Ok(Some(BootConfig {
            links,
            listener: Arc::new(listener),
            tls,
            fetcher,
            key_namespace: key_namespace.to_owned(),
        }))
    }
}

fn read(path: &Path, flag: &str) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{flag}: cannot read {}", path.display()))
}
