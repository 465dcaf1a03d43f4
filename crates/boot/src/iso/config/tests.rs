use proptest::prelude::*;

use super::*;

fn parameters() -> Parameters {
    Parameters::new(["talos.platform=metal", "config_url=https://b7/c?t=a&h=b"]).unwrap()
}

fn edit(dialect: Dialect, text: &str) -> (String, usize) {
    let edited = dialect.edit(text.as_bytes(), &parameters(), Shared::Nothing);
    (String::from_utf8(edited.text).unwrap(), edited.kernel_lines)
}

/// Marks where the parameters are expected: `@` is replaced by them, as the dialect writes them.
fn check(dialect: Dialect, expected: &str, kernel_lines: usize) {
    let url = match dialect {
        Dialect::Grub => "'config_url=https://b7/c?t=a&h=b'",
        _ => "config_url=https://b7/c?t=a&h=b",
    };
    let before = expected.replace(" @", "");
    let after = expected.replace('@', &format!("talos.platform=metal {url}"));
    assert_eq!(edit(dialect, &before), (after.clone(), kernel_lines));
    assert_eq!(edit(dialect, &after), (after, kernel_lines), "a second time");
}

#[test]
fn grub_menus_of_the_systems_we_know() {
    // Kairos: the command is in a variable, chosen by firmware.
    check(
        Dialect::Grub,
        "set timeout=10
# `linux` on UEFI, too
if [ \"${grub_platform}\" = efi ]; then set linux=linux; else set linux=linux16; fi
search --no-floppy --file --set=root /boot/kernel.xz
menuentry \"Install\" --class os --unrestricted {
    echo Loading kernel...
    $linux ($root)/boot/kernel cdroot root=live:CDLABEL=COS_LIVE rd.live.dir=/ net.ifnames=1 console=tty1 install-mode @
    $initrd ($root)/boot/initrd
}
menuentry \"Manual\" {
    ${linux} ($root)/boot/kernel cdroot root=live:CDLABEL=COS_LIVE nodepair.enable @
    ${initrd} ($root)/boot/initrd
}
",
        2,
    );
    // Talos.
    check(
        Dialect::Grub,
        "set default=0\nset timeout=3\n\ninsmod all_video\nterminal_input console\n
menuentry \"Talos ISO\" {
\tset gfxmode=auto
\tset gfxpayload=text
\tlinux /boot/vmlinuz console=tty0 init_on_alloc=1 slab_nomerge pti=on @
\tinitrd /boot/initramfs.xz
}\n\nmenuentry \"Reset Talos installation\" {\n\tlinux /boot/vmlinuz talos.experimental.wipe=system @\n\tinitrd /boot/initramfs.xz\n}\n",
        2,
    );
    // Flatcar, and Leap Micro with its continued line.
    check(
        Dialect::Grub,
        "default=\"flatcar\"\nmenuentry \"Flatcar\" --id=flatcar {\n   linux /flatcar/vmlinuz flatcar.autologin @\n}\n",
        1,
    );
    check(
        Dialect::Grub,
        "menuentry \"Install\" --class opensuse {
  set gfxpayload=keep
  linuxefi /boot/x86_64/loader/linux \\
    rd.kiwi.install.pass.bootparam splash=silent \\
    systemd.show_status=1 root=install:CDLABEL=INSTALL @
  initrdefi /boot/x86_64/loader/initrd
}
",
        1,
    );
}

#[test]
fn grub_commands_end_where_grub_says_so() {
    let table = [
        ("linux /k @ # a comment", 1),
        ("linux /k a#b @", 1),
        ("linux /k @", 1),
        ("linux /k @; initrd /i", 1),
        ("if true; then linux /k @; else linux16 /l @; fi", 2),
        ("menuentry 'a { linux /no }' { linux /k @\n}", 1),
        ("menuentry x { linux /k @ }", 1),
        ("linux$suffix /k a @\nlinux${suffix} /k a @", 2),
        ("'linux' /k @", 1),
        ("linux /k root=\"LABEL=a b\" 'c d' e\\ f @\n", 1),
        ("linux /k a=\"x\\\"; y\" @; true", 1),
        ("linux /k a @ -- b", 1),
        ("linux /k @ --- quiet", 1),
        ("linux /k a @ \\\n --- quiet", 1),
        ("linux /k a \\\r\n  b @\r\ninitrd /i\r\n", 1),
        ("linux /k ${args} $more @", 1),
        ("linux \"/k\" 'multi\nline' @\n", 1),
        ("# linux /k", 0),
        ("linux", 0),
        ("set linux=linuxefi", 0),
        ("echo linux /k", 0),
        ("initrd /linux /k", 0),
        ("linux_load /k", 0),
        ("linux /k 'never closed\n", 0),
        ("", 0),
    ];
    for (expected, lines) in table {
        check(Dialect::Grub, expected, lines);
    }
}

