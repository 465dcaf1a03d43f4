//! A release and the container image made from it. `hack/test image` builds the release and names its folder in BESKAR7_TEST_DIST.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{free_port, wait_for};
use tokio::process::Command;

use crate::program::{Running, beskar7};
use crate::workspace;

const PATIENCE: Duration = Duration::from_mins(1);
const IMAGE: &str = "registry.example/beskar7:test";
const COMMIT: &str = "0123456789ab";
const BUNDLE: &str = "etc/ssl/certs/ca-certificates.crt";

/// The folder that `hack/release` wrote.
fn dist() -> PathBuf {
    PathBuf::from(std::env::var_os("BESKAR7_TEST_DIST").expect("hack/test image sets BESKAR7_TEST_DIST"))
}

fn binary() -> PathBuf {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    dist().join(format!("beskar7-linux-{arch}"))
}

async fn run(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Vec<u8> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace()).envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Makes images, in a place of its own.
struct Workshop(TempDir);

impl Workshop {
    fn new() -> Self {
        let workshop = Self(tempfile::tempdir().unwrap());
        let (graph, run) = (workshop.path("graph"), workshop.path("run"));
        let storage = format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{graph}\"\nrunroot = \"{run}\"\n");
        fs::write(workshop.path("storage.conf"), storage).unwrap();
        workshop
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    async fn run(&self, program: &str, arguments: &[&str]) {
        let storage = self.path("storage.conf");
        let variables = [
            ("CONTAINERS_STORAGE_CONF", storage.as_str()),
            // Without namespaces, which not every machine allows.
            ("BUILDAH_ISOLATION", "chroot"),
            ("CONTAINER_TOOL", "buildah"),
            ("BESKAR7_COMMIT", COMMIT),
        ];
        run(program, arguments, &variables).await;
    }

    /// The image around the binary of the release, taken apart.
    async fn image(&self) -> Image {
        let (image, binary) = (format!("IMG={IMAGE}"), format!("BINARY={}", binary().display()));
        self.run("make", &["docker-build", &image, &binary]).await;
        self.unpack().await
    }

    async fn unpack(&self) -> Image {
        let folder = self.path("image");
        self.run("buildah", &["push", "--quiet", "--disable-compression", IMAGE, &format!("dir:{folder}")]).await;
        let blob = |digest: &Value| Path::new(&folder).join(digest.as_str().unwrap().trim_start_matches("sha256:"));
        let read = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
        let manifest = read(&Path::new(&folder).join("manifest.json"));
        let layers = manifest["layers"].as_array().unwrap();
        let root = self.path("root");
        fs::create_dir(&root).unwrap();
        for layer in layers {
            let layer = blob(&layer["digest"]);
            run("tar", &["-xpf", layer.to_str().unwrap(), "--numeric-owner", "-C", &root], &[]).await;
        }
        Image { root: root.into(), config: read(&blob(&manifest["config"]["digest"])), layers: layers.len() }
    }
}

struct Image {
    root: PathBuf,
    config: Value,
    layers: usize,
}

