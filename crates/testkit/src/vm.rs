//! A real (virtual) server: a QEMU machine under libvirt, with a Redfish service in front of it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::parts;
use crate::pki::write;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::sushy::Sushy;
use crate::wait::{wait_for, wait_ok};

/// libvirtd's first start on a machine tries out every QEMU it finds.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// Directories whose names are built into libvirtd: each lab sees its own.
const PRIVATE_DIRS: [&str; 4] = ["etc/libvirt", "run/libvirt", "var/lib/libvirt", "var/log/libvirt"];

/// The shell is process 1 of the namespace, so it reaps QEMUs, and when it dies all of them do.
const DAEMON_SCRIPT: &str = r#"
lab=$1; shift
for dir; do
    mkdir -p "/$dir" && mount --bind "$lab/$dir" "/$dir" || exit
done
libvirtd --config "$lab/libvirtd.conf" --pid-file "$lab/libvirtd.pid" &
wait "$!"
"#;

/// Before that, in a network of their own: a bridge, with DHCP and a web server on it.
const NETWORK_SCRIPT: &str = r#"
command -v dnsmasq || exit
ip link set lo up &&
    ip link add br0 type bridge stp_state 0 forward_delay 0 &&
    ip addr add 10.77.0.1/24 dev br0 &&
    ip addr add fd77::1/64 dev br0 nodad &&
    ip link set br0 up || exit
dnsmasq --conf-file="$1/dnsmasq.conf" --user=root --keep-in-foreground &
"$1/busybox" httpd -f -p 10.77.0.1:80 -h "$1/site" &
"#;

/// Servers whose firmware is iPXE, as QEMU's is, are sent to a script. iPXE waits long for an IPv6 router and for a second DHCP server unless
/// it hears of them.
const DNSMASQ_CONF: &str = "\
port=0
interface=br0
bind-interfaces
no-ping
dhcp-authoritative
dhcp-range=10.77.0.100,10.77.0.199,255.255.255.0,1h
dhcp-match=set:ipxe,175
dhcp-boot=tag:ipxe,http://10.77.0.1/boot.ipxe
enable-ra
dhcp-range=fd77::,ra-only,64
dhcp-option-force=encap:175,176,1b
";

/// Everything as root and without the confinement that a service manager would set up.
const QEMU_CONF: &str = r#"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
"#;

/// What starts the boot loader of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// PC BIOS.
    Bios,
    /// UEFI.
    Uefi,
}

/// A server with one empty disk, one network card, and a BMC. It is off at first.
///
/// Needs root, for the namespaces in which libvirtd runs.
pub struct VmLab {
    sushy: Sushy,
    _daemon: Process,
    uri: String,
    serial: PathBuf,
    dir: Scratch,
}

/// What the network card of a server is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    /// QEMU's user-mode network, which leads to the host.
    User,
    /// A bridge in a network namespace, from which servers boot.
    Bridge,
}

impl VmLab {
    /// The server's UUID, the last segment of its Redfish address.
    pub const SYSTEM: &str = "b7000000-0000-4000-8000-000000000001";
    /// The address of its network card.
    pub const MAC: &str = "52:54:00:b7:00:01";

    /// A server with BIOS.
    pub async fn start() -> VmLab {
        Self::with(Firmware::Bios).await
    }

    /// Starts libvirtd and the Redfish service, and defines the server.
    pub async fn with(firmware: Firmware) -> VmLab {
        Self::on(Network::User, firmware).await
    }

    /// The same with BIOS, on a network of its own where it can boot: DHCP sends it to `boot.ipxe` of what was
    /// [published](Self::publish).
    pub async fn with_network_boot() -> VmLab {
        Self::on(Network::Bridge, Firmware::Bios).await
    }

    async fn on(network: Network, firmware: Firmware) -> VmLab {
        let dir = Scratch::new("lab");
        let (daemon, uri) = start_daemon(&dir, network);
        wait_ok("libvirtd to answer", START_TIMEOUT, || async {
            daemon.alive().unwrap_or_else(|why| panic!("libvirtd does not start: {why}"));
            virsh(&uri, &["list"]).await
        })
        .await;
        let serial = define_server(&dir, &uri, network, firmware).await;
        let sushy = Sushy::libvirt(&uri).await;
        VmLab { sushy, _daemon: daemon, uri, serial, dir }
    }

    /// The server's BMC.
    pub fn bmc(&self) -> &Sushy {
        &self.sushy
    }

    /// The Redfish path of the server.
    pub fn system_path(&self) -> String {
        format!("/redfish/v1/Systems/{}", Self::SYSTEM)
    }

    /// Where servers on the lab's own network find what was published.
    pub const SITE: &str = "http://10.77.0.1";

    /// Puts a file on the web server of the lab's own network.
    pub fn publish(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.dir.join("site").join(path);
        std::fs::create_dir_all(file.parent().expect("a file in the site")).expect("a directory of the site");
        write(&file, content);
    }

