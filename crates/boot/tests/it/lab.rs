//! Builds images with xorriso, mtools and dosfstools, and looks into them with the same.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use boot::iso::{IsoError, Parameters, Plan, Source, SourceError};
use bytes::Bytes;
use futures::TryStreamExt as _;
use tempfile::TempDir;

pub(crate) const WORDS: [&str; 2] = ["config_url=https://b7.example/c?host=a&t=0123456789abcdef", "beskar7"];
/// As GRUB must be told.
pub(crate) const IN_GRUB: &str = "'config_url=https://b7.example/c?host=a&t=0123456789abcdef' beskar7";
/// As the others must be told.
pub(crate) const PLAIN: &str = "config_url=https://b7.example/c?host=a&t=0123456789abcdef beskar7";

pub(crate) const ISOLINUX: &[&str] = &[
    "-b",
    "isolinux/isolinux.bin",
    "-c",
    "isolinux/boot.cat",
    "-no-emul-boot",
    "-boot-load-size",
    "4",
    "-boot-info-table",
];
pub(crate) const EFI_IMAGE: &[&str] = &["-eltorito-alt-boot", "-e", "boot/efi.img", "-no-emul-boot"];
pub(crate) const EFI_ONLY: &[&str] = &["-e", "boot/efi.img", "-no-emul-boot", "-c", "boot/boot.cat"];

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) struct Lab(TempDir);

impl Lab {
    pub(crate) fn new() -> Self {
        let lab = Self(tempfile::tempdir().unwrap());
        fs::create_dir(lab.path("tree")).unwrap();
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts a file into the tree that becomes the ISO.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        write(&self.path("tree").join(path), content.as_ref());
        self
    }

    pub(crate) fn put_isolinux(&self, configuration: &str) -> &Self {
        let loader = fs::read("/usr/lib/ISOLINUX/isolinux.bin").expect("isolinux comes with `make setup`");
        self.put("isolinux/isolinux.bin", loader).put("isolinux/isolinux.cfg", configuration)
    }

    /// Makes a FAT image with these files the EFI boot image of the tree.
    pub(crate) fn put_efi_image(&self, bits: u8, kib: u32, files: &[(&str, &[u8])]) -> &Self {
        let image = self.path("tree/boot/efi.img");
        fs::create_dir_all(image.parent().unwrap()).unwrap();
        run(Command::new("mkfs.fat").args(["-F", &bits.to_string(), "-s", "1", "-C"]).arg(&image).arg(kib.to_string()));
        let root = self.path("fat");
        for (path, content) in files {
            write(&root.join(path), content);
        }
        let mut tops: Vec<PathBuf> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
        tops.sort();
        run(Command::new("mcopy").arg("-s").arg("-i").arg(&image).args(tops).arg("::/"));
        self
    }

    pub(crate) fn build(&self, options: &[&[&str]]) -> PathBuf {
        let iso = self.path("original.iso");
        let mut xorriso = Command::new("xorriso");
        xorriso.args(["-as", "mkisofs", "-quiet", "-V", "TEST"]).args(options.concat());
        run(xorriso.arg("-o").arg(&iso).arg(self.path("tree")));
        iso
    }

    /// Serves the ISO with the parameters, and writes down what a client gets.
    pub(crate) async fn rewrite(&self, iso: &Path) -> Result<Rewritten, IsoError> {
        let source = Arc::new(FileSource::open(iso));
        let plan = Arc::new(Plan::make(source.as_ref(), &parameters()).await?);
        let after = self.path("rewritten.iso");
        let chunks: Vec<Bytes> = plan.clone().stream(source.clone(), 0..u64::MAX).try_collect().await.unwrap();
        fs::write(&after, chunks.concat()).unwrap();
        assert_eq!(fs::metadata(&after).unwrap().len(), plan.size());
        assert!(source.largest_read.load(Ordering::Relaxed) <= 256 * 1024, "memory does not depend on the image");
        Ok(Rewritten { plan, before: iso.to_owned(), after })
    }
}

pub(crate) struct Rewritten {
    pub(crate) plan: Arc<Plan>,
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
}

impl Rewritten {
    /// `(where, kernel lines)` of all edited files.
    pub(crate) fn edited(&self) -> Vec<(String, usize)> {
        self.plan.edited().iter().map(|file| (file.path.clone(), file.kernel_lines)).collect()
    }

    /// All files of the ISO but those named are as they were, whichever names are read.
    pub(crate) fn assert_others_untouched(&self, edited: &[&str]) {
        for view in ["any", "norock", "nojoliet"] {
            let (mut before, mut after) = (iso_files(&self.before, view), iso_files(&self.after, view));
            assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{view}");
            let is_edited = |path: &str| edited.iter().any(|edited| edited.eq_ignore_ascii_case(path));
            before.retain(|path, _| !is_edited(path));
            after.retain(|path, _| !is_edited(path));
            assert!(!before.is_empty());
            assert!(before == after, "{view}: other files have changed");
        }
    }

