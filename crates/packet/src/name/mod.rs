//! Names.
//!
//! Owns [`NameView`], checked bytes of a Name's TLV-VALUE, and [`Name`], which
//! owns such bytes. Both guarantee that the bytes are a sequence of whole,
//! valid components, which makes prefix tests and the canonical order plain
//! byte comparisons. How many ParametersSha256DigestComponents a packet's name
//! may have is checked by the packet views. Text form: `uri`; keyed hashes:
//! [`hash`](crate::hash).

mod component;
mod uri;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

pub(crate) use self::component::check_component;
pub use self::component::{Component, ComponentView};
pub use self::uri::NameUriError;
use crate::DecodeError;
use crate::tlv::{self, Element, Reader};
use crate::types::{self, component as kind};

/// A name borrowed from checked bytes.
///
/// Invariant: `value` is a sequence of `n_components` whole, valid components;
/// only [`NameView::parse_value`] and what builds on it make one.
#[derive(Clone, Copy, Default)]
pub struct NameView<'a> {
    value: &'a [u8],
    n_components: u32,
}

/// What one pass over a name's components finds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameScan {
    pub(crate) n_components: u32,
    pub(crate) n_parameters_digests: u32,
}

impl NameScan {
    /// Checks `value`, a Name's TLV-VALUE, component by component.
    #[inline]
    pub(crate) fn of(value: &[u8]) -> Result<Self, DecodeError> {
        let mut scan = Self::default();
        let mut rest = value;
        loop {
            // Nearly all components have a one-byte type, which is not that of a
            // digest, and a one-byte length.
            rest = match rest {
                [3..=252, len @ 0..=252, tail @ ..] if tail.len() >= usize::from(*len) => {
                    &tail[usize::from(*len)..]
                }
                [] => return Ok(scan),
                _ => scan.rare_component(rest)?,
            };
            scan.n_components += 1;
        }
    }

    /// Checks the first component of `value`, whatever it is, and splits it off.
    fn rare_component<'a>(&mut self, value: &'a [u8]) -> Result<&'a [u8], DecodeError> {
        let mut reader = Reader::new(value);
        let Element { typ, value } = reader.read_element()?;
        if check_component(typ, value.len())? == kind::PARAMETERS_SHA256_DIGEST {
            self.n_parameters_digests += 1;
        }
        Ok(reader.remaining())
    }
}

/// Splits the first component off checked bytes.
#[inline]
fn split_component(value: &[u8]) -> Option<(ComponentView<'_>, &[u8])> {
    if let [typ @ 1..=252, len @ 0..=252, rest @ ..] = value {
        let (component, rest) = rest.split_at_checked(usize::from(*len))?;
        return Some((
            ComponentView::from_checked(u16::from(*typ), component),
            rest,
        ));
    }
    let mut reader = Reader::new(value);
    let element = reader.read_element().ok()?;
    let typ = u16::try_from(element.typ).ok()?;
    Some((
        ComponentView::from_checked(typ, element.value),
        reader.remaining(),
    ))
}

/// Bytes of the first component of checked bytes, type and length included.
#[inline(always)]
pub(crate) fn first_component_len(value: &[u8]) -> Option<usize> {
    if let [1..=252, len @ 0..=252, ..] = value {
        return Some(2 + usize::from(*len));
    }
    long_component_len(value)
}

/// The same of a component whose type or length takes more than a byte. Kept
/// apart: it would cost the loops around the other one their registers.
#[cold]
#[inline(never)]
fn long_component_len(value: &[u8]) -> Option<usize> {
    let (_, rest) = split_component(value)?;
    Some(value.len() - rest.len())
}

