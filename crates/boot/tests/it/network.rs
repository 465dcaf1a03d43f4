//! Servers that boot from the network, as iPXE asks.

use std::time::Duration;

use boot::kind::HEAD;
use boot::links::Part;
use boot::os::Family;
use boot::serve::{Boots, Configuration, Delivery, Step};
use boot::ticket::Purpose;
use bytes::Bytes;
use engine::host::Payload;
use http::StatusCode;

use crate::stage::{Stage, ask, holder};
use crate::upstream::Manners;

const MAC: &str = "52-54-00-77-00-01";
const UUID: &str = "4c4c4544-0051-3010-8052-b4c04f564231";

/// A file that looks like a kernel.
fn kernel() -> Bytes {
    let mut kernel = vec![7; 300_000];
    kernel[0x202..0x206].copy_from_slice(b"HdrS");
    kernel.into()
}

fn delivery(payload: Payload, configuration: Option<Configuration>) -> Delivery {
    let config = configuration.as_ref().is_some_and(|configuration| configuration.url.is_none());
    Delivery { holder: holder(7), iso: None, payload: Some(payload), configuration, config, powered_on: true }
}

fn ours(family: Option<Family>) -> Configuration {
    Configuration { url: None, family }
}

/// What the server is told to boot, with the ticket and address of this run left out.
async fn told(stage: &Stage, delivery: Delivery) -> String {
    stage.registry.boot(MAC, Boots::Payload(Box::new(delivery)));
    let answer = ask("GET", &stage.links.script(MAC, UUID), &[]).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    plain(stage, std::str::from_utf8(answer.body()).unwrap())
}

fn plain(stage: &Stage, script: &str) -> String {
    let boot = stage.key.ticket(Purpose::Boot, &holder(7)).to_string();
    let config = stage.key.ticket(Purpose::Config, &holder(7)).to_string();
    script.replace(&boot, "BOOT").replace(&config, "CONFIG").replace(&format!("http://{}", stage.address()), "http://b")
}

fn linux(stage: &Stage, parameters: &str) -> Payload {
    let url = stage.upstream.url();
    Payload::Kernel { url: url.clone(), initrds: vec![url.clone(), url], parameters: parameters.into() }
}

#[tokio::test]
async fn the_scripts_that_servers_are_told() {
    let stage = Stage::new(kernel()).await;
    let url = stage.upstream.url();
    let mut shown = Vec::new();
    let entrance = ask("GET", &stage.links.entrance(), &[]).await.unwrap();
    shown.push(format!("== entrance\n{}", plain(&stage, std::str::from_utf8(entrance.body()).unwrap())));
    let script = Payload::Script { url: format!("{url}/a.ipxe") };
    let efi = |parameters: &str| Payload::Efi { url: url.clone(), parameters: parameters.into() };
    let users = |family| Some(Configuration { url: Some("http://c/config".into()), family });
    for (title, payload, configuration) in [
        ("a kernel", linux(&stage, "console=ttyS0"), None),
        ("a kernel of a family", linux(&stage, "console=ttyS0"), Some(ours(Some(Family::Talos)))),
        ("a kernel with a configuration of the user", linux(&stage, ""), users(Some(Family::Kairos))),
        (
            "a kernel whose parameters say where the configuration goes",
            linux(&stage, "inst.ks=BESKAR7_CONFIG_URL quiet"),
            Some(ours(None)),
        ),
        ("a kernel with cloud-config", linux(&stage, "quiet"), Some(ours(None))),
        ("an EFI program", efi(""), None),
        ("an EFI program with parameters", efi("quiet"), Some(ours(Some(Family::Flatcar)))),
        ("a script", script.clone(), None),
        ("a script with a configuration", script, Some(ours(None))),
    ] {
        shown.push(format!("== {title}\n{}", told(&stage, delivery(payload, configuration)).await));
    }
    stage.registry.is_ignition();
    shown.push(format!(
        "== a kernel with Ignition\n{}",
        told(&stage, delivery(linux(&stage, ""), Some(ours(None)))).await
    ));
    stage.registry.boot(MAC, Boots::Disk);
    let disk = ask("GET", &stage.links.script(MAC, UUID), &[]).await.unwrap();
    shown.push(format!("== the disk\n{}", std::str::from_utf8(disk.body()).unwrap()));
    let unknown = ask("GET", &stage.links.script("52-54-00-00-00-09", "$(reboot)"), &[]).await.unwrap();
    shown.push(format!("== nobody\n{}", std::str::from_utf8(unknown.body()).unwrap()));
    golden("scripts.txt", &shown.concat());
    assert_eq!(stage.registry.reported(), []);
}

