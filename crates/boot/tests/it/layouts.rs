//! The layouts of real installers, in small.

use std::fs;

use boot::iso::{Dialect, Firmware, Place, Plan};

use crate::lab::{
    EFI_IMAGE, EFI_ONLY, FileSource, IN_GRUB, ISOLINUX, Lab, PLAIN, efi_offset, fat_files, grub, iso_files, parameters,
    systemd_boot, text,
};

const ISOLINUX_CFG: &str = "default live\nlabel live\n  kernel /boot/vmlinuz\n  append initrd=/boot/initrd quiet\n";
const GRUB_CFG: &str = "set timeout=1\nmenuentry 'Live' {\n  linux /boot/vmlinuz quiet\n  initrd /boot/initrd\n}\n";
/// What a GRUB in an EFI image often has: it only looks for the other one.
const GRUB_STUB: &str = "search --set=root --file /boot/grub/grub.cfg\nconfigfile ($root)/boot/grub/grub.cfg\n";

fn edited_grub(configuration: &str) -> String {
    configuration.replace("quiet\n", &format!("quiet {IN_GRUB}\n"))
}

#[tokio::test]
async fn isolinux_for_bios_and_grub_for_uefi_with_rock_ridge_and_joliet() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG).put("boot/grub/grub.cfg", GRUB_CFG).put("boot/vmlinuz", "kernel");
    lab.put("a file with a long name and spaces.txt", "x").put("pool/other.cfg", GRUB_CFG);
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub()), ("EFI/BOOT/grub.cfg", GRUB_STUB.as_bytes())]);
    let iso = lab.build(&[&["-J", "-r"], ISOLINUX, EFI_IMAGE]);
    let rewritten = lab.rewrite(&iso).await.unwrap();

    let mut edited = rewritten.edited();
    edited.sort();
    assert_eq!(edited, [("/boot/grub/grub.cfg".to_owned(), 1), ("/isolinux/isolinux.cfg".to_owned(), 1)]);
    assert!(rewritten.plan.covers(Firmware::Bios) && rewritten.plan.covers(Firmware::Uefi));
    assert_eq!(rewritten.plan.size(), fs::metadata(&iso).unwrap().len(), "everything fits into its sector");
    for view in ["any", "norock", "nojoliet"] {
        let files = iso_files(&rewritten.after, view);
        assert_eq!(text(&files, "boot/grub/grub.cfg"), edited_grub(GRUB_CFG), "{view}");
        let isolinux = ISOLINUX_CFG.replace("quiet\n", &format!("quiet {PLAIN}\n"));
        assert_eq!(text(&files, "isolinux/isolinux.cfg"), isolinux, "{view}");
    }
    rewritten.assert_others_untouched(&["boot/grub/grub.cfg", "isolinux/isolinux.cfg"]);

    // Kernels read one byte order, some firmware the other.
    let bytes = fs::read(&rewritten.after).unwrap();
    let name = b"\x0aGRUB.CFG;1";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap() - 32;
    let len = u32::try_from(edited_grub(GRUB_CFG).len()).unwrap();
    assert_eq!(bytes[at + 10..at + 18], [len.to_le_bytes(), len.to_be_bytes()].concat());
}

#[tokio::test]
async fn a_menu_in_the_fat_image_that_loses_its_comments_keeps_its_clusters() {
    let lab = Lab::new();
    let comments = "# words, words, words\n".repeat(210);
    let menu = format!("{comments}{GRUB_CFG}{}", "#".repeat(512 - (comments.len() + GRUB_CFG.len()) % 512));
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub()), ("EFI/BOOT/grub.cfg", menu.as_bytes())]);
    let iso = lab.build(&[EFI_ONLY]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    let (_, after) = rewritten.efi_images(&lab);
    let after = text(&fat_files(&after), "EFI/BOOT/grub.cfg");
    assert_eq!(after.trim_end(), edited_grub(GRUB_CFG).replace("  ", "").trim_end());
}

#[tokio::test]
async fn grub_whose_menu_is_only_in_the_fat_image() {
    // The file has no room left in its clusters, so it needs more of them.
    let menu = format!("{GRUB_CFG}{}", "menuentry 'More' {\n  linux /boot/vmlinuz quiet\n}\n".repeat(40));
    for (bits, kib) in [(12, 1440), (16, 8192), (32, 40_000)] {
        let lab = Lab::new();
        let files: [(&str, &[u8]); 3] =
            [("EFI/BOOT/BOOTX64.EFI", &grub()), ("boot/grub/grub.cfg", menu.as_bytes()), ("zz/last.bin", &[9; 3000])];
        lab.put_efi_image(bits, kib, &files);
        let iso = lab.build(&[EFI_ONLY]);
        let rewritten = lab.rewrite(&iso).await.unwrap();
        let (before, after) = rewritten.efi_images(&lab);
        let (mut before, mut after) = (fat_files(&before), fat_files(&after));
        let edited = after.remove("boot/grub/grub.cfg").unwrap();
        before.remove("boot/grub/grub.cfg");
        assert_eq!(before, after, "FAT{bits}");
        let edited = String::from_utf8(edited).unwrap();
        let expected = edited_grub(&menu).replace("  ", "");
        assert_eq!(edited, expected, "FAT{bits}: more clusters, and no indentation");
        assert!(edited.len() > menu.len() + 1024);
        rewritten.assert_others_untouched(&["boot/efi.img", "boot.catalog"]);

        let file = &rewritten.plan.edited()[0];
        assert_eq!((file.place, file.dialect), (Place::EfiImage { offset: efi_offset(&iso) }, Dialect::Grub));
        assert!(rewritten.plan.covers(Firmware::Uefi) && !rewritten.plan.covers(Firmware::Bios));
    }
}

