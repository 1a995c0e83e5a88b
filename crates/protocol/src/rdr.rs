//! Realtime Data Retrieval: finding the latest version of an object.
//!
//! Owns the names and the content of metadata packets. A consumer asks for
//! `<object>/32=metadata` with CanBePrefix and MustBeFresh; the producer answers
//! with `<object>/32=metadata/<version>/<segment 0>`, whose content names the
//! latest version. Source: "Realtime Data Retrieval (RDR)" protocol page.

use tachonym_packet::{Component, DecodeError, Name, NameView, tlv, types};

/// How long metadata are fresh, in milliseconds.
pub const METADATA_FRESHNESS_MS: u64 = 1000;

/// The keyword component of metadata.
#[must_use]
pub fn metadata_keyword() -> Component {
    Component::keyword("metadata")
}

/// What to ask for to learn the latest version of `object`.
#[must_use]
pub fn metadata_prefix(object: NameView<'_>) -> Name {
    object.to_name().with(&metadata_keyword())
}

/// Name of the metadata packet of `object` that is made at `unix_us`,
/// microseconds since the Unix epoch.
#[must_use]
pub fn metadata_name(object: NameView<'_>, unix_us: u64) -> Name {
    metadata_prefix(object)
        .with(&Component::version(unix_us))
        .with(&Component::segment(0))
}

/// Whether `name` asks for metadata, and then of which object.
#[must_use]
pub fn object_of_metadata(name: NameView<'_>) -> Option<NameView<'_>> {
    let last = name.last()?;
    (metadata_keyword() == last).then(|| name.prefix(name.len() - 1))
}

/// Content of a metadata packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the latest version of the object, version included.
    pub name: Name,
}

impl Metadata {
    /// Appends the content.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        self.name.encode_into(out);
    }

    /// The content.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.name.encode()
    }

    /// Reads the content of a metadata packet. What follows the name, such as
    /// the properties of a file, is skipped whatever its type: deployed producers
    /// use critical types there.
    ///
    /// # Errors
    /// If it does not begin with a name, or is malformed behind it.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = tlv::Reader::new(content);
        let name = NameView::parse_value(reader.read_expected(types::NAME)?)?.to_name();
        while !reader.is_empty() {
            reader.read_element()?;
        }
        Ok(Self { name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_round_trip_and_skip_what_follows_the_name() {
        let metadata = Metadata {
            name: "/file/v=7".parse().unwrap(),
        };
        let mut content = metadata.encode();
        assert_eq!(Metadata::decode(&content), Ok(metadata.clone()));
        // A FinalBlockId, as NDNts adds it.
        tlv::write_tlv(&mut content, types::FINAL_BLOCK_ID, &[50, 1, 9]);
        assert_eq!(Metadata::decode(&content), Ok(metadata));
        content.push(7);
        assert!(Metadata::decode(&content).is_err());
        assert_eq!(
            Metadata::decode(&[]),
            Err(DecodeError::Missing { typ: types::NAME })
        );
    }

    #[test]
    fn metadata_names_lead_back_to_their_object() {
        let object: Name = "/a/b".parse().unwrap();
        let prefix = metadata_prefix(object.view());
        assert_eq!(prefix.to_string(), "/a/b/32=metadata");
        assert_eq!(object_of_metadata(prefix.view()).unwrap(), object);
        assert!(object_of_metadata(object.view()).is_none());
        let name = metadata_name(object.view(), 300);
        assert_eq!(
            name,
            "/a/b/32=metadata/v=300/seg=0".parse::<Name>().unwrap()
        );
    }
}