impl<'a> NameView<'a> {
    /// The name without components.
    pub const EMPTY: NameView<'static> = NameView {
        value: &[],
        n_components: 0,
    };

    /// Checks a Name's TLV-VALUE.
    ///
    /// # Errors
    /// If the bytes are not a sequence of whole, valid components.
    #[inline]
    pub fn parse_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        if value.len() > u32::MAX as usize {
            return Err(DecodeError::PacketTooLarge);
        }
        let scan = NameScan::of(value)?;
        Ok(Self::from_checked(value, scan.n_components))
    }

    /// Checks the TLV-VALUE of a packet's own name, which has at most one
    /// ParametersSha256DigestComponent (packet format, section "Name").
    #[inline]
    pub(crate) fn parse_packet_name(value: &'a [u8]) -> Result<Self, DecodeError> {
        if value.len() > u32::MAX as usize {
            return Err(DecodeError::PacketTooLarge);
        }
        let scan = NameScan::of(value)?;
        if scan.n_parameters_digests > 1 {
            return Err(DecodeError::RepeatedParametersDigest);
        }
        Ok(Self::from_checked(value, scan.n_components))
    }

    /// Checks a whole Name element, which has to be all of `wire`.
    ///
    /// # Errors
    /// If `wire` is not exactly one valid Name.
    pub fn parse_element(wire: &'a [u8]) -> Result<Self, DecodeError> {
        Self::parse_value(tlv::read_single(wire, types::NAME)?)
    }

    /// A view of bytes that [`NameScan::of`] has passed.
    #[inline]
    pub(crate) const fn from_checked(value: &'a [u8], n_components: u32) -> Self {
        Self {
            value,
            n_components,
        }
    }

    /// Number of components.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.n_components as usize
    }

    /// Whether the name has no components.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.n_components == 0
    }

    /// The TLV-VALUE: the components, one after the other.
    #[must_use]
    #[inline]
    pub const fn value_bytes(&self) -> &'a [u8] {
        self.value
    }

    /// Component `idx`, counted from 0. Takes time linear in `idx`.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<ComponentView<'a>> {
        self.components().nth(idx)
    }

    /// The last component.
    #[must_use]
    pub fn last(&self) -> Option<ComponentView<'a>> {
        self.components().last()
    }

    /// The components in their order.
    #[must_use]
    pub const fn components(&self) -> Components<'a> {
        Components {
            rest: self.value,
            n_left: self.n_components as usize,
        }
    }

    /// The name of the first `n_components` components; all of it if it has
    /// fewer.
    #[must_use]
    pub fn prefix(&self, n_components: usize) -> Self {
        if n_components >= self.len() {
            return *self;
        }
        let mut rest = self.components();
        rest.by_ref().take(n_components).for_each(drop);
        let prefix_bytes = self.value.len() - rest.rest.len();
        Self {
            value: &self.value[..prefix_bytes],
            n_components: n_components as u32,
        }
    }

    /// The name without its first `n_components` components; empty if it has
    /// no more.
    #[must_use]
    pub fn suffix(&self, n_components: usize) -> Self {
        let mut rest = self.components();
        rest.by_ref().take(n_components).for_each(drop);
        Self {
            value: rest.rest,
            n_components: rest.n_left as u32,
        }
    }

    /// Whether `prefix` is a prefix of this name, or all of it.
    #[must_use]
    #[inline]
    pub fn starts_with(&self, prefix: NameView<'_>) -> bool {
        // Both are whole components from the start, and an encoding of a
        // component is no prefix of another one's.
        self.value.starts_with(prefix.value)
    }

    /// Bytes of the whole Name element.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        tlv::tlv_len(types::NAME, self.value.len())
    }

    /// Appends the whole Name element.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        tlv::write_tlv(out, types::NAME, self.value);
    }

    /// The whole Name element.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.wire_len());
        self.encode_into(&mut out);
        out
    }

    /// An owned copy.
    #[must_use]
    pub fn to_name(&self) -> Name {
        Name {
            value: self.value.to_vec(),
            n_components: self.n_components,
        }
    }
}

/// Iterator over the components of a name.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    rest: &'a [u8],
    n_left: usize,
}

impl<'a> Iterator for Components<'a> {
    type Item = ComponentView<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (component, rest) = split_component(self.rest)?;
        self.rest = rest;
        self.n_left -= 1;
        Some(component)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.n_left, Some(self.n_left))
    }
}

impl ExactSizeIterator for Components<'_> {}

impl<'a> IntoIterator for NameView<'a> {
    type Item = ComponentView<'a>;
    type IntoIter = Components<'a>;

    fn into_iter(self) -> Components<'a> {
        self.components()
    }
}