impl Image {
    /// The binary with nothing around it but the image, as the user that the image names.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.args(["--userspec=65532:65532", "--groups=65532"]).arg(&self.root).arg("/beskar7").args(arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// Each path with its mode and owner, in order; folders end with a slash.
    fn listing(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::symlink_metadata(&path).unwrap();
                let slash = if about.is_dir() { "/" } else { "" };
                let name = path.strip_prefix(&self.root).unwrap().display();
                found.push(format!("{name}{slash} {:o} {}", about.mode() & 0o7777, about.uid()));
                if about.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

const LISTING: [&str; 10] = [
    "beskar7 755 0",
    "etc/ 755 0",
    "etc/ssl/ 755 0",
    "etc/ssl/certs/ 755 0",
    "etc/ssl/certs/ca-certificates.crt 644 0",
    "tmp/ 1777 0",
    "var/ 755 0",
    "var/cache/ 755 0",
    "var/lib/ 755 0",
    "var/lib/beskar7/ 755 65532",
];

/// Whether a program for 64 bits asks for a loader of shared libraries (PT_INTERP).
fn asks_for_a_loader(program: &[u8]) -> bool {
    let number =
        |at: usize, len: usize| program[at..at + len].iter().rev().fold(0, |sum, &byte| sum * 256 + usize::from(byte));
    assert_eq!(program[..5], [0x7f, b'E', b'L', b'F', 2]);
    let (table, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    assert!(count > 0);
    (0..count).any(|header| number(table + header * size, 4) == 3)
}

#[test]
#[ignore = "needs a release: hack/test image"]
fn the_binary_of_a_release_needs_no_libraries() {
    assert!(!asks_for_a_loader(&fs::read(binary()).unwrap()));
    // One that does is recognized.
    assert!(asks_for_a_loader(&fs::read(env!("CARGO_BIN_EXE_beskar7")).unwrap()));
}

#[tokio::test]
#[ignore = "needs a release: hack/test image"]
async fn a_release_is_complete_and_its_checksums_are_right() {
    let dist = dist();
    let mut files: Vec<_> = fs::read_dir(&dist).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.retain(|name| !name.to_str().unwrap().starts_with("beskar7-linux-"));
    files.sort();
    assert_eq!(files, ["SHA256SUMS", "beskar7.service", "install.yaml"]);
    assert!(binary().exists());
    let sums = fs::read_to_string(dist.join("SHA256SUMS")).unwrap();
    for entry in fs::read_dir(&dist).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert_eq!(sums.contains(&format!("  {name}\n")), name != "SHA256SUMS", "{name}:\n{sums}");
    }
    run("sh", &["-c", "cd \"$0\" && sha256sum --check --strict --quiet SHA256SUMS", dist.to_str().unwrap()], &[]).await;
    let install = fs::read_to_string(dist.join("install.yaml")).unwrap();
    assert_eq!(install.matches(&format!(" image: {IMAGE}\n")).count(), 1);
    assert_eq!(install.matches("\nkind: CustomResourceDefinition\n").count(), api::crds().len());
}

#[tokio::test]
#[ignore = "needs a release: hack/test image"]
async fn the_image_holds_the_binary_and_no_other_program() {
    let workshop = Workshop::new();
    let image = workshop.image().await;
    assert_eq!(image.layers, 1);
    assert_eq!(image.listing(), LISTING);
    assert_eq!(fs::read(image.root.join("beskar7")).unwrap(), fs::read(binary()).unwrap());
    let certificates = fs::read_to_string(image.root.join(BUNDLE)).unwrap();
    assert!(certificates.matches("-----BEGIN CERTIFICATE-----").count() > 50, "public authorities are trusted");
    let config = &image.config["config"];
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["Entrypoint"], json!(["/beskar7"]));
    assert_eq!(config["Labels"]["org.opencontainers.image.revision"], COMMIT);
}

#[test]
#[ignore = "needs a release: hack/test image"]
fn the_deployment_suits_the_image() {
    let install = fs::read_to_string(dist().join("install.yaml")).unwrap();
    let deployment = install.split("\n---\n").find(|object| object.contains("\nkind: Deployment\n")).unwrap();
    let deployment: Value = serde_saphyr::from_str(deployment).unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let user = (&pod["securityContext"]["runAsUser"], &pod["securityContext"]["runAsGroup"]);
    assert_eq!(user, (&json!(65532), &json!(65532)));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!((&container["command"], &container["args"]), (&Value::Null, &json!(["run"])), "the entrypoint is ours");
    // What it writes to is mounted, because nothing else can be written.
    let variables = container["env"].as_array().unwrap();
    let cache = variables.iter().find(|variable| variable["name"] == "BESKAR7_BOOT_CACHE").unwrap();
    assert_eq!(container["volumeMounts"], json!([{"name": "cache", "mountPath": cache["value"]}]));
    assert!(pod["volumes"][0]["emptyDir"].is_object());
}

#[tokio::test]
#[ignore = "needs a release: hack/test image"]
async fn the_image_runs_without_root_and_resolves_names() {
    let workshop = Workshop::new();
    let image = workshop.image().await;
    let output = image.command(&["version"]).output().await.unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains(&format!("target: {}-linux-musl\n", std::env::consts::ARCH)), "{told} {:?}", output.stderr);
    let complaint = String::from_utf8(image.command(&["run"]).output().await.unwrap().stderr).unwrap();
    assert!(complaint.contains("there is no kubeconfig"), "{complaint}");

