//! Damaged and hostile images: an error or a plan, never a panic, never endless work.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use boot::iso::{IsoError, Plan, Source, SourceError};
use bytes::Bytes;

use crate::lab::{EFI_IMAGE, ISOLINUX, Lab, grub, parameters, systemd_boot};

const MENU: &str = "menuentry x {\n linux /vmlinuz quiet\n}\n";

/// An image in memory that counts what is read of it.
struct Counting {
    bytes: Bytes,
    size: u64,
    read: AtomicU64,
}

impl Counting {
    fn new(bytes: Vec<u8>) -> Self {
        let size = bytes.len() as u64;
        Self { bytes: bytes.into(), size, read: AtomicU64::new(0) }
    }
}

impl Source for Counting {
    fn size(&self) -> u64 {
        self.size
    }

    /// Zeros behind the bytes that there are.
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, SourceError> {
        assert!(offset + len as u64 <= self.size, "nobody reads beyond the end");
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        let at = |offset: u64| usize::try_from(offset.min(self.bytes.len() as u64)).unwrap();
        let mut bytes = self.bytes[at(offset)..at(offset + len as u64)].to_vec();
        bytes.resize(len, 0);
        Ok(bytes.into())
    }
}

fn image() -> Vec<u8> {
    let lab = Lab::new();
    lab.put_isolinux("label live\n  linux /vmlinuz\n  append quiet\n").put("boot/grub/grub.cfg", MENU.repeat(60));
    let files: [(&str, &[u8]); 4] = [
        ("EFI/BOOT/BOOTX64.EFI", &grub()),
        ("EFI/BOOT/grubx64.efi", &systemd_boot()),
        ("EFI/BOOT/grub.cfg", MENU.as_bytes()),
        ("loader/entries/a-long-name.conf", b"linux /k\n"),
    ];
    lab.put_efi_image(12, 360, &files);
    let mbr = ["-isohybrid-mbr", "/usr/lib/ISOLINUX/isohdpfx.bin"];
    fs::read(lab.build(&[&["-J", "-r"], ISOLINUX, EFI_IMAGE, &["-isohybrid-gpt-basdat"], &mbr])).unwrap()
}

#[tokio::test]
async fn random_damage_never_panics_and_costs_little() {
    let image = image();
    // Where the metadata is: tables, descriptors, directories, boot catalogue, the beginning of the FAT image.
    let efi = image.windows(8).position(|window| window == b"mkfs.fat").unwrap() - 3;
    let regions = [440..1024, 32 * 1024..64 * 1024, efi..efi + 40, efi + 512..efi + 8 * 1024];
    // Where it matters: a byte that is not zero, or the one behind.
    let places: Vec<usize> = regions.into_iter().flatten().filter(|at| image[*at] != 0 || image[at - 1] != 0).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let (mut plans, mut errors) = (0, 0);
    for _ in 0..3000 {
        let mut damaged = image.clone();
        for _ in 0..random.usize(1..6) {
            let at = places[random.usize(..places.len())];
            damaged[at] = match random.u8(..4) {
                0 => 0,
                1 => 0xff,
                2 => damaged[at] ^ (1 << random.u8(..8)),
                _ => random.u8(..),
            };
        }
        let source = Counting::new(damaged);
        match Plan::make(&source, &parameters()).await {
            Ok(plan) => {
                plans += 1;
                assert!(plan.size() <= source.size + (4 << 20) && plan.weight() <= 16 << 20);
                plan.read(&source, 0..plan.size()).await.unwrap();
            }
            Err(_) => errors += 1,
        }
        assert!(source.read.load(Ordering::Relaxed) <= (33 << 20) + source.size * 2);
    }
    // Both must happen, else this shows nothing.
    assert!(plans > 100 && errors > 100, "{plans} plans, {errors} errors");
}

#[tokio::test]
async fn the_size_of_an_image_costs_nothing() {
    let small = Counting::new(image());
    Plan::make(&small, &parameters()).await.unwrap();
    let large = Counting { size: 100 << 30, ..Counting::new(image()) };
    let plan = Plan::make(&large, &parameters()).await.unwrap();
    assert!(large.read.load(Ordering::Relaxed) <= small.read.load(Ordering::Relaxed) + (64 << 10));
    assert!(plan.size() > 100 << 30 && plan.weight() < 64 << 10, "{} {}", plan.size(), plan.weight());
    assert_eq!(plan.read(&large, (50 << 30)..(50 << 30) + 4096).await.unwrap(), vec![0; 4096]);
}

#[tokio::test]
async fn a_directory_that_contains_itself() {
    let mut image = image();
    let root = u32::from_le_bytes(image[16 * 2048 + 158..16 * 2048 + 162].try_into().unwrap());
    let start = root as usize * 2048;
    let boot = (start..start + 2048).find(|at| image[*at..].starts_with(b"\x04BOOT")).unwrap() - 32;
    image[boot + 2..boot + 6].copy_from_slice(&root.to_le_bytes());
    let error = Plan::make(&Bytes::from(image), &parameters()).await.unwrap_err();
    assert!(matches!(error, IsoError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn clusters_in_a_circle() {
    let mut image = image();
    let efi = image.windows(8).position(|window| window == b"mkfs.fat").unwrap() - 3;
    // Cluster 2 is the first directory; each entry of the table points to itself or to a neighbour.
    for pair in 1..20 {
        let (even, odd) = (pair * 2, pair * 2 + 1);
        let bytes = (u32::try_from(even).unwrap() | u32::try_from(odd).unwrap() << 12).to_le_bytes();
        image[efi + 512 + pair * 3..efi + 512 + pair * 3 + 3].copy_from_slice(&bytes[..3]);
    }
    let made =
        tokio::time::timeout(Duration::from_secs(10), async { Plan::make(&Bytes::from(image), &parameters()).await });
    let error = made.await.expect("no endless work").unwrap_err();
    assert!(matches!(error, IsoError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn a_menu_of_nothing_but_kernels() {
    let lab = Lab::new();
    lab.put_isolinux("label a\nlinux /k\n").put("boot/grub/grub.cfg", "linux /\n".repeat(30_000));
    let iso = lab.build(&[ISOLINUX]);
    let error = lab.rewrite(&iso).await.err();
    assert!(matches!(error, Some(IsoError::TooMuch { .. })), "{error:?}");
}

#[tokio::test]
async fn a_source_that_fails_is_no_damage() {
    struct Failing;
    impl Source for Failing {
        fn size(&self) -> u64 {
            1 << 30
        }
        async fn read_at(&self, _: u64, _: usize) -> Result<Bytes, SourceError> {
            Err(SourceError { why: "connection refused".to_owned(), transient: true })
        }
    }
    let error = Plan::make(&Failing, &parameters()).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("IsoUnreadable", engine::failure::Class::Transient));
}