impl PartialEq for NameView<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for NameView<'_> {}

/// Canonical order. Comparing the encodings gives it, because types and lengths
/// are in their shortest form (packet format, section "Canonical Order").
impl Ord for NameView<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(other.value)
    }
}

impl PartialOrd for NameView<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for NameView<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl<'a> From<&'a Name> for NameView<'a> {
    fn from(name: &'a Name) -> Self {
        name.view()
    }
}

/// A name that owns its bytes. Ordered canonically; hashes and compares as its
/// [`value_bytes`](Name::value_bytes), so that a map keyed by names can be asked
/// with a `&[u8]`.
#[derive(Clone, Default)]
pub struct Name {
    value: Vec<u8>,
    n_components: u32,
}

impl Name {
    /// The name without components.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            value: Vec::new(),
            n_components: 0,
        }
    }

    /// The name as a view.
    #[must_use]
    #[inline]
    pub fn view(&self) -> NameView<'_> {
        NameView {
            value: &self.value,
            n_components: self.n_components,
        }
    }

    /// Number of components.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.n_components as usize
    }

    /// Whether the name has no components.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n_components == 0
    }

    /// The TLV-VALUE: the components, one after the other.
    #[must_use]
    pub fn value_bytes(&self) -> &[u8] {
        &self.value
    }

    /// Component `idx`, counted from 0.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<ComponentView<'_>> {
        self.view().get(idx)
    }

    /// The last component.
    #[must_use]
    pub fn last(&self) -> Option<ComponentView<'_>> {
        self.view().last()
    }

    /// The components in their order.
    #[must_use]
    pub fn components(&self) -> Components<'_> {
        self.view().components()
    }

    /// The name of the first `n_components` components; all of it if it has
    /// fewer.
    #[must_use]
    pub fn prefix(&self, n_components: usize) -> NameView<'_> {
        self.view().prefix(n_components)
    }

    /// Whether `prefix` is a prefix of this name, or all of it.
    #[must_use]
    pub fn starts_with<'n>(&self, prefix: impl Into<NameView<'n>>) -> bool {
        self.view().starts_with(prefix.into())
    }

    /// Adds a component at the end. A `&str` or `&[u8]` is a generic one,
    /// unescaped.
    pub fn push<'c>(&mut self, component: impl Into<ComponentView<'c>>) {
        component.into().encode_into(&mut self.value);
        self.n_components += 1;
    }

    /// Adds all components of `suffix` at the end.
    pub fn append<'n>(&mut self, suffix: impl Into<NameView<'n>>) {
        let suffix = suffix.into();
        self.value.extend_from_slice(suffix.value);
        self.n_components += suffix.n_components;
    }

    /// This name with one more component.
    #[must_use]
    pub fn with<'c>(mut self, component: impl Into<ComponentView<'c>>) -> Self {
        self.push(component);
        self
    }

    /// A new name: this one, then `suffix`.
    #[must_use]
    pub fn join<'n>(&self, suffix: impl Into<NameView<'n>>) -> Self {
        let mut name = self.clone();
        name.append(suffix);
        name
    }

    /// Keeps the first `n_components` components.
    pub fn truncate(&mut self, n_components: usize) {
        let prefix = self.prefix(n_components);
        let (kept_bytes, kept_components) = (prefix.value.len(), prefix.n_components);
        self.value.truncate(kept_bytes);
        self.n_components = kept_components;
    }

    /// Removes the last component and returns it.
    pub fn pop(&mut self) -> Option<Component> {
        let last = self.last()?.to_component();
        self.truncate(self.len() - 1);
        Some(last)
    }

    /// Bytes of the whole Name element.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.view().wire_len()
    }

    /// The whole Name element.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.view().encode()
    }

    /// Appends the whole Name element.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        self.view().encode_into(out);
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.value
    }
}

impl PartialEq<NameView<'_>> for Name {
    fn eq(&self, other: &NameView<'_>) -> bool {
        self.value == other.value
    }
}

impl PartialEq<Name> for NameView<'_> {
    fn eq(&self, other: &Name) -> bool {
        self.value == other.value
    }
}

impl From<NameView<'_>> for Name {
    fn from(view: NameView<'_>) -> Self {
        view.to_name()
    }
}

