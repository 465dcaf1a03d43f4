//! Images that also boot from a stick: with MBR and GPT.

use std::fs;
use std::path::Path;
use std::process::Command;

use boot::iso::Firmware;

use crate::lab::{EFI_IMAGE, IN_GRUB, ISOLINUX, Lab, fat_files, grub, iso_files, run, text};

const ISOHYBRID: &[&str] = &["-isohybrid-gpt-basdat", "-isohybrid-mbr", "/usr/lib/ISOLINUX/isohdpfx.bin"];
const ISOLINUX_CFG: &str = "label live\n  linux /vmlinuz\n  append quiet\n";

/// A menu that cannot grow at its place: each of many entries does.
fn full_menu() -> String {
    "menuentry x {\nlinux /vmlinuz quiet\n}\n".repeat(60)
}

fn edited(menu: &str) -> String {
    menu.replace("quiet\n", &format!("quiet {IN_GRUB}\n"))
}

/// What sgdisk says about the tables: whether they are sane, and `number start end` of each partition.
fn gpt(iso: &Path) -> (bool, Vec<String>) {
    let sane = run(Command::new("sgdisk").arg("-v").arg(iso)).contains("No problems found");
    let printed = run(Command::new("sgdisk").arg("-p").arg(iso));
    let rows = printed.lines().skip_while(|line| !line.starts_with("Number")).skip(1);
    let row = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    (sane, rows.map(row).collect())
}

/// What xorriso says about MBR and GPT. It reads overlapping partitions, which sgdisk refuses to.
fn system_area(iso: &Path) -> String {
    run(Command::new("xorriso").arg("-indev").arg(iso).args(["-report_system_area", "plain"]))
}

/// The numbers behind such a line.
fn numbers(report: &str, line: &str) -> Vec<u64> {
    let line = report.lines().find_map(|said| said.strip_prefix(line)).unwrap_or_else(|| panic!("{line} in {report}"));
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[tokio::test]
async fn a_hybrid_image_keeps_its_tables_when_nothing_moves() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG);
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub()), ("EFI/BOOT/grub.cfg", b"linux /vmlinuz quiet\n")]);
    let iso = lab.build(&[ISOLINUX, EFI_IMAGE, ISOHYBRID]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(rewritten.edited().len(), 2);
    let (before, after) = (fs::read(&iso).unwrap(), fs::read(&rewritten.after).unwrap());
    assert_eq!(before.len(), after.len());
    assert!(before[..32768] == after[..32768], "boot code, MBR and GPT are untouched");
    assert!(before[before.len() - 64 * 512..] == after[after.len() - 64 * 512..], "so is the backup of the GPT");
}

#[tokio::test]
async fn the_tables_of_an_isohybrid_image_follow_a_menu_that_moves() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG).put("boot/grub/grub.cfg", full_menu());
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub())]);
    let iso = lab.build(&[&["-J"], ISOLINUX, EFI_IMAGE, ISOHYBRID]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert!(rewritten.plan.size() > fs::metadata(&iso).unwrap().len());
    assert!(rewritten.plan.covers(Firmware::Bios) && rewritten.plan.covers(Firmware::Uefi));
    for view in ["any", "norock", "nojoliet"] {
        assert_eq!(text(&iso_files(&rewritten.after, view), "boot/grub/grub.cfg"), edited(&full_menu()), "{view}");
    }
    rewritten.assert_others_untouched(&["boot/grub/grub.cfg", "isolinux/isolinux.cfg"]);

    let (before, after) = (system_area(&iso), system_area(&rewritten.after));
    let volume = volume_blocks(&rewritten.after);
    let mbr = numbers(&after, "MBR partition      :   1   0x80  0x00");
    let whole = numbers(&after, "GPT start and size :   1");
    assert!(
        mbr == [0, volume] && whole == [0, volume],
        "the ISO's own partition ends with it: {mbr:?} {whole:?} {volume}"
    );
    for same in ["MBR partition      :   2", "GPT start and size :   2", "GPT entry array    :", "GPT disk GUID      :"]
    {
        assert_eq!(numbers(&before, same), numbers(&after, same), "{same}");
    }
    assert!(!after.contains("GPT CRC") && !after.contains("backup"), "{after}");
    assert_backup_gpt(&rewritten.after);
}

