use engine::failure::Kind;
use proptest::prelude::*;

use super::*;

#[test]
fn what_users_write_is_understood() {
    for (text, shown, key) in [
        ("https://10.0.0.1", "https://10.0.0.1", "10.0.0.1:443"),
        ("HTTPS://BMC.Example.COM/", "https://bmc.example.com", "bmc.example.com:443"),
        ("https://bmc:8443//", "https://bmc:8443", "bmc:8443"),
        ("http://bmc", "http://bmc", "bmc:80"),
        ("bmc-7", "https://bmc-7", "bmc-7:443"),
        ("  bmc:8000 ", "https://bmc:8000", "bmc:8000"),
        ("192.168.0.7:443", "https://192.168.0.7", "192.168.0.7:443"),
        ("fd00::1", "https://[fd00::1]", "[fd00::1]:443"),
        ("[FD00::1]:8443", "https://[fd00::1]:8443", "[fd00::1]:8443"),
        ("https://[fd00::1]/redfish/v1", "https://[fd00::1]", "[fd00::1]:443"),
        ("https://bmc/redfish/v1/", "https://bmc", "bmc:443"),
        ("https://bmc/redfish/v1/Systems", "https://bmc", "bmc:443"),
        ("https://bmc/redfish/v1/systems/1/", "https://bmc/redfish/v1/Systems/1", "bmc:443"),
        ("redfish://bmc/redfish/v1/Systems/a-b", "https://bmc/redfish/v1/Systems/a-b", "bmc:443"),
        ("redfish+http://bmc:8000/redfish/v1/Systems/x", "http://bmc:8000/redfish/v1/Systems/x", "bmc:8000"),
        ("redfish-virtualmedia+https://bmc", "https://bmc", "bmc:443"),
        ("idrac-virtualmedia://bmc", "https://bmc", "bmc:443"),
        ("ilo5-redfish+http://bmc", "http://bmc", "bmc:80"),
    ] {
        let address = Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(address.to_string(), shown, "{text}");
        assert_eq!(address.key(), key, "{text}");
    }
}

#[test]
fn ipmi_is_recognised_but_not_spoken_yet() {
    for text in ["ipmi://10.0.0.1", "ipmi://10.0.0.1:623?privilegelevel=OPERATOR", "libvirt://10.0.0.1:6230"] {
        let error = Address::parse(text).unwrap_err();
        assert_eq!(error.kind(), Kind::ProtocolUnsupported);
        assert!(error.to_string().contains("not supported yet"), "{error}");
    }
}

#[test]
fn bad_addresses_get_a_sentence() {
    for (text, word) in [
        ("", "empty"),
        ("   ", "empty"),
        ("https://", "malformed"),
        ("https://bmc:", "port"),
        ("https://bmc:0", "port"),
        ("https://bmc:99999", "port"),
        ("https://bmc:x", "port"),
        ("ftp://bmc", "scheme"),
        ("redfish+ftp://bmc", "scheme"),
        ("https://10.0.0", "neither"),
        ("https://bm c", "malformed"),
        ("https://b!c", "neither"),
        ("https://[10.0.0.1]", "neither"),
        ("https://bmc?x=1", "?"),
        ("https://bmc/redfish/v1/Managers/1", "manager"),
        ("https://bmc/redfish/v1/Systems/1/Bios", "deeper"),
        ("https://bmc/redfish/v1/Chassis/1", "system"),
        ("https://bmc/index.html", "path"),
    ] {
        let error = Address::parse(text).unwrap_err();
        assert_eq!(error.kind(), Kind::AddressInvalid, "{text}");
        assert!(error.to_string().contains(word), "{text}: {error}");
    }
}

#[test]
fn a_password_in_the_address_is_refused_and_not_repeated() {
    for text in ["https://root:cal/vin@bmc/redfish", "root:calvin@bmc", "ipmi://root:calvin@bmc"] {
        let error = Address::parse(text).unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(!told.contains("calvin") && !told.contains("cal/vin") && !told.contains("root"), "{told}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in ".{0,80}") {
        let _ = Address::parse(&text);
    }

    #[test]
    fn url_like_text_never_panics_and_what_parses_parses_again(
        text in "(https?|redfish|ipmi)?(\\+http)?(://)?[a-zA-Z0-9:@\\[\\]./?#%-]{0,40}"
    ) {
        if let Ok(address) = Address::parse(&text) {
            prop_assert_eq!(Address::parse(&address.to_string()).unwrap(), address);
        }
    }
}