    /// All that the server has written to its serial console.
    pub fn serial(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.serial).unwrap_or_default()).into_owned()
    }

    /// Waits until `text` is on the serial console.
    pub async fn wait_for_serial(&self, text: &str, timeout: Duration) {
        wait_for(&format!("{text:?} on the serial console"), timeout, || async {
            self.serial().contains(text).then_some(())
        })
        .await;
    }

    /// What libvirt itself says about the server: `running`, `shut off`, …
    pub async fn state(&self) -> String {
        let answer = virsh(&self.uri, &["domstate", Self::SYSTEM]).await;
        answer.unwrap_or_else(|error| panic!("cannot ask for the server's state: {error}")).trim().to_owned()
    }

    /// Images in the server's optical drives, as libvirt itself will have them at the next start.
    pub async fn media(&self) -> Vec<String> {
        let answer = virsh(&self.uri, &["domblklist", Self::SYSTEM, "--details", "--inactive"]).await;
        let answer = answer.unwrap_or_else(|error| panic!("cannot ask for the server's drives: {error}"));
        let drives = answer.lines().filter_map(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            [_, "cdrom", _, image] => Some(image.to_owned()),
            _ => None,
        });
        drives.filter(|image| image != "-").collect()
    }
}

fn start_daemon(dir: &Path, network: Network) -> (Process, String) {
    for private in PRIVATE_DIRS {
        std::fs::create_dir_all(dir.join(private)).expect("a directory of the lab");
    }
    write(&dir.join("etc/libvirt/qemu.conf"), QEMU_CONF);
    let sockets = dir.join("sockets");
    let config = format!("unix_sock_dir = \"{}\"\nauth_unix_rw = \"none\"\n", sockets.display());
    write(&dir.join("libvirtd.conf"), config);
    std::fs::create_dir(&sockets).expect("a directory of the lab");

    let mut arguments = vec!["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"];
    let mut script = DAEMON_SCRIPT.to_owned();
    if network == Network::Bridge {
        script.insert_str(0, NETWORK_SCRIPT);
        arguments.push("--net");
        write(&dir.join("dnsmasq.conf"), format!("{DNSMASQ_CONF}dhcp-leasefile={}\n", dir.join("leases").display()));
        std::fs::create_dir(dir.join("site")).expect("a directory of the lab");
        std::fs::copy(parts::home("vm").join("busybox"), dir.join("busybox")).expect("a web server for the lab");
    }
    let lab = dir.display().to_string();
    arguments.extend(["sh", "-c", &script, "libvirtd", &lab]);
    arguments.extend(PRIVATE_DIRS);
    let daemon = Process::start("libvirtd", dir, "unshare".as_ref(), &arguments);
    (daemon, format!("qemu:///system?socket={}", sockets.join("libvirt-sock").display()))
}

/// Returns the file that gets the serial console.
async fn define_server(dir: &Path, uri: &str, network: Network, firmware: Firmware) -> PathBuf {
    let pool = dir.join("pool");
    std::fs::create_dir(&pool).expect("a directory of the lab");
    let disk = pool.join("disk.raw");
    std::fs::File::create(&disk).and_then(|file| file.set_len(64 << 20)).expect("an empty disk");
    let serial = dir.join("serial.log");
    let definition = dir.join("server.xml");
    let loader = match firmware {
        Firmware::Bios => String::new(),
        Firmware::Uefi => uefi_loader(&dir.join("variables.fd")),
    };
    write(&definition, server_xml(&loader, &disk, network, &serial));
    // sushy-tools uploads virtual media into the pool of this name.
    let pool = pool.display().to_string();
    let definition = definition.display().to_string();
    for command in [&["pool-create-as", "default", "dir", "--target", &pool][..], &["define", &definition]] {
        virsh(uri, command).await.unwrap_or_else(|error| panic!("virsh {command:?}: {error}"));
    }
    serial
}

fn uefi_loader(variables: &Path) -> String {
    let (code, template) = ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd");
    std::fs::copy(template, variables)
        .unwrap_or_else(|error| panic!("cannot copy {template} ({error}): run `make setup`"));
    format!(
        "<loader readonly='yes' type='pflash'>{code}</loader><nvram template='{template}'>{}</nvram>",
        variables.display()
    )
}

/// Type `qemu`, never `kvm`: where the tests run, /dev/kvm may exist and not work.
fn server_xml(loader: &str, disk: &Path, network: Network, serial: &Path) -> String {
    let (kind, source) = match network {
        Network::User => ("user", ""),
        Network::Bridge => ("bridge", "<source bridge='br0'/>"),
    };
    format!(
        "<domain type='qemu'>
  <name>server-1</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>512</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    {loader}
    <boot dev='hd'/>
  </os>
  <features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='{disk}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <interface type='{kind}'>
      {source}
      <mac address='{mac}'/>
      <model type='virtio'/>
    </interface>
    <serial type='file'>
      <source path='{serial}' append='on'/>
    </serial>
  </devices>
</domain>
",
        uuid = VmLab::SYSTEM,
        mac = VmLab::MAC,
        disk = disk.display(),
        serial = serial.display(),
    )
}

async fn virsh(uri: &str, arguments: &[&str]) -> Result<String, String> {
    let output = tokio::process::Command::new("virsh")
        .args(["--connect", uri])
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("cannot run virsh ({error}): run `make setup`"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
