use super::*;

fn read(text: &str) -> (String, Option<String>) {
    let address = BmcAddress::parse(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
    (address.service.origin(), address.system)
}

fn refused(text: &str) -> (Kind, String) {
    let failure = BmcAddress::parse(text).expect_err(text);
    (failure.kind, failure.to_string())
}

/// The cases of upstream's `access_test.go` that speak Redfish.
#[test]
fn upstreams_addresses_are_read_as_upstream_reads_them() {
    let table = [
        ("redfish://192.168.122.1", "https://192.168.122.1", None),
        ("redfish://192.168.122.1:6233/foo", "https://192.168.122.1:6233", Some("/foo")),
        ("redfish://[fe80::fc33:62ff:fe83:8a76]", "https://[fe80::fc33:62ff:fe83:8a76]", None),
        ("redfish://[fe80::fc33:62ff:fe83:8a76]:6233/foo", "https://[fe80::fc33:62ff:fe83:8a76]:6233", Some("/foo")),
        ("redfish:192.168.122.1", "https://192.168.122.1", None),
        ("redfish://192.168.122.1/redfish/v1/foo/bar", "https://192.168.122.1", Some("/redfish/v1/foo/bar")),
        ("redfish+http://192.168.122.1/foo/bar", "http://192.168.122.1", Some("/foo/bar")),
        ("redfish+https://192.168.122.1/foo/bar", "https://192.168.122.1", Some("/foo/bar")),
        ("redfish://192.168.122.1:8080/foo/bar", "https://192.168.122.1:8080", Some("/foo/bar")),
        ("redfish://[fe80::fc33:62ff:fe83:8a76]/foo/bar", "https://[fe80::fc33:62ff:fe83:8a76]", Some("/foo/bar")),
        ("redfish://[fe80::fc33:62ff:fe83:8a76]:8080/foo", "https://[fe80::fc33:62ff:fe83:8a76]:8080", Some("/foo")),
        ("redfish+https://192.168.122.1/", "https://192.168.122.1", None),
        ("redfish+https://192.168.122.1/redfish/v1/", "https://192.168.122.1", None),
    ];
    for (text, origin, system) in table {
        assert_eq!(read(text), (origin.to_owned(), system.map(str::to_owned)), "{text}");
    }
}

#[test]
fn every_scheme_of_redfish_is_known_and_says_whether_tls_is_spoken() {
    for name in SCHEMES {
        for (suffix, origin) in [("", "https"), ("+https", "https"), ("+http", "http")] {
            for separator in ["://", ":"] {
                for name in [name.to_owned(), name.to_uppercase()] {
                    let text = format!("{name}{suffix}{separator}bmc-1.example.com");
                    assert_eq!(read(&text), (format!("{origin}://bmc-1.example.com"), None), "{text}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_matter_is_ignored() {
    let system = "/redfish/v1/Systems/1";
    for (rest, named) in [
        ("h", None),
        ("h/", None),
        ("h//", None),
        ("h/redfish/v1", None),
        ("h/redfish/v1/Systems/", None),
        ("h:443", None),
        ("h:/redfish/v1/", None),
        ("h?a=b", None),
        ("h/?a=/redfish/v1/Systems/2", None),
        ("h#fragment", None),
        ("root:calvin@h", None),
        ("root:c@lvin@h", None),
        ("h/redfish/v1/Systems/1", Some(system)),
        ("h/redfish/v1/Systems/1/", Some(system)),
        ("h/redfish/v1/Systems/1?privilegelevel=OPERATOR", Some(system)),
        ("root:calvin@h:443/redfish/v1/Systems/1#a/b", Some(system)),
    ] {
        for separator in [":", "://"] {
            let text = format!("idrac-virtualmedia{separator}{rest}");
            let expected = ("https://h".to_owned(), named.map(str::to_owned));
            assert_eq!(read(&text), expected, "{text}");
        }
    }
    assert_eq!(read("  redfish://h\n").0, "https://h");
}

#[test]
fn ipmi_is_told_about_with_what_to_write_instead() {
    for (text, host) in [
        ("libvirt://192.168.122.1:6233/?abc=def", "192.168.122.1"),
        ("libvirt://192.168.122.1", "192.168.122.1"),
        ("192.168.122.1", "192.168.122.1"),
        ("192.168.122.1:6233", "192.168.122.1"),
        ("192.168.122.1/path", "192.168.122.1"),
        ("my.favoritebmc.com", "my.favoritebmc.com"),
        ("[fe80::fc33:62ff:fe83:8a76]:6233", "[fe80::fc33:62ff:fe83:8a76]"),
        ("[fe80::fc33:62ff:fe83:8a76]", "[fe80::fc33:62ff:fe83:8a76]"),
        ("fe80::fc33:62ff:fe83:8a76", "[fe80::fc33:62ff:fe83:8a76]"),
        ("ipmi://192.168.122.1:6233", "192.168.122.1"),
        ("ipmi:192.168.122.1", "192.168.122.1"),
        ("IPMI:192.168.122.1:6233", "192.168.122.1"),
        ("ipmi://192.168.122.1?privilegelevel=OPERATOR", "192.168.122.1"),
        ("ipmi://root:calvin@[2001:db8::10]:623", "[2001:db8::10]"),
    ] {
        let (kind, said) = refused(text);
        assert_eq!(kind, Kind::ProtocolUnsupported, "{text}: {said}");
        assert!(said.contains("is not supported yet"), "{said}");
        assert!(said.contains(&format!("write redfish-virtualmedia://{host}/redfish/v1/Systems/<id>, or")), "{said}");
        assert!(!said.contains("calvin"), "{said}");
        read(&format!("redfish-virtualmedia://{host}"));
    }
    assert_eq!(
        refused("ipmi://192.0.2.10:623").1,
        "spec.bmc.address \"ipmi://192.0.2.10:623\": IPMI is not supported yet. If the BMC also speaks Redfish, write redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/<id>, or redfish-virtualmedia://192.0.2.10 if it has one system."
    );
}

#[test]
fn what_cannot_be_used_is_refused_with_the_remedy() {
    let host = "the host must be a DNS name or an IP address";
    for (text, sentence) in [
        ("", "it is empty; write redfish-virtualmedia://<host>/redfish/v1/Systems/<id>"),
        (" ", "it is empty"),
        ("foo://192.168.122.1", "the scheme \"foo\" is unknown; write redfish-virtualmedia://<host>"),
        ("irmc://192.0.2.10", "the scheme \"irmc\" is unknown"),
        ("redfish+ftp://192.0.2.10", "the scheme \"redfish+ftp\" is unknown"),
        ("redfish+://192.0.2.10", "the scheme \"redfish+\" is unknown"),
        ("ipmi+http://192.0.2.10", "the scheme \"ipmi+http\" is unknown"),
        (
            "bmc-1.example.com:6233",
            "is read as a scheme; if it is the host, write redfish-virtualmedia://bmc-1.example.com:6233",
        ),
        ("https://192.0.2.10/redfish/v1", "write redfish-virtualmedia://192.0.2.10/redfish/v1"),
        ("http://192.0.2.10", "write redfish-virtualmedia+http://192.0.2.10"),
        ("redfish://", host),
        ("redfish:", host),
        ("redfish:///redfish/v1/Systems/1", host),
        ("redfish://my-.example.com:x", host),
        ("redfish://[fe80::8xff]:6223", host),
        ("redfish://192.0.2.10:0", host),
        ("redfish://192.0.2.10:70000", host),
        ("redfish://192.0.2.300", host),
        ("redfish://two words", host),
    ] {
        let (kind, said) = refused(text);
        assert_eq!(kind, Kind::AddressInvalid, "{text}: {said}");
        assert!(said.starts_with("spec.bmc.address ") && said.ends_with('.'), "{said}");
        assert!(said.contains(sentence), "{text}: {said}");
    }
    let (_, said) = refused("redfish://root:cal/vin@two words");
    assert!(!said.contains("vin") && said.contains("\"redfish://two words\""), "{said}");
    let (_, said) = refused("foo:root:calvin@h");
    assert!(!said.contains("calvin"), "{said}");
}
