//! The user's image.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Its name below the folder that nginx serves.
pub(super) const NAME: &str = "user.iso";

const MENU: &str = "menuentry live {\nlinux /vmlinuz quiet\ninitrd /initrd\n}\n";

/// Makes a hybrid image for BIOS and UEFI by GRUB's own tool.
pub(super) fn build(folder: &Path, megabytes: u32) -> Result<()> {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("boot/grub"))?;
    fs::write(tree.join("boot/grub/grub.cfg"), MENU)?;
    fs::write(tree.join("vmlinuz"), noise())?;
    fs::write(tree.join("initrd"), noise())?;
    let mut squashfs = BufWriter::new(fs::File::create(tree.join("live.squashfs"))?);
    for _ in 0..megabytes {
        squashfs.write_all(&noise())?;
    }
    squashfs.into_inner().context("the noise does not fit on the disk")?;
    let output = Command::new("grub-mkrescue")
        .arg("-o")
        .arg(folder.join(NAME))
        .arg(&tree)
        .stdin(Stdio::null())
        .output()
        .context("cannot run grub-mkrescue; install it with `hack/setup vm`")?;
    if !output.status.success() {
        bail!("grub-mkrescue failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    fs::remove_dir_all(tree)?;
    Ok(())
}

/// A megabyte that no file system can make smaller.
fn noise() -> Vec<u8> {
    let mut bytes = vec![0; 1_000_000];
    fastrand::fill(&mut bytes);
    bytes
}
