//! Names.
//!
//! Owns [`NameView`], checked bytes of a Name's TLV-VALUE, and [`Name`], which
//! owns such bytes. Both guarantee that the bytes are a sequence of whole,
//! valid components, which makes prefix tests and the canonical order plain
//! byte comparisons. How many ParametersSha256DigestComponents a packet's name
//! may have is checked by the packet views. Text form: `uri`; keyed hashes:
//! [`hash`](crate::hash).

mod component;
mod scope;
mod uri;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use self::component::DIGEST_BYTES;
pub(crate) use self::component::check_component;
pub use self::component::{Component, ComponentView};
pub use self::scope::NameScope;
pub use self::uri::NameUriError;
use crate::DecodeError;
use crate::tlv::{self, Element, Reader};
use crate::types::{self, component as kind};

/// A name borrowed from checked bytes.
///
/// Invariant: `value` is a sequence of `n_components` whole, valid components, the
/// last of which begins at `last_at`; only [`NameView::parse_value`] and what builds
/// on it make one.
#[derive(Clone, Copy, Default)]
pub struct NameView<'a> {
    value: &'a [u8],
    n_components: u32,
    /// 0 if there is no component.
    last_at: u32,
}

const _: () = assert!(size_of::<NameView<'_>>() == 24);

/// Checks the first component of `value`, whatever it is: its type, and what follows it.
/// Kept apart, so that the loop around it keeps its counts in registers.
#[cold]
#[inline(never)]
fn check_rare_component(value: &[u8]) -> Result<(u16, &[u8]), DecodeError> {
    let mut reader = Reader::new(value);
    let Element { typ, value } = reader.read_element()?;
    Ok((check_component(typ, value.len())?, reader.remaining()))
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
        last_at: 0,
    };

    /// Checks a Name's TLV-VALUE.
    ///
    /// # Errors
    /// If the bytes are not a sequence of whole, valid components.
    #[inline]
    pub fn parse_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        let (name, _) = Self::scan(value)?;
        Ok(name)
    }

    /// Checks the TLV-VALUE of a packet's own name, which has at most one
    /// ParametersSha256DigestComponent (packet format, section "Name").
    #[inline]
    pub(crate) fn parse_packet_name(value: &'a [u8]) -> Result<Self, DecodeError> {
        let (name, n_parameters_digests) = Self::scan(value)?;
        if n_parameters_digests > 1 {
            return Err(DecodeError::RepeatedParametersDigest);
        }
        Ok(name)
    }

    /// Checks a Name's TLV-VALUE component by component; counts the
    /// ParametersSha256DigestComponents.
    #[inline]
    fn scan(value: &'a [u8]) -> Result<(Self, u32), DecodeError> {
        if value.len() > u32::MAX as usize {
            return Err(DecodeError::PacketTooLarge);
        }
        let (mut n_components, mut n_parameters_digests) = (0, 0);
        let (mut rest, mut last_len) = (value, value.len());
        loop {
            // Nearly all components have a one-byte type, which is not that of a
            // digest, and a one-byte length.
            while let [3..=252, len @ 0..=252, tail @ ..] = rest
                && let Some(after) = tail.get(usize::from(*len)..)
            {
                last_len = rest.len();
                rest = after;
                n_components += 1;
            }
            if rest.is_empty() {
                break;
            }
            let (typ, after) = check_rare_component(rest)?;
            n_parameters_digests += u32::from(typ == kind::PARAMETERS_SHA256_DIGEST);
            last_len = rest.len();
            rest = after;
            n_components += 1;
        }
        let name = Self {
            value,
            n_components,
            last_at: (value.len() - last_len) as u32,
        };
        Ok((name, n_parameters_digests))
    }

    /// Checks a whole Name element, which has to be all of `wire`.
    ///
    /// # Errors
    /// If `wire` is not exactly one valid Name.
    pub fn parse_element(wire: &'a [u8]) -> Result<Self, DecodeError> {
        Self::parse_value(tlv::read_single(wire, types::NAME)?)
    }

    /// The view of a copy of the components.
    #[inline]
    pub(crate) const fn of_copy<'c>(&self, value: &'c [u8]) -> NameView<'c> {
        NameView {
            value,
            n_components: self.n_components,
            last_at: self.last_at,
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

    /// The last component. Takes constant time.
    #[must_use]
    #[inline]
    pub fn last(&self) -> Option<ComponentView<'a>> {
        let (last, _) = split_component(self.last_bytes())?;
        Some(last)
    }

    /// The implicit digest that the name ends in, if it does. Takes constant time.
    #[must_use]
    #[inline]
    pub fn last_implicit_digest(&self) -> Option<&'a [u8; DIGEST_BYTES]> {
        const LEN: usize = 2 + DIGEST_BYTES;
        const TYPE: u8 = kind::IMPLICIT_SHA256_DIGEST as u8;
        let last: &[u8; LEN] = self.last_bytes().try_into().ok()?;
        // The length needs no look: the whole component has the size of one of 32 bytes.
        match last.split_first_chunk()? {
            ([TYPE, _], digest) => digest.try_into().ok(),
            _ => None,
        }
    }

    /// The last component with its type and length; empty if there is none.
    #[inline]
    fn last_bytes(&self) -> &'a [u8] {
        self.value.get(self.last_at as usize..).unwrap_or_default()
    }

    /// How far packets of this name may go. Compares the encoding of the first
    /// component, which is cheaper than a flag that every prefix would have to keep.
    #[must_use]
    #[inline]
    pub fn scope(&self) -> NameScope {
        const GENERIC: u8 = kind::GENERIC as u8;
        match self.value {
            [GENERIC, 9, text @ ..] if text.starts_with(b"localhost") => NameScope::Localhost,
            [GENERIC, 8, text @ ..] if text.starts_with(b"localhop") => NameScope::Localhop,
            _ => NameScope::Global,
        }
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
    /// fewer. Takes time linear in their number.
    #[must_use]
    #[inline]
    pub fn prefix(&self, n_components: usize) -> Self {
        if n_components >= self.len() {
            return *self;
        }
        let (mut end, mut last_at) = (0, 0);
        for _ in 0..n_components {
            last_at = end;
            end += first_component_len(&self.value[end..]).unwrap_or_default();
        }
        Self {
            value: &self.value[..end],
            n_components: n_components as u32,
            last_at: last_at as u32,
        }
    }

    /// The name without its first `n_components` components; empty if it has
    /// no more.
    #[must_use]
    pub fn suffix(&self, n_components: usize) -> Self {
        let cut = self.prefix(n_components);
        Self {
            value: &self.value[cut.value.len()..],
            n_components: self.n_components - cut.n_components,
            last_at: self.last_at.saturating_sub(cut.value.len() as u32),
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
            last_at: self.last_at,
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
    last_at: u32,
}

impl Name {
    /// The name without components.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            value: Vec::new(),
            n_components: 0,
            last_at: 0,
        }
    }

    /// The name as a view.
    #[must_use]
    #[inline]
    pub fn view(&self) -> NameView<'_> {
        NameView {
            value: &self.value,
            n_components: self.n_components,
            last_at: self.last_at,
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
        self.last_at = self.value.len() as u32;
        component.into().encode_into(&mut self.value);
        self.n_components += 1;
    }

    /// Adds all components of `suffix` at the end.
    pub fn append<'n>(&mut self, suffix: impl Into<NameView<'n>>) {
        let suffix = suffix.into();
        if !suffix.is_empty() {
            self.last_at = self.value.len() as u32 + suffix.last_at;
        }
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
        let (n_bytes, n_components, last_at) =
            (prefix.value.len(), prefix.n_components, prefix.last_at);
        self.value.truncate(n_bytes);
        self.n_components = n_components;
        self.last_at = last_at;
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
mod tests;
