//! Boot files that are not ours: out of packages, good and bad ones, and in folders.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;
use tokio::process::Command;

use crate::program::{Said, beskar7, beskar7_in};

const BIOS: &[u8] = b"\xea\x05\x00\xc0\x07 iPXE";
const CONTROL: &str =
    "Package: ipxe\nVersion: 1.0-2\nArchitecture: all\nMaintainer: Somebody <a@example.org>\nDescription: test\n";

/// An EFI program as far as its head tells.
fn efi(machine: u16) -> Vec<u8> {
    let mut bytes = b"MZ".to_vec();
    bytes.resize(0x3c, 0);
    bytes.extend(0x40_u32.to_le_bytes());
    bytes.extend(b"PE\0\0");
    bytes.extend(machine.to_le_bytes());
    bytes.resize(4096, 0x90);
    bytes
}

fn good() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("./usr/lib/ipxe/undionly.kpxe", BIOS.to_vec()),
        ("./usr/lib/ipxe/snponly.efi", efi(0x8664)),
        ("./usr/lib/ipxe/ipxe.efi", efi(0x8664)),
    ]
}

/// A tar archive in which names stand as they are given, whatever they are.
fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (name, content) in files {
        append(&mut archive, name, EntryType::Regular, "", content);
    }
    archive.into_inner().unwrap()
}

fn append(archive: &mut Builder<Vec<u8>>, name: &str, kind: EntryType, target: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    if !target.is_empty() {
        header.set_link_name(target).unwrap();
    }
    header.set_cksum();
    archive.append(&header, content).unwrap();
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        writeln!(archive, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, 100_644, content.len()).unwrap();
        archive.extend(*content);
        if content.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

fn deb(control: &str, data: &[u8]) -> Vec<u8> {
    let control = gz(&tar(&[("./control", control.into())]));
    ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &gz(data))])
}

/// Packages, and the folder that their files go into.
struct Site(TempDir);

impl Site {
    fn with(packages: &[(&str, &[u8])]) -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        fs::create_dir(site.path("packages")).unwrap();
        for (name, bytes) in packages {
            fs::write(site.path("packages").join(name), bytes).unwrap();
        }
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn target(&self) -> PathBuf {
        self.path("a/boot-files")
    }

    async fn fetch(&self) -> Said {
        let (into, packages) = (self.target(), self.path("packages"));
        let (into, packages) = (into.to_str().unwrap(), packages.to_str().unwrap());
        beskar7(&["assets", "fetch", "--into", into, "--packages", packages]).await
    }

    async fn check(&self) -> Said {
        check(&self.target()).await
    }
}

async fn check(folder: &Path) -> Said {
    beskar7(&["assets", "check", "--boot-files", folder.to_str().unwrap()]).await
}

/// What a package is refused for. Nothing is written then.
async fn refusal(package: &[u8]) -> String {
    let site = Site::with(&[("ipxe_1.0-2_all.deb", package)]);
    let complaint = site.fetch().await.error();
    assert!(!site.target().exists(), "it complained and wrote all the same: {complaint}");
    assert!(complaint.contains("ipxe_1.0-2_all.deb"), "{complaint}");
    complaint
}