    /// The EFI boot image as the boot catalogue names it, before and after. Checked by dosfstools.
    pub(crate) fn efi_images(&self, lab: &Lab) -> (PathBuf, PathBuf) {
        let image = |iso: &Path, name: &str| {
            let path = lab.path(name);
            let size = fs::metadata(lab.path("tree/boot/efi.img")).unwrap().len();
            let mut bytes = vec![0; usize::try_from(size).unwrap()];
            fs::File::open(iso).unwrap().read_exact_at(&mut bytes, efi_offset(iso)).unwrap();
            fs::write(&path, bytes).unwrap();
            run(Command::new("fsck.fat").args(["-n", "-v"]).arg(&path));
            path
        };
        (image(&self.before, "efi-before.img"), image(&self.after, "efi-after.img"))
    }
}

pub(crate) fn parameters() -> Parameters {
    Parameters::new(WORDS).unwrap()
}

/// The files of an ISO as xorriso reads them.
pub(crate) fn iso_files(iso: &Path, view: &str) -> Files {
    let out = tempfile::tempdir().unwrap();
    let mut xorriso = Command::new("xorriso");
    xorriso
        .args(["-report_about", "SORRY", "-abort_on", "SORRY", "-read_fs", view, "-osirrox", "on", "-indev"])
        .arg(iso);
    run(xorriso.args(["-extract", "/"]).arg(out.path().join("all")));
    // Directories keep their modes, and some are read-only.
    run(Command::new("chmod").args(["-R", "u+w"]).arg(out.path()));
    tree(&out.path().join("all"))
}

/// The files of a FAT image as mtools read them.
pub(crate) fn fat_files(image: &Path) -> Files {
    let out = tempfile::tempdir().unwrap();
    run(Command::new("mcopy").args(["-s", "-n", "-i"]).arg(image).arg("::/*").arg(out.path()));
    tree(out.path())
}

/// Where the EFI boot image lies, as xorriso reads the boot catalogue.
pub(crate) fn efi_offset(iso: &Path) -> u64 {
    let report = run(Command::new("xorriso").arg("-indev").arg(iso).args(["-report_el_torito", "plain"]));
    let line = report.lines().find(|line| line.starts_with("El Torito boot img") && line.contains("UEFI")).unwrap();
    line.split_whitespace().last().unwrap().parse::<u64>().unwrap() * 2048
}

pub(crate) fn text(files: &Files, path: &str) -> String {
    String::from_utf8(files.get(path).unwrap_or_else(|| panic!("no {path} in {:?}", files.keys())).clone()).unwrap()
}

/// The headers of an EFI program with these sections.
pub(crate) fn efi_program(sections: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0; 0x80];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes.extend(b"PE\0\0\x64\x86");
    bytes.extend(u16::try_from(sections.len()).unwrap().to_le_bytes());
    bytes.resize(0x80 + 24, 0);
    for section in sections {
        let start = bytes.len();
        bytes.extend(section.as_bytes());
        bytes.resize(start + 40, 0);
    }
    bytes.resize(6000, 7);
    bytes
}

pub(crate) fn grub() -> Vec<u8> {
    efi_program(&[".text", ".data", "mods", ".reloc"])
}

pub(crate) fn systemd_boot() -> Vec<u8> {
    efi_program(&[".text", ".sdmagic"])
}

pub(crate) fn unified_kernel_image() -> Vec<u8> {
    efi_program(&[".text", ".sdmagic", ".osrel", ".cmdline", ".linux", ".initrd"])
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .env("MTOOLS_SKIP_CHECK", "1")
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?} ({error}): run `make setup`"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?} failed: {} {}", said[0], said[1]);
    said.concat()
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn tree(root: &Path) -> Files {
    let mut files = Files::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// An image on disk, and how it is read.
pub(crate) struct FileSource {
    file: fs::File,
    size: u64,
    pub(crate) largest_read: AtomicUsize,
}

impl FileSource {
    pub(crate) fn open(path: &Path) -> Self {
        let file = fs::File::open(path).unwrap();
        let size = file.metadata().unwrap().len();
        Self { file, size, largest_read: AtomicUsize::new(0) }
    }
}

impl Source for FileSource {
    fn size(&self) -> u64 {
        self.size
    }

    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, SourceError> {
        self.largest_read.fetch_max(len, Ordering::Relaxed);
        let mut bytes = vec![0; len];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(|error| SourceError { why: error.to_string(), transient: false })?;
        Ok(bytes.into())
    }
}
