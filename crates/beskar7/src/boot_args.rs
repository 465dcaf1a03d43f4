//! The flags of the boot service.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use boot::dhcp::{Sockets, open_tftp};
use boot::fetch::{Cache, Fetcher, Guard, Network, Patience};
use boot::links::Links;
use boot::serve;
use bytes::Bytes;
use controllers::depot::{BootConfig, DhcpConfig, NetworkConfig};
use netboot::dhcp::LOADERS;
use tracing::{info, warn};

use crate::dhcp_args::ReservationArgs;
use crate::run::{Bind, bind};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Boot service")]
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
    /// Serve what servers boot from the network over HTTP; your DHCP server sends iPXE to <BOOT_URL>/ipxe/boot.ipxe
    #[arg(long, env = "BESKAR7_NETWORK_BOOT")]
    network_boot: bool,
    /// Answer servers that boot from the network by DHCP: proxy beside the DHCP server of the site, which gives the addresses; reservation where there is none, with addresses for known hosts only. Implies --network-boot
    #[arg(long, value_name = "MODE", default_value = "off", env = "BESKAR7_DHCP", value_parser = ["off", "proxy", "reservation"])]
    dhcp: String,
    #[command(flatten)]
    reservation: ReservationArgs,
    /// Network interfaces on which DHCP and TFTP are answered
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "BESKAR7_BOOT_INTERFACES")]
    boot_interfaces: Vec<String>,
    /// Folder with undionly.kpxe and snponly.efi, the iPXE that servers load first, as Debian's package ipxe has it
    #[arg(long, value_name = "DIR", default_value = "/usr/lib/ipxe", env = "BESKAR7_BOOT_FILES")]
    boot_files: PathBuf,
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
        let Some(url) = self.url() else {
            if self.dhcp != "off" || self.network_boot {
                bail!(
                    "servers that boot from the network fetch what they boot from the boot service: say with --boot-url under which address they reach it, such as http://192.0.2.5:8082"
                );
            }
            return Ok(None);
        };
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
        let listener = TcpListener::bind(address).with_context(|| {
            format!("the boot service cannot listen on {address}: choose another address with --boot-bind-address")
        })?;
        Ok(Some(BootConfig {
            network: self.network(&links)?,
            links,
            listener: Arc::new(listener),
            tls,
            fetcher: self.fetcher(&[])?,
            key_namespace: key_namespace.to_owned(),
        }))
    }

    /// What reads users' images, also from these networks.
    pub(crate) fn fetcher(&self, also: &[Network]) -> anyhow::Result<Fetcher> {
        let roots = self.boot_ca_bundle.as_deref().map(|path| read(path, "--boot-ca-bundle")).transpose()?;
        let roots = roots.map(String::from_utf8).transpose().context("--boot-ca-bundle is not a PEM file")?;
        let guard = Guard::allowing(self.boot_allow_networks.iter().chain(also).copied());
        let fetcher = Fetcher::new(guard, roots.as_deref(), Patience::default()).context("--boot-ca-bundle")?;
        match self.boot_cache.as_deref().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => {
                let cache = Cache::open(folder, u64::from(self.boot_cache_size) << 30);
                let cache =
                    cache.with_context(|| format!("--boot-cache: cannot keep images in {}", folder.display()))?;
                Ok(fetcher.with_cache(Arc::new(cache)))
            }
            None => Ok(fetcher),
        }
    }

    /// The boot files that there are.
    pub(crate) fn files(&self) -> anyhow::Result<BTreeMap<String, Bytes>> {
        boot_files(&self.boot_files)
    }
}

impl BootArgs {
    /// How servers are served that boot from the network, if they are.
    fn network(&self, links: &Links) -> anyhow::Result<Option<NetworkConfig>> {
        let answers = self.dhcp != "off";
        self.reservation.check(&self.dhcp, &self.boot_interfaces)?;
        if !answers && !self.network_boot {
            if !self.boot_interfaces.is_empty() {
                bail!(
                    "--boot-interfaces says where DHCP and TFTP are answered: say with --dhcp or --network-boot that they are, or leave it out"
                );
            }
            return Ok(None);
        }
        if answers && self.boot_interfaces.is_empty() {
            bail!(
                "--dhcp {} needs the network interfaces on which servers boot: name them with --boot-interfaces, such as eth1",
                self.dhcp
            );
        }
        if answers && links.is_https() {
            bail!(
                "--dhcp {} sends servers to --boot-url, and the firmware of most cannot check our certificate: use an http URL",
                self.dhcp
            );
        }
        let files = self.files()?;
        let gives_addresses = self.dhcp == "reservation";
        let interfaces = self.boot_interfaces.iter().filter(|_| answers);
        let sockets = interfaces.map(|interface| Sockets::open(interface, !gives_addresses));
        let sockets = sockets.collect::<Result<Vec<_>, _>>().context("--boot-interfaces")?;
        let tftp = self.boot_interfaces.iter().map(|interface| open_tftp(interface)).collect::<Result<Vec<_>, _>>();
        let tftp = tftp.context("--boot-interfaces")?;
        let reserves = sockets.first().filter(|_| gives_addresses).map(|sockets| self.reservation.reserves(sockets));
        let reserves = reserves.transpose()?;
        let dhcp = answers.then(|| DhcpConfig { sockets: Arc::new(sockets), reserves });
        Ok(Some(NetworkConfig { files: Arc::new(files), dhcp, tftp }))
    }
}

/// The boot files that there are. The service works without them, for the ways that need none.
fn boot_files(folder: &Path) -> anyhow::Result<BTreeMap<String, Bytes>> {
    let mut files = BTreeMap::new();
    let mut missing = Vec::new();
    for name in LOADERS {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(bytes) => {
                files.insert(name.to_owned(), Bytes::from(bytes));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => missing.push(name),
            Err(error) => return Err(error).with_context(|| format!("--boot-files: cannot read {}", path.display())),
        }
    }
    if files.is_empty() {
        warn!(
            folder = %folder.display(),
            "no iPXE there, so servers whose firmware is not iPXE cannot boot from the network; get it with `beskar7 assets fetch`, or install Debian's package ipxe, and name its folder with --boot-files"
        );
    } else if !missing.is_empty() {
        info!(folder = %folder.display(), ?missing, "some boot files are missing");
    }
    Ok(files)
}

fn read(path: &Path, flag: &str) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{flag}: cannot read {}", path.display()))
}