async fn run(program: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(program).args(arguments).current_dir(folder).output().await.unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_boot_files_of_a_package_are_written_and_nothing_else_is() {
    let mut files = good();
    files.push(("./usr/lib/ipxe/ipxe.iso", b"iso".to_vec()));
    let site = Site::with(&[
        ("ipxe_1.0-2_all.deb", &deb(CONTROL, &tar(&files))),
        ("ipxe_1.0-10_all.deb", &deb(&CONTROL.replace("1.0-2", "1.0-10"), &tar(&files))),
        ("ipxe-qemu_9_all.deb", b"another package"),
        ("ipxe_notes.txt", b"no package"),
    ]);
    let said = site.fetch().await.ok();
    assert!(said.starts_with("ipxe_1.0-10_all.deb: version 1.0-10, SHA-256 "), "{said}");
    assert!(said.contains("Only its structure was checked") && said.contains("undionly.kpxe"), "{said}");
    let mut written: Vec<_> =
        fs::read_dir(site.target()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    written.sort();
    assert_eq!(written, ["SOURCE", "ipxe.efi", "snponly.efi", "undionly.kpxe"]);
    for name in &written {
        let mode = fs::metadata(site.target().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644, "{name}");
    }
    assert_eq!(fs::read(site.target().join("undionly.kpxe")).unwrap(), BIOS);
    let source = fs::read_to_string(site.target().join("SOURCE")).unwrap();
    assert!(source.starts_with("package: ipxe\nversion: 1.0-10\nlicence: "), "{source}");
    run("sh", &["-c", "tail -n 3 SOURCE | sha256sum --check --strict --quiet"], &site.target()).await;

    let told = site.check().await.ok();
    assert_eq!(told.matches("  ok     1.0-10").count(), 4, "{told}");
    // A second time, over what is there.
    site.fetch().await.ok();
    assert_eq!(fs::read_dir(site.target()).unwrap().count(), 4);
}

#[tokio::test]
async fn packages_are_read_however_they_are_compressed() {
    for compression in ["xz", "zstd", "gzip"] {
        let site = Site::with(&[]);
        let tree = site.path("tree");
        fs::create_dir_all(tree.join("DEBIAN")).unwrap();
        fs::create_dir_all(tree.join("usr/lib/ipxe")).unwrap();
        fs::create_dir_all(tree.join("boot")).unwrap();
        fs::write(tree.join("DEBIAN/control"), CONTROL).unwrap();
        for (name, content) in good() {
            fs::write(tree.join(name), content).unwrap();
        }
        // As Debian 12 has it.
        fs::rename(tree.join("usr/lib/ipxe/ipxe.efi"), tree.join("boot/ipxe.efi")).unwrap();
        std::os::unix::fs::symlink("/boot/ipxe.efi", tree.join("usr/lib/ipxe/ipxe.efi")).unwrap();
        let option = format!("-Z{compression}");
        run("dpkg-deb", &["--root-owner-group", &option, "-b", "tree", "packages/ipxe_1.0-2_all.deb"], site.0.path())
            .await;
        site.fetch().await.ok();
        assert_eq!(fs::read(site.target().join("ipxe.efi")).unwrap(), efi(0x8664), "{compression}");

        // Cut anywhere, it is refused.
        let whole = fs::read(site.path("packages/ipxe_1.0-2_all.deb")).unwrap();
        for end in [0, 7, 40, 70, whole.len() / 2, whole.len() - 40] {
            refusal(&whole[..end]).await;
        }
    }
}

#[tokio::test]
async fn names_that_lead_elsewhere_and_links_are_not_followed() {
    let outside =
        ["../../../../tmp/undionly.kpxe", "/usr/lib/ipxe/undionly.kpxe", "./usr/lib/ipxe/../../undionly.kpxe"];
    for name in outside {
        let mut files = good();
        files[0].0 = name;
        let complaint = refusal(&deb(CONTROL, &tar(&files))).await;
        assert!(complaint.contains("it has no usr/lib/ipxe/undionly.kpxe"), "{name}: {complaint}");
    }
    for kind in [EntryType::Symlink, EntryType::Link] {
        let mut archive = Builder::new(Vec::new());
        for (name, content) in &good()[1..] {
            append(&mut archive, name, EntryType::Regular, "", content);
        }
        append(&mut archive, "./usr/lib/ipxe/undionly.kpxe", kind, "/etc/passwd", b"");
        let complaint = refusal(&deb(CONTROL, &archive.into_inner().unwrap())).await;
        assert!(complaint.contains("it has no usr/lib/ipxe/undionly.kpxe"), "{complaint}");
    }
}

#[tokio::test]
async fn what_unpacks_to_too_much_is_refused() {
    let bomb = vec![0; 65 << 20];
    let inside = |name| [good(), vec![(name, bomb.clone())]].concat();
    for data in [tar(&inside("./usr/share/zeros")), [tar(&good()), bomb.clone()].concat()] {
        let complaint = refusal(&deb(CONTROL, &data)).await;
        assert!(complaint.contains("larger than 64 MiB when unpacked"), "{complaint}");
    }
    let control = gz(&tar(&[("./control", bomb.clone())]));
    let package = ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", b"")]);
    assert!(refusal(&package).await.contains("larger than 64 MiB"));
    assert!(refusal(&bomb).await.contains("larger than 64 MiB"));
}

#[tokio::test]
async fn what_is_not_debians_ipxe_is_refused() {
    let data = tar(&good());
    let with = |at: usize, content: &[u8]| {
        let mut files = good();
        files[at].1 = content.to_vec();
        deb(CONTROL, &tar(&files))
    };
    let control = gz(&tar(&[("./control", CONTROL.into())]));
    let mut twice = good();
    twice.push(("usr/lib/ipxe/snponly.efi", efi(0x8664)));
    for (package, why) in [
        (b"<html>not found</html>".to_vec(), "it is no Debian package"),
        (b"!<arch>\n".to_vec(), "it is empty"),
        (ar(&[("control.tar.gz", &control)]), "no Debian package of format 2"),
        (ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &control)]), "it has no data.tar."),
        (ar(&[("debian-binary", b"2.0\n"), ("control.tar.bz2", b"x"), ("data.tar.gz", b"")]), "compressed in a way"),
        (deb(&CONTROL.replace("Package: ipxe", "Package: ipxe-qemu"), &data), "it is not the package ipxe"),
        (deb("Package: ipxe\n", &data), "it does not say its version"),
        (deb("Package: ipxe\nVersion: ../1\n", &data), "it does not say its version"),
        (deb(CONTROL, &tar(&good()[..2])), "it has no usr/lib/ipxe/ipxe.efi"),
        (deb(CONTROL, &tar(&twice)), "usr/lib/ipxe/snponly.efi twice"),
        (with(0, b""), "its undionly.kpxe cannot be used: it is empty"),
        (with(0, &efi(0x8664)), "which BIOS cannot start"),
        (with(1, b"<html>"), "its snponly.efi cannot be used: it is no EFI program"),
        (with(2, &efi(0xaa64)), "another architecture than x86-64 (machine 0xaa64)"),
    ] {
        let complaint = refusal(&package).await;
        assert!(complaint.contains(why), "{why:?} is not in {complaint}");
    }
    let empty = Site::with(&[]);
    assert!(empty.fetch().await.error().contains("there is no ipxe_*.deb in"));
}