#[tokio::test]
async fn systemd_boot_with_long_file_names() {
    let lab = Lab::new();
    let entry = "title Live\nlinux /vmlinuz\ninitrd /initrd\noptions archisobasedir=arch\n";
    let files: [(&str, &[u8]); 4] = [
        ("EFI/BOOT/BOOTX64.EFI", &systemd_boot()),
        ("loader/loader.conf", b"timeout 3\ndefault 01*\n"),
        ("loader/entries/01-a-rather-long-name-of-an-entry.conf", entry.as_bytes()),
        ("loader/entries/02-shell.conf", b"title Shell\nefi /shell.efi\n"),
    ];
    lab.put_efi_image(16, 8192, &files);
    let iso = lab.build(&[EFI_ONLY]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(rewritten.edited(), [("/loader/entries/01-a-rather-long-name-of-an-entry.conf".to_owned(), 1)]);
    let (before, after) = rewritten.efi_images(&lab);
    let (before, mut expected, after) = (fat_files(&before), fat_files(&before), fat_files(&after));
    let path = "loader/entries/01-a-rather-long-name-of-an-entry.conf";
    expected.insert(path.to_owned(), text(&before, path).replace("=arch", &format!("=arch {PLAIN}")).into_bytes());
    assert_eq!(after, expected);
    assert!(rewritten.plan.covers(Firmware::Uefi));
}

/// Rock Ridge names that do not fit into their record go on elsewhere.
#[tokio::test]
async fn a_very_long_name_is_read_to_its_end() {
    let lab = Lab::new();
    let name = format!("boot/grub/{}.cfg", "x".repeat(240));
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub())]).put(&name, GRUB_CFG);
    let iso = lab.build(&[EFI_ONLY]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(rewritten.edited(), [(format!("/{name}"), 1)]);
    assert_eq!(text(&iso_files(&rewritten.after, "any"), &name), edited_grub(GRUB_CFG));
}

#[tokio::test]
async fn comments_go_before_a_file_moves() {
    let lab = Lab::new();
    let padding = "# words, words, words\n".repeat(88);
    let menu = format!("{padding}{GRUB_CFG}");
    assert!(menu.len() < 2048 && edited_grub(&menu).len() > 2048, "{}", menu.len());
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub())]).put("boot/grub/grub.cfg", &menu);
    let iso = lab.build(&[&["-J"], EFI_ONLY]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(rewritten.plan.size(), fs::metadata(&iso).unwrap().len());
    let menu = text(&iso_files(&rewritten.after, "any"), "boot/grub/grub.cfg");
    assert_eq!(menu, edited_grub(GRUB_CFG).replace("  ", ""));
    rewritten.assert_others_untouched(&["boot/grub/grub.cfg"]);
}

#[tokio::test]
async fn one_file_with_many_names_is_edited_once() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG);
    for name in ["boot/grub/grub.cfg", "boot/grub2/grub.cfg", "EFI/BOOT/grub.cfg"] {
        lab.put(name, "");
    }
    let first = lab.path("tree/boot/grub/grub.cfg");
    fs::write(&first, GRUB_CFG).unwrap();
    for name in ["tree/boot/grub2/grub.cfg", "tree/EFI/BOOT/grub.cfg"] {
        fs::remove_file(lab.path(name)).unwrap();
        fs::hard_link(&first, lab.path(name)).unwrap();
    }
    let iso = lab.build(&[&["-J", "-R"], ISOLINUX]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(rewritten.edited().len(), 2, "one menu for each boot loader");
    let files = iso_files(&rewritten.after, "any");
    for name in ["boot/grub/grub.cfg", "boot/grub2/grub.cfg", "EFI/BOOT/grub.cfg"] {
        assert_eq!(text(&files, name), edited_grub(GRUB_CFG), "{name}");
    }
}

#[tokio::test]
async fn the_same_image_and_parameters_give_the_same_plan_and_a_second_pass_changes_nothing() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG).put("boot/grub/grub.cfg", format!("{GRUB_CFG}{}", "echo x; ".repeat(300)));
    lab.put_efi_image(12, 1440, &[("EFI/BOOT/BOOTX64.EFI", &grub()), ("EFI/BOOT/grub.cfg", GRUB_CFG.as_bytes())]);
    let iso = lab.build(&[&["-J"], ISOLINUX, EFI_IMAGE]);
    let first = lab.rewrite(&iso).await.unwrap();
    assert_eq!(*first.plan, Plan::make(&FileSource::open(&iso), &parameters()).await.unwrap());
    assert!(first.plan.weight() > 0);
    let second = Plan::make(&FileSource::open(&first.after), &parameters()).await.unwrap();
    assert_eq!((second.weight(), second.size(), second.edited()), (0, first.plan.size(), first.plan.edited()));
}

#[tokio::test]
async fn a_checksum_of_the_medium_is_blanked() {
    let lab = Lab::new();
    lab.put_isolinux(ISOLINUX_CFG);
    let iso = lab.build(&[ISOLINUX]);
    let mut bytes = fs::read(&iso).unwrap();
    let area = 16 * 2048 + 883..16 * 2048 + 883 + 512;
    bytes[area.clone()].fill(b' ');
    let implanted = b"ISO MD5SUM = 0123456789abcdef0123456789abcdef;SKIPSECTORS = 15;RHLISOSTATUS=1";
    bytes[area.start..area.start + implanted.len()].copy_from_slice(implanted);
    fs::write(&iso, bytes).unwrap();
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(fs::read(&rewritten.after).unwrap()[area], [b' '; 512]);
}
