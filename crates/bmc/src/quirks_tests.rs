use super::*;

fn facts(vendor: &str, product: &str, oem: &[&str], manufacturer: &str, manager: &str) -> Facts {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Facts {
        vendor: some(vendor),
        product: some(product),
        oem: oem.iter().map(|key| (*key).to_owned()).collect(),
        system_manufacturer: some(manufacturer),
        manager_model: some(manager),
        ..Facts::default()
    }
}

#[test]
fn families_are_told_apart_by_what_captures_say() {
    for (facts, family) in [
        (
            facts("Dell", "Integrated Dell Remote Access Controller", &["Dell"], "Dell Inc.", "15G Monolithic"),
            Family::DellIdrac9,
        ),
        (facts("Dell", "", &[], "Dell Inc.", "17G Monolithic"), Family::DellIdrac10),
        (facts("Dell", "", &[], "Dell Inc.", "13G Monolithic"), Family::DellIdrac8),
        (facts("HPE", "ProLiant DL385 Gen10 Plus v2", &["Hpe"], "HPE", "iLO 5"), Family::HpeIlo5),
        (facts("", "", &["Hp"], "HP", "iLO 4"), Family::HpeIlo4),
        (facts("HPE", "", &[], "HPE", "iLO 4"), Family::HpeIlo4),
        (facts("Lenovo", "", &["Lenovo"], "Lenovo", "Lenovo XClarity Controller"), Family::LenovoXcc),
        (facts("AMI", "AMI Redfish Server", &["Ami"], "Lenovo", ""), Family::AmiMegarac),
        (facts("", "", &["Supermicro"], "Supermicro", "ASPEED"), Family::Supermicro),
        (facts("NVIDIA", "GB200 NVL", &[], "", "GB200"), Family::NvidiaOpenBmc),
        (facts("Nvidia", "BlueField-3 DPU", &[], "https://www.mellanox.com", ""), Family::NvidiaBluefield),
        (facts("", "", &["ts_fujitsu"], "FUJITSU", "iRMC S6"), Family::FujitsuIrmc),
        (facts("", "", &[], "Cisco Systems Inc", ""), Family::CiscoCimc),
        (facts("xFusion", "", &[], "", ""), Family::HuaweiIbmc),
        (facts("", "", &[], "", "OpenBmc"), Family::OpenBmc),
        (facts("", "Sushy Emulator", &[], "Sushy Emulator", "Sushy Emulator"), Family::Sushy),
        (facts("Acme", "", &["A", "B"], "Contoso", "x"), Family::Generic),
        (Facts::default(), Family::Generic),
    ] {
        assert_eq!(of(&facts).family, family, "{facts:?}");
    }
}

#[test]
fn dgx_is_ami_firmware_with_nvidia_habits() {
    let facts = Facts { vendor: Some("AMI".into()), system_model: Some("DGXH100".into()), ..Facts::default() };
    assert_eq!(of(&facts).family, Family::NvidiaDgx);
}

#[test]
fn cd_is_the_physical_drive_on_old_idrac9_and_on_idrac10() {
    let is_special = |family: Family, firmware: &str, processor: &str| {
        let facts = Facts {
            manager_firmware: (!firmware.is_empty()).then(|| firmware.to_owned()),
            processor: Some(processor.to_owned()),
            ..Facts::default()
        };
        of_family(family).boot_attributes(&facts).is_some()
    };
    let (intel, amd) = ("Intel(R) Xeon(R) Gold 6354", "AMD EPYC 7763 64-Core Processor");
    for (firmware, on_intel, on_amd) in [
        ("3.36.36.36", true, true),
        ("4.40.9.00", true, true),
        ("4.40.10.00", false, true),
        ("5.10.50.00", false, true),
        ("6.00.00.00", false, false),
        ("7.10.30.00", false, false),
        ("", false, false),
    ] {
        assert_eq!(is_special(Family::DellIdrac9, firmware, intel), on_intel, "{firmware}");
        assert_eq!(is_special(Family::DellIdrac9, firmware, amd), on_amd, "{firmware}");
    }
    assert!(is_special(Family::DellIdrac10, "1.20.25.00", intel));
    assert!(!is_special(Family::DellIdrac8, "2.80.80.80", intel));
    assert!(!is_special(Family::HpeIlo5, "1.0", intel));
}

#[test]
fn every_family_has_one_row_and_a_name_that_can_be_written() {
    for row in TABLE {
        assert_eq!(row.name.parse::<Family>().unwrap(), row.family);
        assert_eq!(
            TABLE.iter().filter(|other| other.family == row.family || other.name == row.name).count(),
            1,
            "{}",
            row.name
        );
    }
    // What the field's description suggests to users.
    for (maker, family) in [
        ("dell", Family::DellIdrac9),
        ("HPE", Family::HpeIlo5),
        ("lenovo", Family::LenovoXcc),
        ("supermicro", Family::Supermicro),
        ("generic", Family::Generic),
    ] {
        assert_eq!(maker.parse::<Family>().unwrap(), family);
    }
    assert!("commodore".parse::<Family>().unwrap_err().to_string().contains("dell-idrac9"));
}
