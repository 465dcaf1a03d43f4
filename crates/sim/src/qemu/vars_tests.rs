//! A store of a few hundred bytes, laid out as OVMF's.

use super::*;

const HEADER_LENGTH: usize = 0x48;
const STORE_SIZE: usize = 700;
const BEHIND: &[u8] = b"working block";

fn flash(variables: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut flash = vec![0; HEADER_LENGTH];
    flash[0x28..0x2c].copy_from_slice(b"_FVH");
    flash[0x30..0x32].copy_from_slice(&u16::try_from(HEADER_LENGTH).unwrap().to_le_bytes());
    flash.extend(STORE);
    flash.extend(u32::try_from(STORE_SIZE).unwrap().to_le_bytes());
    flash.extend([0x5a, 0xfe, 0, 0, 0, 0, 0, 0]);
    for (title, state, data) in variables {
        let mut bytes = Variable::global(name(title), data.to_vec()).bytes();
        bytes[2] = *state;
        bytes.resize(bytes.len().next_multiple_of(4), 0xff);
        flash.extend(bytes);
    }
    flash.resize(HEADER_LENGTH + STORE_SIZE, 0xff);
    flash.extend(BEHIND);
    flash
}

fn names(vars: &Vars) -> Vec<String> {
    let text = |name: &[u8]| {
        let units: Vec<u16> = name.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        String::from_utf16(&units).unwrap().trim_end_matches('\0').to_owned()
    };
    vars.variables.iter().map(|variable| text(&variable.name)).collect()
}

fn read_again(vars: Vars) -> Vars {
    Vars::read(vars.write().unwrap()).unwrap()
}

#[test]
fn deleted_variables_are_gone_and_one_that_was_being_replaced_stays() {
    let before = flash(&[
        ("Lang", ADDED, b"eng"),
        ("Gone", 0x3d, b"x"),
        ("Timeout", LEAVING, b"old"),
        ("BootOrder", LEAVING, b"old"),
        ("BootOrder", ADDED, b"new"),
    ]);
    let vars = read_again(Vars::read(before).unwrap());
    assert_eq!(names(&vars), ["Lang", "BootOrder", "Timeout"]);
    assert_eq!(vars.variables[1].data, b"new");
    assert!(vars.flash.ends_with(BEHIND));
}

#[test]
fn an_order_for_the_next_boot_is_written_replaced_and_taken_back() {
    let mut vars = Vars::read(flash(&[("BootNext", ADDED, &[3, 0])])).unwrap();
    vars.boot_next(None);
    assert_eq!(names(&vars), ["BootNext"], "somebody else's order is left alone");

    vars.boot_next(Some("http://192.0.2.1/first.efi"));
    let mut vars = read_again(vars);
    vars.boot_next(Some("http://192.0.2.1/second.efi"));
    let mut vars = read_again(vars);
    assert_eq!(names(&vars), ["BootB007", "BootNext"]);
    assert_eq!(vars.variables[1].data, [0x07, 0xb0]);

    vars.boot_next(None);
    assert_eq!(names(&read_again(vars)), Vec::<String>::new());
}

#[test]
fn the_options_of_devices_are_forgotten_and_those_of_systems_stay() {
    let made = [&b"something"[..], &MADE_BY_FIRMWARE].concat();
    let options = [("Boot0000", ADDED, &made[..]), ("Boot000A", ADDED, b"Debian")];
    let mut vars = Vars::read(flash(&[options[0], options[1], ("BootOrder", ADDED, &[0, 0, 10, 0])])).unwrap();
    vars.forget_devices();
    let mut vars = read_again(vars);
    assert_eq!(names(&vars), ["Boot000A", "BootOrder"]);
    assert_eq!(vars.variables[1].data, [10, 0]);

    vars.variables.remove(0);
    vars.variables.push(Variable::global(name("Boot000A"), made));
    vars.forget_devices();
    assert_eq!(names(&vars), Vec::<String>::new());
}

#[test]
fn a_boot_option_is_a_title_and_a_uri_for_any_card() {
    let expected = [
        &b"\x01\0\0\0\x16\0"[..],
        b"H\0t\0t\0p\0B\0o\0o\0t\0U\0r\0i\0\0\0",
        b"\x03\x18\x12\0http://a/b.efi",
        b"\x7f\xff\x04\0",
    ];
    assert_eq!(boot_option("http://a/b.efi"), expected.concat());
}

#[test]
fn what_is_no_store_is_refused() {
    let good = flash(&[("Lang", ADDED, b"eng")]);
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        Vars::read(bad).unwrap_err()
    };
    assert_eq!(Vars::read(Vec::new()).unwrap_err(), VarsError::NoVolume);
    assert_eq!(with(0x28, b'-'), VarsError::NoVolume);
    assert_eq!(with(HEADER_LENGTH, 0), VarsError::NoStore);
    // The size of the store, then that of the variable's data.
    assert_eq!(with(HEADER_LENGTH + 18, 9), VarsError::NoStore);
    let first = HEADER_LENGTH + STORE_HEADER;
    assert_eq!(with(first + 42, 9), VarsError::CutOff(first));
    assert_eq!(Vars::read(good[..200].to_vec()).unwrap_err(), VarsError::NoStore);
}

#[test]
fn a_store_that_is_full_is_not_written() {
    let mut vars = Vars::read(flash(&[])).unwrap();
    vars.boot_next(Some(&"x".repeat(STORE_SIZE)));
    assert_eq!(vars.write().unwrap_err(), VarsError::Full);
}