#[test]
fn parameters_that_are_there_are_not_added_again() {
    let platform = "linux /k talos.platform=metal quiet\n";
    assert_eq!(
        edit(Dialect::Grub, platform).0,
        "linux /k talos.platform=metal quiet 'config_url=https://b7/c?t=a&h=b'\n"
    );
    let other = "linux /k talos.platform=nocloud 'config_url=https://b7/c?t=a&h=b' quiet\n";
    assert_eq!(
        edit(Dialect::Grub, other).0,
        "linux /k talos.platform=nocloud 'config_url=https://b7/c?t=a&h=b' quiet talos.platform=metal\n"
    );
}

#[test]
fn isolinux_menus_of_the_systems_we_know() {
    // Flatcar.
    check(
        Dialect::Syslinux,
        "# Flatcar\ndefault flatcar\nprompt 1\ntimeout 15\n\ninclude /syslinux/more.cfg\n
label flatcar
  menu default
  kernel /flatcar/vmlinuz
  append initrd=/flatcar/cpio.gz flatcar.autologin @
",
        1,
    );
    // A Debian-like menu with help, modules and submenus.
    check(
        Dialect::Syslinux,
        "path\r\ninclude menu.cfg\r\nDEFAULT vesamenu.c32\r\nUI vesamenu.c32\r
LABEL install\r
\tMENU LABEL ^Install\r
\tTEXT HELP\r
\tappend is a word here\r
\tENDTEXT\r
\tKERNEL /install.amd/vmlinuz\r
\tAPPEND vga=788 initrd=/install.amd/initrd.gz @ --- quiet\r
LABEL memtest\r
\tCOM32 memdisk\r
\tAPPEND iso raw\r
LABEL hd\r
\tKERNEL chain.c32\r
\tAPPEND hd0 0\r
LABEL local\r
\tLOCALBOOT 0x80\r
",
        1,
    );
}

#[test]
fn a_kernel_without_append_gets_one() {
    assert_eq!(
        edit(Dialect::Syslinux, "label a\n  linux /k\n  initrd /i\nlabel b\n  kernel /k").0,
        "label a\n  linux /k\n  append talos.platform=metal config_url=https://b7/c?t=a&h=b\n  initrd /i\n\
         label b\n  kernel /k\n  append talos.platform=metal config_url=https://b7/c?t=a&h=b\n"
    );
}

#[test]
fn parameters_for_all_labels_are_added_once() {
    check(Dialect::Syslinux, "append root=/dev/ram0 @\nlabel a\n linux /k\nlabel b\n linux /k\n append x @\n", 3);
    // The parameters for all are in the file that includes this one. An own line would hide them.
    let text = "label a\n linux /k\n";
    let edited = Dialect::Syslinux.edit(text.as_bytes(), &parameters(), Shared::SyslinuxAppend);
    assert_eq!((edited.text.as_slice(), edited.kernel_lines), (text.as_bytes(), 1));
    assert_eq!(Shared::by([b"append a".as_slice(), b""]), Shared::SyslinuxAppend);
    assert_eq!(Shared::by([b"label x\nappend a".as_slice(), b"append -"]), Shared::Nothing);
    // A label that wants none of them still gets ours.
    assert_eq!(
        edit(Dialect::Syslinux, "append y\nlabel a\n linux /k\n append -\n").0,
        "append y talos.platform=metal config_url=https://b7/c?t=a&h=b\nlabel a\n linux /k\n append talos.platform=metal \
         config_url=https://b7/c?t=a&h=b\n"
    );
}