impl<'c, C: Into<ComponentView<'c>>> Extend<C> for Name {
    fn extend<I: IntoIterator<Item = C>>(&mut self, components: I) {
        for component in components {
            self.push(component);
        }
    }
}

impl<'c, C: Into<ComponentView<'c>>> FromIterator<C> for Name {
    fn from_iter<I: IntoIterator<Item = C>>(components: I) -> Self {
        let mut name = Self::new();
        name.extend(components);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    #[test]
    fn prefixes_and_suffixes_cut_between_components() {
        let abc = name("/a/bb/300=ccc");
        assert_eq!(abc.len(), 3);
        assert_eq!(abc.prefix(0), NameView::EMPTY);
        assert_eq!(abc.prefix(2), name("/a/bb"));
        assert_eq!(abc.prefix(2).len(), 2);
        assert_eq!(abc.prefix(9), abc);
        assert_eq!(abc.view().suffix(1), name("/bb/300=ccc"));
        assert_eq!(abc.view().suffix(1).len(), 2);
        assert!(abc.view().suffix(3).is_empty());
        assert_eq!(abc.get(2).unwrap().typ(), 300);
        assert_eq!(abc.get(3), None);
        assert_eq!(abc.last(), abc.get(2));
        assert_eq!(abc.components().len(), 3);
    }

    #[test]
    fn prefix_test_respects_component_borders() {
        assert!(name("/a/b").starts_with(&name("/a")));
        assert!(name("/a/b").starts_with(&name("/")));
        assert!(name("/a/b").starts_with(&name("/a/b")));
        assert!(!name("/ab").starts_with(&name("/a")));
        assert!(!name("/a").starts_with(&name("/a/b")));
    }

    #[test]
    fn components_are_added_and_taken_away() {
        let mut built = Name::new().with("a").with(&Component::segment(7));
        assert_eq!(built, name("/a/seg=7"));
        assert_eq!(built.join(&name("/x/y")), name("/a/seg=7/x/y"));
        assert_eq!(built.pop(), Some(Component::segment(7)));
        assert_eq!(built, name("/a"));
        built.truncate(0);
        assert_eq!(built.pop(), None);
        assert!(built.is_empty());
        assert_eq!(["a", "b"].into_iter().collect::<Name>(), name("/a/b"));
    }

    #[test]
    fn names_cut_short_are_rejected() {
        let wire = name("/a/bb/300=ccc").encode();
        for len in 0..wire.len() {
            assert!(NameView::parse_element(&wire[..len]).is_err(), "{len}");
        }
        assert!(NameView::parse_element(&wire).is_ok());
        let trailing = [&wire[..], &[0]].concat();
        assert_eq!(
            NameView::parse_element(&trailing).err(),
            Some(DecodeError::TrailingBytes { extra_bytes: 1 })
        );
    }

    #[test]
    fn component_types_and_digest_lengths_are_checked() {
        let parse = |bytes: &[u8]| NameView::parse_value(bytes).map(|n| n.len()).err();
        assert_eq!(parse(&[0, 0]), Some(DecodeError::InvalidType));
        assert_eq!(
            parse(&[254, 0, 1, 0, 0, 0]),
            Some(DecodeError::BadComponentType)
        );
        assert_eq!(parse(&[1, 1, 0]), Some(DecodeError::BadDigestLength));
        assert_eq!(
            parse(&[8, 253, 0, 1, 0]),
            Some(DecodeError::NonMinimalNumber)
        );
        assert_eq!(parse(&[253, 0, 8, 0]), Some(DecodeError::NonMinimalNumber));
        assert_eq!(parse(&[253, 255, 255, 0]), None);
    }

    #[test]
    fn canonical_order_compares_components_one_by_one() {
        let ascending = [
            "/", "/a", "/a/a", "/a/b", "/b", "/aa", "/aa/a", "/253=a", "/65535=a",
        ];
        let names: Vec<Name> = ascending.map(name).into();
        assert!(names.is_sorted());
        for pair in names.windows(2) {
            let by_components = pair[0].components().cmp(pair[1].components());
            assert_eq!(by_components, Ordering::Less);
        }
    }
}