    // A BMC that only the bundle vouches for, by its name.
    let (port, manifest) = (free_port().to_string(), workshop.path("host.yaml"));
    let mut bmc =
        Running::start(&["sim", "--name", "rack", "--seed", "7", "--base-port", &port, "--manifests", &manifest]);
    bmc.says(&port).await;
    let show = format!("openssl s_client -connect 127.0.0.1:{port} </dev/null 2>/dev/null | openssl x509");
    fs::write(image.root.join(BUNDLE), run("sh", &["-c", &show], &[]).await).unwrap();
    let written = fs::read_to_string(&manifest).unwrap().replace("https://127.0.0.1:", "https://localhost:");
    let unpinned: Vec<_> = written.lines().filter(|line| !line.contains("certificateFingerprint")).collect();
    assert!(written.contains("https://localhost:") && unpinned.len() < written.lines().count(), "{written}");
    fs::write(&manifest, unpinned.join("\n")).unwrap();
    // Runtimes put this file into every container.
    fs::write(image.root.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();

    let mut running = Running::spawn(image.command(&["standalone", "--simulate", "1", "--listen", "localhost:0"]));
    let told = running.says("export KUBECONFIG=").await;
    let kubeconfig = image.root.join(told.trim().trim_start_matches("export KUBECONFIG=/"));
    running.says("Ctrl-C ends it").await;
    assert_eq!(fs::metadata(&kubeconfig).unwrap().uid(), 65532);

    let options = KubeConfigOptions::default();
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let health = client.request_text(http::Request::get("/healthz").body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(health, "ok");
    let kubeconfig = kubeconfig.to_str().unwrap();
    beskar7(&["apply", "-f", &manifest, "--kubeconfig", kubeconfig]).await.ok();
    let available = ["hosts", "--kubeconfig", kubeconfig, "--state", "Available", "-o", "name"];
    wait_for("the BMC with its certificate in the bundle, and the simulated one", PATIENCE, async || {
        (beskar7(&available).await.ok() == "default/rack-000\ndefault/sim-000\n").then_some(())
    })
    .await;

    running.signal(Signal::TERM);
    let (status, said) = running.ends().await;
    assert!(status.success(), "{said}");
}

/// Everything but the compiler: in its place stands a script that takes the binary of the release.
#[tokio::test]
#[ignore = "needs a release: hack/test image"]
async fn the_containerfile_builds_from_the_sources_that_it_is_given() {
    let workshop = Workshop::new();
    let rust = workshop.0.path().join("rust");
    fs::create_dir_all(rust.join("bin")).unwrap();
    fs::create_dir_all(rust.join("etc/ssl/certs")).unwrap();
    fs::copy(testkit::part("vm").join("busybox"), rust.join("bin/busybox")).unwrap();
    for program in ["sh", "mkdir", "cp", "chmod", "test"] {
        std::os::unix::fs::symlink("busybox", rust.join("bin").join(program)).unwrap();
    }
    fs::write(rust.join(BUNDLE), "certificates").unwrap();
    fs::copy(binary(), rust.join("compiled")).unwrap();
    let cargo = format!(
        "#!/bin/sh -e\ntest \"$*\" = 'build --release --locked -p beskar7'\ntest \"$BESKAR7_COMMIT\" = {COMMIT}\n\
         test -f Cargo.lock\ntest -f crates/beskar7/src/main.rs\ntest ! -e .git\ntest ! -e target\n\
         mkdir -p target/release\ncp /compiled target/release/beskar7\n"
    );
    fs::write(rust.join("bin/cargo"), cargo).unwrap();
    fs::set_permissions(rust.join("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let recipe = workshop.path("rust.Containerfile");
    fs::write(&recipe, "FROM scratch\nCOPY . /\n").unwrap();
    workshop.run("buildah", &["build", "--quiet", "-f", &recipe, "-t", "localhost/rust", rust.to_str().unwrap()]).await;

    let flags = "IMAGE_FLAGS=--pull=false --build-arg=RUST=localhost/rust";
    workshop.run("make", &["docker-build", &format!("IMG={IMAGE}"), flags]).await;
    let image = workshop.unpack().await;
    assert_eq!(image.listing(), LISTING);
    assert_eq!(image.config["config"]["User"], "65532:65532");
    assert!(image.command(&["version"]).status().await.unwrap().success());
}

/// Everything but Debian: in its place stands busybox, with an apt-get that has one package in place of two.
#[tokio::test]
#[ignore = "needs a release: hack/test image"]
async fn the_image_of_the_boot_files_holds_them_their_licences_and_a_way_to_copy_them() {
    let workshop = Workshop::new();
    let (debian, tree) = (workshop.0.path().join("debian"), workshop.0.path().join("tree"));
    let busybox = testkit::part("vm").join("busybox");
    fs::create_dir_all(debian.join("bin")).unwrap();
    fs::copy(&busybox, debian.join("bin/busybox")).unwrap();
    for program in ["sh", "mkdir", "cp", "chmod", "test", "sed", "sha256sum", "dpkg-deb"] {
        std::os::unix::fs::symlink("busybox", debian.join("bin").join(program)).unwrap();
    }
    fs::write(debian.join("bin/apt-get"), "#!/bin/sh -e\ntest \"$1\" = update || cp /*.deb .\n").unwrap();
    fs::set_permissions(debian.join("bin/apt-get"), fs::Permissions::from_mode(0o755)).unwrap();

    for folder in ["DEBIAN", "bin", "boot", "usr/lib/ipxe", "usr/share/doc/ipxe", "usr/share/doc/busybox-static"] {
        fs::create_dir_all(tree.join(folder)).unwrap();
    }
    let control =
        "Package: ipxe\nVersion: 1.0-2\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: test\n";
    fs::write(tree.join("DEBIAN/control"), control).unwrap();
    for name in ["undionly.kpxe", "snponly.efi"] {
        fs::copy(Path::new("/usr/lib/ipxe").join(name), tree.join("usr/lib/ipxe").join(name)).unwrap();
    }
    // As Debian 12 has it.
    fs::copy("/usr/lib/ipxe/ipxe.efi", tree.join("boot/ipxe.efi")).unwrap();
    std::os::unix::fs::symlink("/boot/ipxe.efi", tree.join("usr/lib/ipxe/ipxe.efi")).unwrap();
    fs::copy(&busybox, tree.join("bin/busybox")).unwrap();
    for package in ["ipxe", "busybox-static"] {
        fs::write(tree.join("usr/share/doc").join(package).join("copyright"), "its licence").unwrap();
    }
    let (tree, package) = (tree.to_str().unwrap(), debian.join("ipxe_1.0-2_all.deb"));
    run("dpkg-deb", &["--root-owner-group", "-Zgzip", "-b", tree, package.to_str().unwrap()], &[]).await;
    let recipe = workshop.path("debian.Containerfile");
    fs::write(&recipe, "FROM scratch\nCOPY . /\n").unwrap();
    let folder = debian.to_str().unwrap();
    workshop.run("buildah", &["build", "--quiet", "-f", &recipe, "-t", "localhost/debian", folder]).await;

    let flags = "IMAGE_FLAGS=--pull=false --build-arg=DEBIAN=localhost/debian";
    workshop.run("make", &["docker-build-assets", &format!("IMG={IMAGE}"), flags]).await;
    let image = workshop.unpack().await;
    let files: Vec<_> = image.listing().into_iter().filter(|line| !line.contains("/ ")).collect();
    assert_eq!(
        files,
        [
            "bin/cp 755 0",
            "boot-files/SOURCE 644 0",
            "boot-files/ipxe.efi 644 0",
            "boot-files/snponly.efi 644 0",
            "boot-files/undionly.kpxe 644 0",
            "usr/share/doc/busybox-static/copyright 644 0",
            "usr/share/doc/ipxe/copyright 644 0",
        ]
    );
    assert_eq!(image.config["config"]["User"], "65532:65532");

    // As the Deployment runs it.
    let mounted = image.root.join("mnt");
    fs::create_dir(&mounted).unwrap();
    fs::set_permissions(&mounted, fs::Permissions::from_mode(0o777)).unwrap();
    let command: Vec<_> = image.config["config"]["Cmd"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut copy = Command::new("chroot");
    copy.args(["--userspec=65532:65532", "--groups=65532"]).arg(&image.root).args(command);
    assert!(copy.status().await.unwrap().success());
    let told = beskar7(&["assets", "check", "--boot-files", mounted.to_str().unwrap()]).await.ok();
    assert_eq!(told.matches("  ok     1.0-2").count(), 4, "{told}");
}

#[tokio::test]
#[ignore = "needs a release: hack/test image"]
async fn a_binary_that_needs_libraries_is_not_put_into_an_image() {
    let mut build = Command::new(workspace().join("hack/image"));
    build.args(["build", IMAGE, env!("CARGO_BIN_EXE_beskar7")]).env("CONTAINER_TOOL", "buildah");
    let output = build.output().await.unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && complaint.contains("needs shared libraries"), "{complaint}");
}
