//! `make deploy`: whose image runs on the cluster.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::workspace;

const PLACEHOLDER: &str = "image.invalid/beskar7";

/// A kubectl that renders, but only notes what it was told to apply.
fn harmless_kubectl(scratch: &TempDir) -> PathBuf {
    let kubectl = scratch.path().join("kubectl");
    let real = testkit::part("kube").join("bin/kubectl");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = apply ]; then cat >'{}'; exit 0; fi\nexec '{}' \"$@\"\n",
        scratch.path().join("applied").display(),
        real.display(),
    );
    std::fs::write(&kubectl, script).unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    kubectl
}

/// Runs `make deploy` with these variables; what it applied, or its complaint.
async fn deploy(variables: &[&str]) -> Result<String, String> {
    let scratch = tempfile::tempdir().unwrap();
    let kubectl = format!("KUBECTL={}", harmless_kubectl(&scratch).display());
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "deploy", &kubectl]).args(variables).current_dir(workspace());
    let output = make.env_remove("IMG").env_remove("CONFIG").output().await.unwrap();
    let applied = std::fs::read_to_string(scratch.path().join("applied"));
    if output.status.success() {
        Ok(applied.unwrap())
    } else {
        assert!(applied.is_err(), "it complained and applied all the same");
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

#[tokio::test]
async fn the_image_that_was_named_is_deployed() {
    for (config, kind) in [("config/default", "ClusterRole"), ("config/namespaced", "Role")] {
        for image in ["registry.example:5000/lab/beskar7:v0.1.0", "registry.example/beskar7@sha256:0123456789abcdef"] {
            let applied = deploy(&[&format!("IMG={image}"), &format!("CONFIG={config}")]).await.unwrap();
            assert_eq!(applied.matches(&format!(" image: {image}\n")).count(), 1, "{config}");
            assert!(!applied.contains("image.invalid"), "{config}");
            for kind in [kind, "CustomResourceDefinition", "Namespace", "Deployment"] {
                assert!(applied.contains(&format!("\nkind: {kind}\n")), "{config}: {kind}");
            }
        }
    }
}

#[tokio::test]
async fn without_an_image_nothing_is_deployed() {
    let complaint = deploy(&[]).await.unwrap_err();
    assert!(complaint.contains("Say which image to run: IMG=registry.example/beskar7:v0.1.0"), "{complaint}");
    assert!(complaint.contains("make docker-build docker-push IMG="), "{complaint}");
    for wrong in ["IMG=two words", "IMG=-f", "IMG=a|b"] {
        let complaint = deploy(&[wrong]).await.unwrap_err();
        assert!(complaint.contains("is not the name of an image"), "{wrong}: {complaint}");
    }
}

#[tokio::test]
async fn a_folder_that_runs_no_operator_is_not_deployed() {
    let complaint = deploy(&["IMG=registry.example/beskar7", "CONFIG=config/crd"]).await.unwrap_err();
    assert!(complaint.contains("config/crd: there should be one container with the image"), "{complaint}");
}

/// Runs a target of the Makefile where only these container tools are installed; what they were told, or the complaint.
async fn with_tools(tools: &[(&str, &str)], arguments: &[&str]) -> Result<String, String> {
    let scratch = tempfile::tempdir().unwrap();
    let (bin, note) = (scratch.path().join("bin"), scratch.path().join("told"));
    std::fs::create_dir(&bin).unwrap();
    for program in ["bash", "sh", "make", "dirname", "git", "env", "mktemp", "rm", "rmdir", "mkdir"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().await.unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        std::os::unix::fs::symlink(found.trim(), bin.join(program)).unwrap();
    }
    for (tool, script) in tools {
        let file = bin.join(tool);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\necho {tool} \"$@\" >>'{}'\n", note.display())).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut make = Command::new("make");
    make.arg("--no-print-directory").args(arguments).current_dir(workspace());
    make.env("PATH", &bin).env_remove("CONTAINER_TOOL").env_remove("IMAGE_FLAGS").env("BESKAR7_COMMIT", "0123");
    let output = make.output().await.unwrap();
    let told = std::fs::read_to_string(note).unwrap_or_default();
    if output.status.success() { Ok(told) } else { Err(String::from_utf8(output.stderr).unwrap()) }
}

