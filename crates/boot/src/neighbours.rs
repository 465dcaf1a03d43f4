//! Who else is on a network: whether somebody answers at an address, as the kernel finds out by ARP.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::sleep;

/// A machine answers within milliseconds. The kernel asks twice in this time, for a frame may be lost.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Nobody listens there, and nobody need: the address only has to be resolved.
const DISCARD_PORT: u16 = 9;
/// More than the kernel keeps: 1024 neighbours, in lines of 80 characters.
const LARGEST_TABLE: usize = 1 << 20;

/// The other machines on the network of an interface.
#[derive(Debug)]
pub struct Neighbours {
    interface: String,
    socket: UdpSocket,
    /// The kernel's table of the network namespace that it was opened in.
    table: File,
}

impl Neighbours {
    /// Those on the network of an interface. What is opened belongs to the network namespace of the calling thread.
    pub fn open(interface: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.bind_device(Some(interface.as_bytes()))?;
        let table = File::open("/proc/thread-self/net/arp")?;
        Ok(Self { interface: interface.to_owned(), socket: socket.into(), table })
    }

    /// At which of these addresses a machine answers. An address that cannot be asked counts as one where somebody does.
    pub async fn answering(&self, addresses: &[Ipv4Addr]) -> io::Result<HashSet<Ipv4Addr>> {
        let mut answering = HashSet::new();
        for address in addresses {
            if let Err(error) = self.socket.send_to(&[], (*address, DISCARD_PORT)) {
                tracing::debug!(%address, %error, "cannot ask whether an address is in use");
                answering.insert(*address);
            }
        }
        sleep(PATIENCE).await;
        let resolved = resolved(&self.read_table()?, &self.interface);
        answering.extend(addresses.iter().filter(|address| resolved.contains(address)));
        Ok(answering)
    }

    fn read_table(&self) -> io::Result<String> {
        let (mut text, mut chunk) = (Vec::new(), vec![0; 16 << 10]);
        while text.len() < LARGEST_TABLE {
            let offset = u64::try_from(text.len()).unwrap_or(u64::MAX);
            match self.table.read_at(&mut chunk, offset)? {
                0 => break,
                length => text.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The mask of the network that an interface reaches directly by this address of its own, as the kernel's routes say; `None` if there is no
/// such route. Of the network namespace of the calling thread.
pub fn mask(interface: &str, address: Ipv4Addr) -> io::Result<Option<Ipv4Addr>> {
    Ok(mask_of(&fs::read_to_string("/proc/thread-self/net/route")?, interface, address))
}

/// The addresses on an interface whose hardware address the kernel knows.
fn resolved(table: &str, interface: &str) -> HashSet<Ipv4Addr> {
    const COMPLETE: u32 = 2;
    let known = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [address, _, flags, .., device] = columns.as_slice() else { return None };
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
        (*device == interface && flags & COMPLETE != 0).then(|| address.parse().ok())?
    });
    known.collect()
}

fn mask_of(routes: &str, interface: &str, address: Ipv4Addr) -> Option<Ipv4Addr> {
    // The kernel prints what is in its memory as a number of this machine.
    let read = |hex: &str| u32::from_str_radix(hex, 16).ok().map(|bits| Ipv4Addr::from(bits.to_ne_bytes()));
    let direct = routes.lines().skip(1).filter_map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [device, network, gateway, _, _, _, _, mask, ..] = columns.as_slice() else { return None };
        let (network, gateway, mask) = (read(network)?, read(gateway)?, read(mask)?);
        let is_ours = *device == interface && gateway.is_unspecified() && !mask.is_unspecified();
        (is_ours && address & mask == network).then_some(mask)
    });
    direct.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_resolved_on_this_interface_is_in_use() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
10.0.0.100       0x1         0x2         52:54:00:00:00:01     *        eth1
10.0.0.101       0x1         0x0         00:00:00:00:00:00     *        eth1
10.0.0.102       0x1         0x6         52:54:00:00:00:02     *        eth1
10.0.0.103       0x1         0x2         52:54:00:00:00:03     *        eth0
half a line
";
        let expected: HashSet<Ipv4Addr> = [[10, 0, 0, 100].into(), [10, 0, 0, 102].into()].into();
        assert_eq!(resolved(table, "eth1"), expected);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_mask_is_that_of_the_network_that_the_interface_is_in() {
        let routes = "\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth1	00000000	0100000A	0003	0	0	0	00000000	0	0	0
eth1	0000000A	00000000	0001	0	0	0	00FFFFFF	0	0	0
eth1	0000A8C0	00000000	0001	0	0	0	0000FFFF	0	0	0
eth0	0000000A	00000000	0001	0	0	0	000000FF	0	0	0
";
        assert_eq!(mask_of(routes, "eth1", [10, 0, 0, 5].into()), Some([255, 255, 255, 0].into()));
        assert_eq!(mask_of(routes, "eth1", [192, 168, 7, 5].into()), Some([255, 255, 0, 0].into()));
        assert_eq!(mask_of(routes, "eth1", [172, 16, 0, 5].into()), None);
        assert_eq!(mask_of(routes, "eth0", [10, 9, 0, 5].into()), Some([255, 0, 0, 0].into()));
    }

    #[tokio::test]
    async fn this_machines_own_tables_can_be_read() {
        assert!(mask("lo", Ipv4Addr::LOCALHOST).is_ok());
        let neighbours = Neighbours::open("lo").unwrap();
        assert!(neighbours.answering(&[]).await.unwrap().is_empty());
        assert!(neighbours.read_table().unwrap().starts_with("IP address"));
    }
}