/// The last block is the backup of the header, and its table lies before it.
fn assert_backup_gpt(iso: &Path) {
    let bytes = fs::read(iso).unwrap();
    let number = |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (primary, backup) = (512, bytes.len() - 512);
    for (own, other) in [(primary, backup), (backup, primary)] {
        assert_eq!(&bytes[own..own + 8], b"EFI PART");
        assert_eq!((number(own + 24) * 512, number(own + 32) * 512), (own, other));
        let mut header = bytes[own..own + 92].to_vec();
        header[16..20].fill(0);
        assert_eq!(crc32fast::hash(&header), word(own + 16));
        let (table, len) = (number(own + 72) * 512, (word(own + 80) * word(own + 84)) as usize);
        assert_eq!(crc32fast::hash(&bytes[table..table + len]), word(own + 88));
    }
    assert_eq!(number(backup + 48), number(backup + 72) - 1, "all before the backup can be used");
}

/// As many distributions have it: the EFI image is a partition behind the ISO, and the first partition is a volume of its
/// own, with other block numbers for the same files.
#[tokio::test]
async fn both_volumes_of_an_image_with_an_offset_partition_are_edited() {
    let lab = Lab::new();
    let small = "menuentry x {\n linux /vmlinuz quiet\n}\n";
    lab.put_isolinux(ISOLINUX_CFG).put("boot/grub/grub.cfg", full_menu()).put("boot/grub/small.cfg", small);
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub()), ("EFI/BOOT/grub.cfg", b"linux /vmlinuz quiet\n")]);
    let image = lab.path("efi.img");
    fs::rename(lab.path("tree/boot/efi.img"), &image).unwrap();
    let appended = ["-append_partition", "2", "0xef", image.to_str().unwrap(), "-appended_part_as_gpt"];
    let catalogue = ["-eltorito-alt-boot", "-e", "--interval:appended_partition_2:all::", "-no-emul-boot"];
    let iso = lab.build(&[&["-J"], ISOLINUX, &catalogue, &appended, &["-partition_offset", "16"]]);
    fs::rename(&image, lab.path("tree/boot/efi.img")).unwrap();
    let rewritten = lab.rewrite(&iso).await.unwrap();

    let (_, after) = rewritten.efi_images(&lab);
    assert_eq!(text(&fat_files(&after), "EFI/BOOT/grub.cfg"), format!("linux /vmlinuz quiet {IN_GRUB}\n"));
    // What somebody sees who mounts the first partition.
    let partition = lab.path("partition.iso");
    fs::write(&partition, &fs::read(&rewritten.after).unwrap()[64 * 512..]).unwrap();
    for (iso, view) in
        [(&rewritten.after, "any"), (&rewritten.after, "norock"), (&partition, "any"), (&partition, "norock")]
    {
        let files = iso_files(iso, view);
        assert_eq!(text(&files, "boot/grub/grub.cfg"), edited(&full_menu()), "{view}");
        assert_eq!(text(&files, "boot/grub/small.cfg"), edited(small), "{view}");
    }
    let ((sane_before, before), (sane, after)) = (gpt(&iso), gpt(&rewritten.after));
    assert!(sane_before && sane);
    assert_eq!(before, after, "no partition covers another one that it did not cover");
    assert_eq!(after.len(), 3, "{after:?}");
    assert_backup_gpt(&rewritten.after);
}

/// Protective MBR, GPT, HFS+ and an Apple partition map, all of which GRUB's tool makes.
#[tokio::test]
async fn the_tables_of_an_image_of_grub_stay_sane() {
    let lab = Lab::new();
    lab.put("boot/grub/grub.cfg", full_menu());
    let iso = lab.path("original.iso");
    run(Command::new("grub-mkrescue").arg("-o").arg(&iso).arg(lab.path("tree")));
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(text(&iso_files(&rewritten.after, "any"), "boot/grub/grub.cfg"), edited(&full_menu()));
    rewritten.assert_others_untouched(&["boot/grub/grub.cfg"]);
    let ((sane_before, before), (sane, after)) = (gpt(&iso), gpt(&rewritten.after));
    assert!(sane_before && sane);
    assert_eq!(before, after);
    let protective = numbers(&system_area(&rewritten.after), "MBR partition      :   1   0x00  0xee");
    assert_eq!(protective, [1, rewritten.plan.size() / 512 - 1], "it stands for the whole disk");
}

/// In blocks of 512 bytes, as the first descriptor says.
fn volume_blocks(iso: &Path) -> u64 {
    let bytes = fs::read(iso).unwrap();
    let size = 16 * 2048 + 80;
    let little = u32::from_le_bytes(bytes[size..size + 4].try_into().unwrap());
    let big = u32::from_be_bytes(bytes[size + 4..size + 8].try_into().unwrap());
    assert_eq!(little, big);
    u64::from(little) * 4
}
