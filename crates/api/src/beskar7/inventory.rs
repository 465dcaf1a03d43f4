//! The inventory of a host, as it is held in memory.

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::HardwareDetails;

/// An inventory, packed. An operator holds thousands of hosts and looks at what one of them is made of now and then;
/// unpacked, these lists of short texts are nine tenths of its memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Inventory(Arc<[u8]>);

impl Inventory {
    /// Packs an inventory. The same details are packed alike.
    pub fn pack(details: &HardwareDetails) -> Self {
        // Strings and numbers have no way to fail, and neither has memory.
        let text = serde_json::to_vec(details).unwrap_or_default();
        let mut packed = Vec::new();
        let _ = DeflateEncoder::new(text.as_slice(), Compression::fast()).read_to_end(&mut packed);
        Self(packed.into())
    }

    /// The details.
    pub fn unpack(&self) -> HardwareDetails {
        let mut text = Vec::new();
        let _ = DeflateDecoder::new(&*self.0).read_to_end(&mut text);
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

impl std::fmt::Debug for Inventory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.unpack().fmt(f)
    }
}

impl Serialize for Inventory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.unpack().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Inventory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        HardwareDetails::deserialize(deserializer).map(|details| Self::pack(&details))
    }
}

impl JsonSchema for Inventory {
    fn schema_name() -> Cow<'static, str> {
        HardwareDetails::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HardwareDetails::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_the_same_unpacked_and_much_smaller() {
        let module = |number: u32| super::super::MemoryModule {
            id: Some(format!("DIMM{number}")),
            part_number: Some("36ASF8G72PZ-3G2E1".to_owned()),
            capacity_mib: Some(32768),
            ..Default::default()
        };
        let details = HardwareDetails {
            manufacturer: Some("Contoso".to_owned()),
            memory_modules: (0..32).map(module).collect(),
            ..HardwareDetails::default()
        };
        let packed = Inventory::pack(&details);
        assert_eq!(packed.unpack(), details);
        assert_eq!(packed, Inventory::pack(&packed.unpack()));
        let text = serde_json::to_string(&packed).unwrap();
        assert_eq!(text, serde_json::to_string(&details).unwrap());
        assert_eq!(serde_json::from_str::<Inventory>(&text).unwrap(), packed);
        assert!(packed.0.len() * 5 < text.len(), "{} of {}", packed.0.len(), text.len());
    }
}