#[tokio::test]
async fn without_packages_apt_is_asked_and_its_answers_are_explained() {
    let site = Site::with(&[("ipxe_1.0-2_all.deb", &deb(CONTROL, &tar(&good())))]);
    let (into, bin) = (site.target(), site.path("bin"));
    let fetch = ["assets", "fetch", "--into", into.to_str().unwrap()];
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let nothing = beskar7_in(&[("PATH", "/nonexistent")], &fetch).await.error();
    assert!(nothing.contains("there is no apt on this machine") && nothing.contains("--packages"), "{nothing}");

    fs::create_dir(&bin).unwrap();
    let apt = |script: &str| {
        fs::write(bin.join("apt-get"), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(bin.join("apt-get"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    for (said, why) in [
        ("E: Unable to locate package ipxe", "bring its lists up to date with `apt-get update`"),
        ("E: Some packages could not be authenticated", "not signed by anybody it trusts; it was not taken"),
        ("W: something\nE: Disk full", "apt cannot download the package ipxe: Disk full;"),
    ] {
        apt(&format!("echo '{said}' >&2; exit 100"));
        let complaint = beskar7_in(&[("PATH", &path)], &fetch).await.error();
        assert!(complaint.contains(why), "{complaint}");
        assert!(!into.exists());
    }
    apt(&format!("echo \"$@\" >'{0}/asked'; cp '{0}'/packages/*.deb .", site.0.path().display()));
    let said = beskar7_in(&[("PATH", &path)], &fetch).await.ok();
    assert!(said.starts_with("ipxe_1.0-2_all.deb: version 1.0-2") && !said.contains("Only its structure"), "{said}");
    let asked = fs::read_to_string(site.path("asked")).unwrap();
    assert!(asked.ends_with(" download ipxe\n") && asked.contains("AllowUnauthenticated=false"), "{asked}");
    site.check().await.ok();
}

/// The real apt, with a source of our own in place of those of the machine.
#[tokio::test]
async fn apt_takes_no_package_that_nobody_signed() {
    let package = deb(CONTROL, &tar(&good()));
    let site = Site::with(&[("ipxe_1.0-2_all.deb", &package)]);
    let home = site.0.path().display().to_string();
    for folder in ["state/lists/partial", "cache/archives/partial", "parts"] {
        fs::create_dir_all(site.path(folder)).unwrap();
    }
    fs::write(site.path("status"), "").unwrap();
    let index = "f=ipxe_1.0-2_all.deb; printf '%sFilename: ./%s\\nSize: %s\\nSHA256: %s\\n' \
        \"$CONTROL\" $f $(stat -c %s $f) $(sha256sum $f | cut -d' ' -f1) >Packages";
    run("sh", &["-c", &format!("CONTROL='{CONTROL}'; {index}")], &site.path("packages")).await;
    let config = format!(
        "Dir::State \"{home}/state\";\nDir::State::status \"{home}/status\";\nDir::Cache \"{home}/cache\";\n\
         Dir::Etc::sourcelist \"{home}/sources.list\";\nDir::Etc::sourceparts \"{home}/parts\";\n\
         APT::Sandbox::User \"root\";\n"
    );
    fs::write(site.path("apt.conf"), config).unwrap();
    let (config, into) = (site.path("apt.conf"), site.target());
    let variables = [("PATH", "/usr/bin:/bin"), ("APT_CONFIG", config.to_str().unwrap())];
    let fetch = ["assets", "fetch", "--into", into.to_str().unwrap()];
    let update = async |source: &str| {
        fs::write(site.path("sources.list"), format!("deb {source} file:{home}/packages ./\n")).unwrap();
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-o", "Acquire::AllowInsecureRepositories=true", "update"]).envs(variables);
        let output = apt.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let unknown = beskar7_in(&variables, &fetch).await.error();
    assert!(unknown.contains("apt knows no package ipxe"), "{unknown}");
    update("").await;
    let unsigned = beskar7_in(&variables, &fetch).await.error();
    assert!(unsigned.contains("is not signed by anybody it trusts"), "{unsigned}");
    assert!(!into.exists());
    // One that the machine's administrator vouches for.
    update("[trusted=yes]").await;
    beskar7_in(&variables, &fetch).await.ok();
    site.check().await.ok();
}

#[tokio::test]
async fn a_folder_is_checked_way_by_way() {
    let told = check(Path::new("/usr/lib/ipxe")).await.ok();
    let lines: Vec<_> = told.lines().collect();
    for (line, beginning) in lines[1..].iter().zip([
        "BIOS by PXE               undionly.kpxe  ok",
        "UEFI by PXE               snponly.efi    ok",
        "UEFI HTTP                 snponly.efi    ok",
        "UEFI with iPXE's drivers  ipxe.efi       ok",
    ]) {
        assert_eq!(*line, beginning);
    }

    let site = Site::with(&[("ipxe_1.0-2_all.deb", &deb(CONTROL, &tar(&good())))]);
    let missing = site.check().await;
    assert_eq!(missing.stdout.matches("  missing").count(), 4, "{missing:?}");
    let why = missing.error();
    assert!(why.contains("3 of 3 ways of booting cannot be served") && why.contains("beskar7 assets fetch"), "{why}");

    site.fetch().await.ok();
    // Nothing sends servers there by itself.
    fs::remove_file(site.target().join("ipxe.efi")).unwrap();
    assert!(site.check().await.ok().ends_with("ipxe.efi       missing\n"));
    fs::write(site.target().join("undionly.kpxe"), "").unwrap();
    fs::write(site.target().join("snponly.efi"), efi(0x14c)).unwrap();
    let unusable = site.check().await;
    assert_eq!(unusable.status.code(), Some(1));
    assert!(unusable.stdout.contains("unusable  it is empty"), "{unusable:?}");
    assert_eq!(unusable.stdout.matches("for another architecture than x86-64 (machine 0x014c)").count(), 2);
    fs::write(site.target().join("undionly.kpxe"), "another one").unwrap();
    let changed = site.check().await;
    assert!(changed.stdout.contains("it is not the file that SOURCE tells of"), "{changed:?}");
    // Without the note, it is only looked at.
    fs::remove_file(site.target().join("SOURCE")).unwrap();
    fs::write(site.target().join("snponly.efi"), efi(0x8664)).unwrap();
    site.check().await.ok();
}
