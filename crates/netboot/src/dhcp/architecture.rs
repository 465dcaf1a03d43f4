//! What kind of machine boots (option 93).

use std::fmt;

/// The type of a client's processor and firmware, from IANA's list for RFC 4578 and 5970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// 0: a PC with BIOS.
    Bios,
    /// 6: UEFI on 32-bit x86, over PXE.
    UefiX86,
    /// 7: UEFI on x86-64, over PXE.
    UefiX64,
    /// 9: EFI byte code by the list, x86-64 by RFC 4578 and what is on sale: the two had swapped their numbers.
    UefiX64As9,
    /// 10: UEFI on 32-bit ARM, over PXE.
    UefiArm32,
    /// 11: UEFI on 64-bit ARM, over PXE.
    UefiArm64,
    /// 15: UEFI on 32-bit x86, over HTTP.
    HttpX86,
    /// 16: UEFI on x86-64, over HTTP.
    HttpX64,
    /// 18: UEFI on 32-bit ARM, over HTTP.
    HttpArm32,
    /// 19: UEFI on 64-bit ARM, over HTTP.
    HttpArm64,
    /// 20: a PC with BIOS, over HTTP.
    HttpBios,
    /// 27: UEFI on 64-bit RISC-V, over PXE.
    UefiRiscv64,
    /// 28: UEFI on 64-bit RISC-V, over HTTP.
    HttpRiscv64,
    /// Anything else.
    Unknown(u16),
}

impl Architecture {
    /// Whether there is something for it to boot.
    pub fn is_served(self) -> bool {
        matches!(self, Self::Bios | Self::UefiX64 | Self::UefiX64As9 | Self::HttpX64)
    }

    /// Its number in option 93.
    pub fn code(self) -> u16 {
        match self {
            Self::Bios => 0,
            Self::UefiX86 => 6,
            Self::UefiX64 => 7,
            Self::UefiX64As9 => 9,
            Self::UefiArm32 => 10,
            Self::UefiArm64 => 11,
            Self::HttpX86 => 15,
            Self::HttpX64 => 16,
            Self::HttpArm32 => 18,
            Self::HttpArm64 => 19,
            Self::HttpBios => 20,
            Self::UefiRiscv64 => 27,
            Self::HttpRiscv64 => 28,
            Self::Unknown(code) => code,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bios => "BIOS x86",
            Self::UefiX86 => "UEFI x86 (32 bit)",
            Self::UefiX64 | Self::UefiX64As9 => "UEFI x86-64",
            Self::UefiArm32 => "UEFI ARM (32 bit)",
            Self::UefiArm64 => "UEFI arm64",
            Self::HttpX86 => "UEFI HTTP x86 (32 bit)",
            Self::HttpX64 => "UEFI HTTP x86-64",
            Self::HttpArm32 => "UEFI HTTP ARM (32 bit)",
            Self::HttpArm64 => "UEFI HTTP arm64",
            Self::HttpBios => "BIOS x86 over HTTP",
            Self::UefiRiscv64 => "UEFI riscv64",
            Self::HttpRiscv64 => "UEFI HTTP riscv64",
            Self::Unknown(_) => "unknown architecture",
        }
    }
}

impl From<u16> for Architecture {
    fn from(code: u16) -> Self {
        match code {
            0 => Self::Bios,
            6 => Self::UefiX86,
            7 => Self::UefiX64,
            9 => Self::UefiX64As9,
            10 => Self::UefiArm32,
            11 => Self::UefiArm64,
            15 => Self::HttpX86,
            16 => Self::HttpX64,
            18 => Self::HttpArm32,
            19 => Self::HttpArm64,
            20 => Self::HttpBios,
            27 => Self::UefiRiscv64,
            28 => Self::HttpRiscv64,
            code => Self::Unknown(code),
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}
