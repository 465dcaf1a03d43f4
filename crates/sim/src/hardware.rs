//! What a pretend server is made of: little enough to keep for thousands, from which full resources are written.

use crate::personality::Personality;

/// One drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// `CapacityBytes`.
    pub bytes: u64,
    /// `MediaType`: SSD or HDD.
    pub media: &'static str,
    /// `Protocol`.
    pub protocol: &'static str,
    /// `SerialNumber`.
    pub serial: String,
}

/// One server's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// `UUID`.
    pub uuid: String,
    /// The serial number on the label.
    pub serial: String,
    /// Which of the personality's models.
    pub model: &'static str,
    /// Number of processors.
    pub cpus: u8,
    /// Cores of each.
    pub cores: u16,
    /// `Model` of the processors.
    pub cpu_model: &'static str,
    /// `Manufacturer` of the processors.
    pub cpu_maker: &'static str,
    /// Number of memory modules.
    pub dimms: u8,
    /// Size of each.
    pub dimm_gib: u32,
    /// Drives.
    pub disks: Vec<Disk>,
    /// MAC addresses of the network interfaces.
    pub macs: Vec<String>,
    /// MAC address of the BMC.
    pub bmc_mac: String,
}

/// What the servers of a fleet are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// The parts of a rack server.
    #[default]
    Rack,
    /// The few parts that a machine in [`crate::qemu`] has.
    Machine,
}

const CPUS: &[(&str, &str, u16)] = &[
    ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "Intel", 32),
    ("Intel(R) Xeon(R) Gold 6430", "Intel", 32),
    ("AMD EPYC 7543 32-Core Processor", "AMD", 32),
    ("AMD EPYC 9354 32-Core Processor", "AMD", 32),
];

impl Hardware {
    /// The `index`th server of a fleet; another seed gives other parts, the same gives the same.
    pub fn invent(personality: &Personality, seed: u64, index: u32) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ (u64::from(index) << 32 | 0x5eed));
        let serial = serial_number(seed, index);
        let (cpu_model, cpu_maker, cores) = CPUS[rng.usize(..CPUS.len())];
        let models = personality.identity.models;
        let disks = rng.usize(2..=6);
        let nvme = rng.bool();
        let terabytes = rng.u64(1..=4);
        Self {
            uuid: uuid(&mut rng),
            serial: format!("{}{serial}", personality.identity.serial_prefix),
            model: models.get(rng.usize(..models.len().max(1))).copied().unwrap_or("Server"),
            cpus: 2,
            cores,
            cpu_model,
            cpu_maker,
            dimms: if rng.bool() { 8 } else { 16 },
            dimm_gib: if rng.bool() { 32 } else { 64 },
            disks: (0..disks)
                .map(|i| Disk {
                    bytes: terabytes * 960_197_124_096,
                    media: "SSD",
                    protocol: if nvme { "NVMe" } else { "SATA" },
                    serial: format!("D{serial}{i:02}"),
                })
                .collect(),
            macs: (0..4).map(|port| mac(seed, index, port)).collect(),
            bmc_mac: mac(seed, index, 0xff),
        }
    }

    /// The same server with the parts of a machine in [`crate::qemu`].
    pub fn of_machine(personality: &Personality, seed: u64, index: u32) -> Self {
        let invented = Self::invent(personality, seed, index);
        let disk = invented.disks.into_iter().next().map(|disk| Disk { bytes: 1 << 30, protocol: "SATA", ..disk });
        Self {
            cpus: 1,
            cores: 1,
            cpu_model: "QEMU TCG CPU",
            cpu_maker: "QEMU",
            dimms: 1,
            dimm_gib: 1,
            disks: disk.into_iter().collect(),
            macs: invented.macs.into_iter().take(2).collect(),
            ..invented
        }
    }

    /// `TotalSystemMemoryGiB`.
    pub fn memory_gib(&self) -> u32 {
        u32::from(self.dimms) * self.dimm_gib
    }
}

/// Distinct for every index of one seed: the factor has no divisor in common with 36⁶.
fn serial_number(seed: u64, index: u32) -> String {
    const SPAN: u64 = 36_u64.pow(6);
    let mut number = (u64::from(index) * 1_664_525_035 + seed % SPAN * 7) % SPAN;
    let mut digits = [0_u8; 6];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789ABCDEFGHJKLMNPQRSTUVWXYZIO"[usize::try_from(number % 36).unwrap_or_default()];
        number /= 36;
    }
    digits.iter().map(|&d| char::from(d)).collect()
}

/// Locally administered, distinct for every index and port of one seed.
fn mac(seed: u64, index: u32, port: u8) -> String {
    let [_, i1, i2, i3] = index.to_be_bytes();
    let high = seed.to_le_bytes()[0];
    format!("02:{high:02x}:{i1:02x}:{i2:02x}:{i3:02x}:{port:02x}")
}

fn uuid(rng: &mut fastrand::Rng) -> String {
    let bits = rng.u128(..) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::personality::generic;

    #[test]
    fn servers_of_a_fleet_are_distinct_and_reproducible() {
        let personality = generic();
        let (mut serials, mut uuids, mut macs) = (HashSet::new(), HashSet::new(), HashSet::new());
        for index in 0..5000 {
            let hardware = Hardware::invent(&personality, 7, index);
            assert_eq!(hardware, Hardware::invent(&personality, 7, index));
            assert!(serials.insert(hardware.serial));
            assert!(uuids.insert(hardware.uuid));
            assert!(hardware.macs.into_iter().all(|mac| macs.insert(mac)));
        }
    }
}
