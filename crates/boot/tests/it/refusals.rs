//! Images that cannot be served with parameters, each with its own reason.

use std::fs;

use boot::iso::{Firmware, IsoError, Parameters, Plan};
use bytes::Bytes;

use crate::lab::{EFI_IMAGE, EFI_ONLY, ISOLINUX, Lab, grub, parameters, systemd_boot, unified_kernel_image};

const ISOLINUX_CFG: &str = "label live\n  linux /vmlinuz\n  append quiet\n";
const GRUB_CFG: &str = "menuentry x {\n linux /vmlinuz quiet\n}\n";

async fn refusal(lab: &Lab, options: &[&[&str]]) -> IsoError {
    let iso = lab.build(options);
    lab.rewrite(&iso).await.err().expect("there is no plan for it")
}

#[tokio::test]
async fn an_image_with_nothing_but_a_unified_kernel() {
    let lab = Lab::new();
    lab.put_efi_image(16, 8192, &[("EFI/BOOT/BOOTX64.EFI", &unified_kernel_image())]);
    let error = refusal(&lab, &[EFI_ONLY]).await;
    assert_eq!(error, IsoError::OnlyUnifiedKernelImage { path: "/EFI/BOOT/BOOTX64.EFI".to_owned() });
    assert_eq!(error.reason(), "OnlyUnifiedKernelImage");

    let lab = Lab::new();
    let files: [(&str, &[u8]); 3] = [
        ("EFI/BOOT/BOOTX64.EFI", &systemd_boot()),
        ("EFI/Linux/talos-1.12.efi", &unified_kernel_image()),
        ("loader/loader.conf", b"timeout 3\n"),
    ];
    lab.put_efi_image(16, 8192, &files);
    let error = refusal(&lab, &[EFI_ONLY]).await;
    assert_eq!(error, IsoError::OnlyUnifiedKernelImage { path: "/EFI/Linux/talos-1.12.efi".to_owned() });
}

/// As Talos has it since 1.10: GRUB for BIOS, unified kernel images for UEFI.
#[tokio::test]
async fn a_unified_kernel_for_uefi_beside_a_menu_for_bios_covers_bios_only() {
    let lab = Lab::new();
    let files: [(&str, &[u8]); 2] =
        [("EFI/BOOT/BOOTX64.EFI", &systemd_boot()), ("EFI/Linux/talos.efi", &unified_kernel_image())];
    lab.put_isolinux(ISOLINUX_CFG).put("boot/grub/grub.cfg", GRUB_CFG).put_efi_image(16, 8192, &files);
    let iso = lab.build(&[ISOLINUX, EFI_IMAGE]);
    let plan = lab.rewrite(&iso).await.unwrap().plan;
    assert!(plan.covers(Firmware::Bios) && !plan.covers(Firmware::Uefi));
}

#[tokio::test]
async fn a_menu_that_the_boot_loader_does_not_read_covers_nothing() {
    // isolinux reads no GRUB menu.
    let lab = Lab::new();
    lab.put_isolinux("default x\n").put("boot/grub/grub.cfg", GRUB_CFG);
    assert_eq!(refusal(&lab, &[ISOLINUX]).await, IsoError::NoBootLoader { configurations: 2 });
    // Nor does GRUB read a menu of isolinux, or one for other media.
    let lab = Lab::new();
    lab.put("isolinux/isolinux.cfg", ISOLINUX_CFG).put("boot/grub/loopback.cfg", GRUB_CFG);
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub())]);
    assert_eq!(refusal(&lab, &[EFI_ONLY]).await, IsoError::NoBootLoader { configurations: 2 });
    // And what does not boot at all boots nothing.
    let lab = Lab::new();
    lab.put("boot/grub/grub.cfg", GRUB_CFG);
    assert_eq!(refusal(&lab, &[&[]]).await, IsoError::NoBootLoader { configurations: 1 });
}

/// Both stand in the menu of systemd-boot, and which is the default is not ours to guess.
#[tokio::test]
async fn a_unified_kernel_beside_an_entry_does_not_cover_uefi() {
    let lab = Lab::new();
    let files: [(&str, &[u8]); 3] = [
        ("EFI/BOOT/BOOTX64.EFI", &systemd_boot()),
        ("EFI/Linux/a.efi", &unified_kernel_image()),
        ("loader/entries/b.conf", b"linux /k\n"),
    ];
    lab.put_efi_image(16, 8192, &files);
    let error = refusal(&lab, &[EFI_ONLY]).await;
    assert_eq!(error, IsoError::OnlyUnifiedKernelImage { path: "/EFI/Linux/a.efi".to_owned() });
}

