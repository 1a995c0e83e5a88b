//! Packets that a router dropped lately: the dataset `status/recent-drops`, this router's own.
//!
//! The dataset's name goes on with one component that holds the Name element of a prefix;
//! its content are the drops of names under that prefix, newest first. The TLV-TYPEs are in
//! the table of `dataset`.

use tachonym_packet::{Component, ComponentView, DecodeError, Name, NameView};

use crate::codec::{self, management_value};

management_value! {
    /// A packet that was dropped, or several alike: same kind, face, name and reason.
    RecentDrop = 37120 {
        /// The packet's name; of a Nack, that of the Interest in it.
        name: Required<Name> = 7,
        /// Whether the name is longer, and only its first components are here.
        is_name_cut: Required<bool> = 37121,
        /// `Interest`, `Data` or `Nack`.
        kind: Required<String> = 37123,
        /// The face it came from.
        face_id: Required<u64> = 105,
        /// Why it was dropped, as in `status/drops`.
        reason: Required<String> = 36865,
        /// How many there were.
        n_drops: Required<u64> = 36867,
        /// How long ago the last of them was dropped, in milliseconds.
        age_ms: Required<u64> = 37125,
    }
}

impl RecentDrop {
    /// Most that the dataset holds.
    pub const MAX: usize = 256;

    /// The component of the dataset's name that holds `prefix`.
    #[must_use]
    pub fn query(prefix: &Name) -> Component {
        Component::generic(prefix.encode())
    }

    /// The prefix in that component.
    ///
    /// # Errors
    /// If it holds no Name element.
    pub fn prefix_of_query(component: ComponentView<'_>) -> Result<Name, DecodeError> {
        NameView::parse_element(component.value()).map(|name| name.to_name())
    }

    /// The content of the dataset.
    #[must_use]
    pub fn encode_list(drops: &[Self]) -> Vec<u8> {
        let mut content = Vec::new();
        for drop in drops {
            drop.encode_into(&mut content);
        }
        content
    }

    /// Reads the content of the dataset.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode_list(content: &[u8]) -> Result<Vec<Self>, DecodeError> {
        codec::decode_list(content, Self::TLV_TYPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_and_query_come_back_as_they_were() {
        let name: Name = "/a/b".parse().expect("a name");
        let query = RecentDrop::query(&name);
        assert_eq!(RecentDrop::prefix_of_query(query.view()), Ok(name.clone()));
        let broken = Component::generic("x");
        assert!(RecentDrop::prefix_of_query(broken.view()).is_err());
        let drop = |n_drops| RecentDrop {
            name: name.clone(),
            is_name_cut: n_drops == 2,
            kind: "Interest".into(),
            face_id: 262,
            reason: "no-route".into(),
            n_drops,
            age_ms: 7,
        };
        let drops = [drop(1), drop(2)];
        let content = RecentDrop::encode_list(&drops);
        assert_eq!(RecentDrop::decode_list(&content).as_deref(), Ok(&drops[..]));
    }
}
