//! What is offered to whom.

use netboot::dhcp::{Architecture, Asker, BootFile, Features, Files, LOADERS, NoBoot, Request};

use super::packets::{changed, golden, without};
use super::rack::{BROADCAST, WE, files, read};

fn asks(asker: Asker, architecture: impl Into<Option<u16>>) -> Request {
    let mut request = read(&golden("uefi-discover"), BROADCAST);
    request.asker = asker;
    request.architectures = architecture.into().map(Architecture::from).into_iter().collect();
    request
}

fn ipxe() -> Asker {
    Asker::Ipxe(Features::default())
}

fn tftp(name: &str) -> BootFile {
    BootFile::Tftp { server: WE, name: name.to_owned() }
}

#[test]
fn each_kind_of_client_gets_its_file() {
    let script = || Ok(BootFile::Url(files().script.unwrap()));
    let http = || Ok(BootFile::Url(files().http.unwrap()));
    let not_served = |code: u16| Err(NoBoot::NotServed(Architecture::from(code)));
    for (asker, architecture, expected) in [
        (Asker::PxeFirmware, Some(0), Ok(tftp("undionly.kpxe"))),
        (Asker::PxeFirmware, Some(7), Ok(tftp("snponly.efi"))),
        (Asker::PxeFirmware, Some(9), Ok(tftp("snponly.efi"))),
        (Asker::PxeFirmware, Some(6), not_served(6)),
        (Asker::PxeFirmware, Some(11), not_served(11)),
        (Asker::PxeFirmware, Some(16), not_served(16)),
        (Asker::PxeFirmware, Some(4711), not_served(4711)),
        (Asker::PxeFirmware, None, Err(NoBoot::NoArchitecture)),
        (Asker::HttpFirmware, Some(16), http()),
        (Asker::HttpFirmware, Some(7), http()),
        (Asker::HttpFirmware, Some(0), not_served(0)),
        (Asker::HttpFirmware, Some(19), not_served(19)),
        (Asker::HttpFirmware, Some(20), not_served(20)),
        (Asker::HttpFirmware, None, Err(NoBoot::NoArchitecture)),
        (ipxe(), Some(0), script()),
        (ipxe(), Some(7), script()),
        (ipxe(), Some(9), script()),
        (ipxe(), Some(16), script()),
        (ipxe(), None, script()),
        (ipxe(), Some(11), not_served(11)),
        (Asker::Other, Some(7), Err(NoBoot::NotNetworkBoot)),
        (Asker::Other, None, Err(NoBoot::NotNetworkBoot)),
    ] {
        let request = asks(asker, architecture);
        assert_eq!(files().for_client(&request), expected, "{:?} {architecture:?}", request.asker);
    }
}

#[test]
fn ipxe_never_gets_the_loader_again() {
    let only_loaders = Files { script: None, http: None, ..files() };
    for architecture in 0..=30 {
        let refused = only_loaders.for_client(&asks(ipxe(), architecture)).unwrap_err();
        assert!(matches!(refused, NoBoot::Missing("iPXE script") | NoBoot::NotServed(_)), "{refused}");
    }
}

#[test]
fn ipxe_gets_only_what_it_can_read() {
    let says = |features: &[u8]| {
        let pairs: Vec<u8> = features.iter().flat_map(|feature| [*feature, 1, 1]).collect();
        read(&changed(&golden("ipxe-discover"), 175, &pairs), BROADCAST)
    };
    let http = files();
    let https = Files { script: Some("https://boot.example/script".to_owned()), ..files() };
    assert!(http.for_client(&says(&[0x13])).is_ok());
    assert_eq!(https.for_client(&says(&[0x13])), Err(NoBoot::IpxeLacks("https")));
    assert!(https.for_client(&says(&[0x13, 0x14])).is_ok());
    assert_eq!(http.for_client(&says(&[0x15, 0x17])), Err(NoBoot::IpxeLacks("http")));
    // An iPXE that does not say anything is believed to read URLs.
    assert!(https.for_client(&read(&without(&golden("ipxe-discover"), 175), BROADCAST)).is_ok());
}

#[test]
fn a_way_without_a_file_says_so() {
    let none = Files { bios: None, uefi: Some(String::new()), http: None, script: None, ..files() };
    let why = |asker, architecture: u16| none.for_client(&asks(asker, architecture)).unwrap_err().to_string();
    assert_eq!(why(Asker::PxeFirmware, 0), "no file for BIOS is configured");
    assert_eq!(why(Asker::PxeFirmware, 7), "no file for UEFI is configured");
    assert_eq!(why(Asker::HttpFirmware, 16), "no URL for UEFI HTTP boot is configured");
    assert_eq!(why(ipxe(), 7), "no iPXE script is configured");
}

#[test]
fn names_that_firmware_would_cut_are_refused() {
    let long = Files { bios: Some("b".repeat(128)), script: Some("s".repeat(256)), ..files() };
    let why = |asker, architecture: u16| long.for_client(&asks(asker, architecture)).unwrap_err().to_string();
    assert_eq!(why(Asker::PxeFirmware, 0), "file for BIOS is 128 bytes long, and only 127 fit into a DHCP message");
    assert_eq!(why(ipxe(), 0), "iPXE script is 256 bytes long, and only 255 fit into a DHCP message");
    let fitting = Files { bios: Some("b".repeat(127)), script: Some("s".repeat(255)), ..files() };
    assert!(fitting.for_client(&asks(Asker::PxeFirmware, 0)).is_ok());
    assert!(fitting.for_client(&asks(ipxe(), 0)).is_ok());
}

#[test]
fn the_advertised_names_are_in_one_list() {
    for name in [files().bios, files().uefi].into_iter().flatten() {
        assert!(LOADERS.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn offers_are_told_in_words() {
    assert_eq!(tftp("snponly.efi").to_string(), "snponly.efi by TFTP from 10.77.0.1");
    assert_eq!(BootFile::Url("http://10.77.0.1/x".to_owned()).to_string(), "http://10.77.0.1/x");
}