#[tokio::test]
async fn the_image_is_built_and_pushed_with_the_tool_that_works() {
    // The docker command without its daemon.
    let stopped = ("docker", "[ \"$1\" != info ] || exit 1");
    let running = ("docker", "[ \"$1\" != info ] || exit 0");
    let (podman, buildah) = (("podman", ""), ("buildah", ""));
    let image = "IMG=registry.example/beskar7:v1";
    for (tools, used, more) in [
        (&[running, podman, buildah][..], "docker", ""),
        (&[stopped, podman, buildah], "podman", ""),
        (&[stopped, buildah], "buildah", "--layers=false "),
    ] {
        let told = with_tools(tools, &["docker-build", "docker-push", image]).await.unwrap();
        let (build, push) = told.split_once('\n').unwrap();
        assert_eq!(
            build,
            format!("{used} build -f ./Containerfile -t registry.example/beskar7:v1 --build-arg COMMIT=0123 {more}.")
        );
        assert_eq!(push, format!("{used} push registry.example/beskar7:v1\n"));
    }
    let complaint = with_tools(&[stopped], &["docker-build", image]).await.unwrap_err();
    assert!(complaint.contains("install docker (and start its daemon), podman or buildah"), "{complaint}");
    for target in ["docker-build", "docker-push"] {
        let complaint = with_tools(&[podman], &[target]).await.unwrap_err();
        assert!(complaint.contains("name the image, such as IMG=registry.example/beskar7:v0.1.0"), "{complaint}");
    }
}

#[tokio::test]
async fn the_image_of_the_boot_files_is_built_from_no_files_of_ours() {
    let image = "IMG=registry.example/beskar7-boot-files:v1";
    let seen = ("podman", "for folder; do :; done; rmdir \"$folder\" || exit 1; mkdir \"$folder\"");
    let told = with_tools(&[seen], &["docker-build-assets", image]).await.unwrap();
    let (begin, folder) = told.trim_end().rsplit_once(' ').unwrap();
    assert!(
        begin.starts_with("podman build -f ") && begin.ends_with("-t registry.example/beskar7-boot-files:v1"),
        "{told}"
    );
    assert!(begin.contains("/Containerfile.assets "), "{told}");
    assert!(!std::path::Path::new(folder).exists(), "it is left behind: {folder}");
    let complaint = with_tools(&[("podman", "")], &["docker-build-assets"]).await.unwrap_err();
    assert!(complaint.contains("name the image"), "{complaint}");
}

/// The component in a kustomization of one's own, as its comment shows it.
#[tokio::test]
async fn the_boot_files_are_copied_to_where_the_operator_looks_for_them() {
    let scratch = tempfile::tempdir().unwrap();
    // kustomize takes no absolute paths.
    let up = "../".repeat(scratch.path().canonicalize().unwrap().components().count() - 1);
    let config =
        format!("{up}{}", workspace().join("config").canonicalize().unwrap().strip_prefix("/").unwrap().display());
    let own = format!(
        "resources: [{config}/default]\ncomponents: [{config}/boot-assets]\nimages:\n\
         - {{name: image.invalid/beskar7-boot-files, newName: registry.example/files, newTag: v2}}\n"
    );
    std::fs::write(scratch.path().join("kustomization.yaml"), own).unwrap();
    let config = format!("CONFIG={}", scratch.path().display());
    let applied = deploy(&["IMG=registry.example/beskar7:v1", &config]).await.unwrap();
    let deployment = applied.split("\n---\n").find(|object| object.contains("\nkind: Deployment\n")).unwrap();
    let deployment: Value = serde_saphyr::from_str(deployment).unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let (copier, operator) = (&pod["initContainers"][0], &pod["containers"][0]);
    assert_eq!(copier["image"], "registry.example/files:v2");
    assert_eq!(copier["securityContext"], operator["securityContext"]);
    let mount = |container: &Value| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts.iter().find(|mount| mount["name"] == "boot-files").unwrap()["mountPath"].clone()
    };
    // Where the image's own command copies them to.
    let containerfile = std::fs::read_to_string(workspace().join("Containerfile.assets")).unwrap();
    assert!(containerfile.contains(r#"CMD ["/bin/cp", "-R", "/boot-files/.", "/mnt"]"#));
    assert_eq!(mount(copier), "/mnt");
    let variables = operator["env"].as_array().unwrap();
    let files = variables.iter().find(|variable| variable["name"] == "BESKAR7_BOOT_FILES").unwrap();
    assert_eq!(mount(operator), files["value"]);
}

#[test]
fn nobody_elses_image_or_repository_is_named() {
    let deployment = std::fs::read_to_string(workspace().join("config/manager/deployment.yaml")).unwrap();
    let images: Vec<_> = deployment.lines().filter_map(|line| line.trim().strip_prefix("image: ")).collect();
    assert!(matches!(images[..], [image] if image.starts_with(&format!("{PLACEHOLDER}:"))), "{images:?}");
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("\nrepository ="), "which repository is ours?");
}

#[test]
fn the_image_is_compiled_with_the_rust_that_the_workspace_asks_for() {
    let containerfile = std::fs::read_to_string(workspace().join("Containerfile")).unwrap();
    let tag = format!("\nARG RUST=rust:{}-alpine\n", env!("CARGO_PKG_RUST_VERSION"));
    assert!(containerfile.contains(&tag), "{tag:?} is not in\n{containerfile}");
}