/// Compares with a file of this folder; `BESKAR7_BLESS=1` writes it.
fn golden(name: &str, shown: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name);
    if std::env::var_os("BESKAR7_BLESS").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == expected, "{} differs; BESKAR7_BLESS=1 writes it anew:\n{shown}", path.display());
}

#[tokio::test]
async fn what_a_script_names_is_served_and_what_was_fetched_is_told() {
    let stage = Stage::new(kernel()).await;
    let delivery = delivery(linux(&stage, ""), None);
    stage.registry.boot(MAC, Boots::Payload(Box::new(delivery)));
    let ticket = stage.key.ticket(Purpose::Boot, &holder(7));
    let link = |part| stage.links.part(part, "d7", &ticket).unwrap();
    let d7 = |step| ("d7".to_owned(), step);

    ask("GET", &stage.links.script(MAC, UUID), &[]).await.unwrap();
    assert_eq!(stage.registry.steps(), [d7(Step::Asked)]);
    let head = ask("HEAD", &link(Part::Kernel), &[]).await.unwrap();
    assert_eq!((head.status(), &head.headers()["content-length"]), (StatusCode::OK, &"300000".parse().unwrap()));
    let start = ask("GET", &link(Part::Kernel), &[("range", "bytes=0-9")]).await.unwrap();
    assert_eq!((start.status(), start.body().len()), (StatusCode::PARTIAL_CONTENT, 10));
    assert_eq!(stage.registry.steps(), [d7(Step::Asked)], "neither a look nor a beginning is all of it");
    for part in [Part::Kernel, Part::Initrd(1)] {
        let whole = ask("GET", &link(part), &[]).await.unwrap();
        assert!(whole.status() == StatusCode::OK && *whole.body() == kernel(), "{part}");
    }
    assert_eq!(
        stage.registry.steps(),
        [d7(Step::Asked), d7(Step::Fetched(Part::Kernel)), d7(Step::Fetched(Part::Initrd(1)))]
    );

    // Nothing that is not part of it, and nothing without the ticket for it.
    let config = stage.key.ticket(Purpose::Config, &holder(7));
    for url in [
        link(Part::Initrd(2)),
        link(Part::Efi),
        link(Part::Script),
        stage.links.part(Part::Kernel, "d7", &config).unwrap(),
    ] {
        assert_eq!(ask("GET", &url, &[]).await.unwrap().status(), StatusCode::NOT_FOUND, "{url}");
    }
    stage.registry.release(7);
    assert_eq!(ask("GET", &link(Part::Kernel), &[]).await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(stage.registry.reported(), []);
}

#[tokio::test]
async fn a_file_that_breaks_off_was_not_fetched() {
    let stage = Stage::new(kernel()).await;
    stage.registry.boot(MAC, Boots::Payload(Box::new(delivery(linux(&stage, ""), None))));
    let link = stage.links.part(Part::Kernel, "d7", &stage.key.ticket(Purpose::Boot, &holder(7))).unwrap();
    stage.upstream.behave(Manners { cut_at: 200_000, ..Manners::default() });
    assert!(ask("GET", &link, &[]).await.is_none(), "the answer has no end");
    assert_eq!((stage.registry.steps(), stage.registry.reported().len()), (Vec::new(), 1));
}

#[tokio::test]
async fn cloud_init_finds_its_files_and_the_first_address_counts_for_all() {
    let stage = Stage::new(kernel()).await;
    stage.registry.boot(MAC, Boots::Payload(Box::new(delivery(linux(&stage, ""), Some(ours(None))))));
    let seed = stage.links.no_cloud("d7", &stage.key.ticket(Purpose::Config, &holder(7))).unwrap();
    let text = async |name: &str| {
        let answer = ask("GET", &format!("{seed}{name}"), &[]).await.unwrap();
        (answer.status().as_u16(), String::from_utf8(answer.body().to_vec()).unwrap())
    };
    assert_eq!(text("meta-data").await, (200, "instance-id: d7\nlocal-hostname: host-7\n".to_owned()));
    assert_eq!(text("vendor-data").await, (200, String::new()));
    assert_eq!(text("user-data").await, (200, "#cloud-config\nhost: host-7\n".to_owned()));
    assert_eq!(text("network-config").await.0, 404);
    stage.registry.change(7, |delivery| delivery.powered_on = false);
    assert_eq!(text("user-data").await.0, 503, "not before the power-on of this deployment");
}

#[tokio::test]
async fn boot_files_are_served_to_anybody_and_nothing_else_is() {
    let stage = Stage::new(kernel()).await;
    let file = ask("GET", &stage.links.file("snponly.efi"), &[]).await.unwrap();
    assert_eq!((file.status(), &file.body()[..]), (StatusCode::OK, &b"MZ iPXE"[..]));
    let head = ask("HEAD", &stage.links.file("snponly.efi"), &[]).await.unwrap();
    assert_eq!((&head.headers()["content-length"], head.body().len()), (&"7".parse().unwrap(), 0));
    for name in ["ipxe.efi", "..", "%2e%2e", "../../etc/passwd", "snponly.efi/"] {
        let answer = ask("GET", &stage.links.file(name), &[]).await;
        assert!(answer.is_none_or(|answer| answer.status().is_client_error()), "{name:?}");
    }
    assert_eq!(ask("POST", &stage.links.entrance(), &[]).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn what_is_no_kernel_is_told_and_the_server_tries_again() {
    let page: Bytes = format!("<html>{}", " ".repeat(HEAD)).into();
    let stage = Stage::new(page).await;
    let url = stage.upstream.url();
    for (payload, part) in [
        (linux(&stage, ""), Part::Kernel),
        (linux(&stage, ""), Part::Initrd(0)),
        (Payload::Script { url: url.clone() }, Part::Script),
        (Payload::Efi { url: url.clone(), parameters: String::new() }, Part::Efi),
    ] {
        stage.registry.boot(MAC, Boots::Payload(Box::new(delivery(payload, None))));
        let link = stage.links.part(part, "d7", &stage.key.ticket(Purpose::Boot, &holder(7))).unwrap();
        assert_eq!(ask("GET", &link, &[]).await.unwrap().status(), StatusCode::BAD_GATEWAY, "{part}");
    }
    assert_eq!(stage.registry.reported(), vec![("d7".to_owned(), "BootImageInvalid"); 4]);
    // What cannot be told keeps the server where it is, so that it boots nothing else.
    stage.registry.lose_secret(true);
    let script = told(&stage, delivery(linux(&stage, ""), Some(ours(None)))).await;
    assert!(script.contains("cannot be served now") && script.contains("chain --replace http://b/ipxe/"), "{script}");
    assert_eq!(stage.registry.reported().last().unwrap().1, "BootstrapDataUnavailable");
    let long = delivery(linux(&stage, &"x".repeat(2100)), None);
    assert!(told(&stage, long).await.contains("cannot be served now"));
    assert_eq!(stage.registry.reported().last().unwrap().1, "BootParametersInvalid");
}

#[tokio::test]
async fn an_image_that_leads_to_a_metadata_service_is_not_fetched() {
    let stage = Stage::new(kernel()).await;
    let redirects = [("/image.iso".to_owned(), "http://169.254.169.254/latest/meta-data".to_owned())].into();
    stage.upstream.behave(Manners { redirects, thinks: Duration::ZERO, ..Manners::default() });
    stage.registry.boot(MAC, Boots::Payload(Box::new(delivery(linux(&stage, ""), None))));
    let link = stage.links.part(Part::Kernel, "d7", &stage.key.ticket(Purpose::Boot, &holder(7))).unwrap();
    assert!(ask("GET", &link, &[]).await.unwrap().status().is_server_error());
    assert_eq!(stage.registry.reported().len(), 1);
    assert_eq!(stage.registry.steps(), []);
}