#[tokio::test]
async fn grub_for_bios_reads_no_menu_of_isolinux() {
    let lab = Lab::new();
    let loader = fs::read("/usr/lib/grub/i386-pc/cdboot.img").expect("grub-pc-bin comes with `make setup`");
    lab.put("boot/eltorito.img", loader).put("isolinux/isolinux.cfg", ISOLINUX_CFG);
    let options = ["-b", "boot/eltorito.img", "-no-emul-boot", "-boot-load-size", "4"];
    assert_eq!(refusal(&lab, &[&options]).await, IsoError::NoBootLoader { configurations: 1 });
    lab.put("boot/grub/grub.cfg", GRUB_CFG);
    let iso = lab.build(&[&options]);
    assert!(lab.rewrite(&iso).await.unwrap().plan.covers(Firmware::Bios));
}

#[tokio::test]
async fn a_fat_image_without_room() {
    let lab = Lab::new();
    let menu = format!("menuentry x {{\nlinux /vmlinuz {}\n}}\n", "x".repeat(480));
    assert!((505..=512).contains(&menu.len()), "{}", menu.len());
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub()), ("EFI/BOOT/grub.cfg", menu.as_bytes())]);
    let image = lab.path("tree/boot/efi.img");
    let copy = |bytes: &[u8], name: &str| {
        fs::write(lab.path("filler"), bytes).unwrap();
        let mut mcopy = std::process::Command::new("mcopy");
        mcopy.arg("-i").arg(&image).arg(lab.path("filler")).arg(format!("::/{name}")).output().unwrap().status.success()
    };
    // Smaller and smaller files, until not one cluster is left.
    let mut number = 0;
    for size in [256 * 1024, 64 * 1024, 8 * 1024, 512] {
        while copy(&vec![1; size], &format!("fill{number}")) {
            number += 1;
        }
    }
    let error = refusal(&lab, &[EFI_ONLY]).await;
    assert_eq!(error, IsoError::NoRoom { path: "/EFI/BOOT/grub.cfg".to_owned(), missing: 512 });
}

#[tokio::test]
async fn an_image_that_is_cut_off() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG).put("big", vec![5; 1 << 20]);
    let bytes = fs::read(lab.build(&[ISOLINUX])).unwrap();
    for keep in [bytes.len() / 2, 40 * 1024, bytes.len() - 200 * 2048] {
        let error = Plan::make(&Bytes::copy_from_slice(&bytes[..keep]), &parameters()).await.unwrap_err();
        assert!(matches!(error, IsoError::Truncated { size, .. } if size == keep as u64), "{keep}: {error}");
    }
    let error = Plan::make(&Bytes::copy_from_slice(&bytes[..32 * 1024]), &parameters()).await.unwrap_err();
    assert!(matches!(error, IsoError::NotIso { .. }), "not even a descriptor: {error}");
}

#[tokio::test]
async fn what_is_no_iso() {
    for bytes in [Vec::new(), b"<html>not found</html>".to_vec(), vec![0; 1 << 20], random(1 << 20)] {
        let error = Plan::make(&Bytes::from(bytes), &parameters()).await.unwrap_err();
        assert!(matches!(error, IsoError::NotIso { .. }), "{error}");
    }
}

fn random(len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..len).map(|_| random.u8(..)).collect()
}

#[tokio::test]
async fn a_line_that_the_kernel_would_cut_off() {
    let lab = Lab::new();
    lab.put_isolinux(&format!("label a\nlinux /k\nappend {}\n", "x".repeat(1000)));
    let source = Bytes::from(fs::read(lab.build(&[ISOLINUX])).unwrap());
    assert!(Plan::make(&source, &Parameters::new(["y".repeat(1000)]).unwrap()).await.is_ok());
    let error = Plan::make(&source, &Parameters::new(["y".repeat(1100)]).unwrap()).await.unwrap_err();
    assert!(matches!(error, IsoError::KernelLineTooLong { path: Some(_), limit: 2047, .. }), "{error}");
}