#[test]
fn systemd_boot_entries() {
    check(Dialect::SystemdBoot, "title Arch\nlinux /a/vmlinuz\ninitrd /a/i\noptions a=b c @\n", 1);
    check(Dialect::SystemdBoot, "# comment\r\nlinux\t/vmlinuz\r\noptions a\r\noptions\tb @\r\n", 1);
    check(Dialect::SystemdBoot, "linux /k\noptions @", 1);
    check(Dialect::SystemdBoot, "title Shell\nefi /shellx64.efi\noptions x\n", 0);
    check(Dialect::SystemdBoot, "timeout 3\ndefault a*\n", 0);
    let added = "options talos.platform=metal config_url=https://b7/c?t=a&h=b\n";
    assert_eq!(edit(Dialect::SystemdBoot, "linux /k").0, format!("linux /k\n{added}"));
}

#[test]
fn the_words_in_a_file_tell_who_reads_it() {
    for (path, text, dialect) in [
        ("/loader/entries/a-b.conf", "linux /k", Dialect::SystemdBoot),
        ("/boot/x/loader/isolinux.cfg", "default linux\nLABEL linux", Dialect::Syslinux),
        ("/isolinux/txt.cfg", "append x", Dialect::Syslinux),
        ("/boot/grub2/grub.cfg", "menuentry \"label\" {\n}\n", Dialect::Grub),
        ("/EFI/BOOT/BOOT.conf", "  submenu x {", Dialect::Grub),
        ("/boot/grub/grub.cfg", "linux /k", Dialect::Grub),
        ("/syslinux.cfg", "", Dialect::Syslinux),
    ] {
        assert_eq!(Dialect::of(path, text.as_bytes()), dialect, "{path}");
    }
}

#[test]
fn compact_files_mean_the_same() {
    let grub = "# a\n\n  set x='\n  # kept\n'\n  linux /k \\\n   # a \n\n\t}\n";
    assert_eq!(Dialect::Grub.compact(grub.as_bytes()), b"set x='\n  # kept\n'\nlinux /k \\\n   # a \n}\n");
    let syslinux = "# a\r\n\r\nlabel x\r\n  linux /k\r\n";
    assert_eq!(Dialect::Syslinux.compact(syslinux.as_bytes()), b"label x\r\nlinux /k\r\n");
}

#[test]
fn the_longest_line_is_measured_as_the_kernel_sees_it() {
    let edited = Dialect::Grub.edit(b"linux /k a 'b'", &Parameters::new(["c"]).unwrap(), Shared::Nothing);
    assert_eq!(edited.longest, "BOOT_IMAGE=/k a b c".len());
}

fn any_script() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "linux",
        "linux /k",
        " ",
        "\n",
        "\\\n",
        "\r\n",
        "'",
        "\"",
        "\\",
        "$",
        "${",
        "}",
        "{",
        ";",
        "#",
        "a=1",
        "--",
        "label a\n",
        "append",
        "append -\n",
        "kernel /k\n",
        "text help\n",
        "endtext\n",
        "menu begin\n",
        "options ",
        "menuentry 'x' {\n",
        "ä",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn editing_twice_is_editing_once(text in any_script()) {
        for dialect in [Dialect::Grub, Dialect::Syslinux, Dialect::SystemdBoot] {
            let once = dialect.edit(&text, &parameters(), Shared::Nothing);
            let twice = dialect.edit(&once.text, &parameters(), Shared::Nothing);
            prop_assert_eq!(String::from_utf8_lossy(&once.text), String::from_utf8_lossy(&twice.text));
            prop_assert_eq!(once.kernel_lines, twice.kernel_lines);
        }
    }

    #[test]
    fn compact_files_have_the_same_kernel_lines(text in any_script()) {
        let grub = |text: &[u8]| Dialect::Grub.edit(text, &parameters(), Shared::Nothing).kernel_lines;
        prop_assert_eq!(grub(&text), grub(&Dialect::Grub.compact(&text)));
    }

    #[test]
    fn any_bytes_can_be_edited(text in prop::collection::vec(any::<u8>(), 0..200)) {
        for dialect in [Dialect::Grub, Dialect::Syslinux, Dialect::SystemdBoot] {
            dialect.edit(&text, &parameters(), Shared::Nothing);
            dialect.compact(&text);
        }
    }
}
