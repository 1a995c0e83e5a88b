//! Bytes as a tree of TLV elements, as far as they are such.
//!
//! Owns what each element is called and how its value is read, by the element
//! around it. Every element takes at least two bytes of the input and is shown
//! once, at most [`MAX_DEPTH`] deep and with [`MAX_SHOWN_BYTES`] of its value, so
//! that what is shown stays within a factor of the input. Names alone are shown
//! in full. What lies in a name is read without looking into the names in it.

use std::io::{self, Write};

use serde::Serialize;
use tachonym_packet::tlv::{Element, Reader, parse_nni};
use tachonym_packet::{ComponentView, NackReason, NameView, types as t};
use tachonym_protocol::{
    FaceEventKind, FacePersistency, FaceScope, FaceState, LinkType, route_origin,
};
use tachonym_security::VerifyingKey;

use crate::tools::text::{date, named, signature_type};

/// Deepest nesting that is shown.
const MAX_DEPTH: usize = 32;
/// Bytes of a value that are shown.
const MAX_SHOWN_BYTES: usize = 64;
/// Largest input of which a tree is made, in bytes.
pub(super) const MAX_TREE_BYTES: usize = 1 << 20;

/// An element, or bytes that are none.
#[derive(Serialize)]
pub(super) struct Node {
    #[serde(rename = "type")]
    typ: Option<u32>,
    name: &'static str,
    #[serde(rename = "offset")]
    offset_bytes: usize,
    #[serde(rename = "bytes")]
    value_bytes: usize,
    value: String,
    error: Option<String>,
    children: Vec<Node>,
}

/// What surrounds an element, and so what its number means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Packet,
    Lp,
    /// An LpPacket whose fragment is a piece of a packet, and so no element.
    LpPiece,
    Nack,
    CachePolicy,
    Interest,
    Data,
    Delegations,
    MetaInfo,
    Signature,
    KeyLocator,
    Validity,
    Description,
    DescriptionEntry,
    SafeBag,
    Management,
    Parameters,
    Strategy,
    FaceEntries,
    Face,
    FibEntries,
    Fib,
    RibEntries,
    Rib,
    StrategyEntries,
    CsEntries,
    Cs,
    General,
    DropEntries,
    Drop,
    ProgramEntries,
    Program,
}

/// How the value of an element is read.
#[derive(Clone, Copy)]
enum Form {
    Nested(Context),
    Name,
    Component,
    Number,
    Milliseconds,
    Time,
    SignatureType,
    ContentType,
    NackReason,
    Text,
    Hex,
    Content,
    PublicKey,
    Persistency,
    FaceScope,
    LinkType,
    FaceEvent,
    FaceState,
    Origin,
    Flag,
}

/// Whether `bytes` begin as an NDN packet, certificate or SafeBag does.
pub(super) fn begins_packet(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    matches!(
        reader.read_type(),
        Ok(t::INTEREST | t::DATA | t::NAME | t::LP_PACKET | 101 | 104 | 128)
    )
}

/// Whether `bytes` begin as what travels over links does.
pub(super) fn begins_frame(bytes: &[u8]) -> bool {
    let typ = Reader::new(bytes).read_type();
    matches!(typ, Ok(t::INTEREST | t::DATA | t::LP_PACKET))
}

/// Whether `bytes` are elements, from the first to the last.
fn are_elements(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        if reader.read_element().is_err() {
            return false;
        }
    }
    true
}

/// The elements of `bytes`.
pub(super) fn read(bytes: &[u8]) -> Vec<Node> {
    if bytes.len() > MAX_TREE_BYTES {
        return vec![Node {
            typ: None,
            name: "bytes",
            offset_bytes: 0,
            value_bytes: bytes.len(),
            value: hex(bytes),
            error: Some("too large to be shown".into()),
            children: Vec::new(),
        }];
    }
    elements(bytes, 0, Context::Packet, 0)
}

/// Whether the value of an LpPacket says that its fragment is one of several.
fn is_piece(value: &[u8]) -> bool {
    let mut reader = Reader::new(value);
    while let Ok(element) = reader.read_element() {
        if element.typ == t::LP_FRAG_COUNT {
            return parse_nni(element.value).is_some_and(|count| count > 1);
        }
    }
    false
}

/// How the content of Data of this name is read.
fn content_form(name: NameView<'_>) -> Form {
    use Context as C;
    // What answers the name of metadata adds its version and segment to it.
    let mut asked = name;
    for typ in [t::component::SEGMENT, t::component::VERSION] {
        if asked.last().is_some_and(|last| last.typ() == typ) {
            asked = asked.prefix(asked.len() - 1);
        }
    }
    if tachonym_protocol::rdr::object_of_metadata(asked).is_some() {
        return Form::Nested(C::Packet);
    }
    let Some((command, _)) = tachonym_protocol::CommandName::parse(name) else {
        return Form::Content;
    };
    Form::Nested(match (command.module, command.verb) {
        ("faces", "list" | "query" | "channels" | "events") => C::FaceEntries,
        ("faces", "programs") => C::ProgramEntries,
        ("fib", "list") => C::FibEntries,
        ("rib", "list") => C::RibEntries,
        ("strategy-choice", "list") => C::StrategyEntries,
        ("cs", "info") => C::CsEntries,
        ("status", "general") => C::General,
        ("status", "drops") => C::DropEntries,
        _ => C::Packet,
    })
}

/// How the content of Data with this MetaInfo is read, if that decides it.
fn content_form_by_type(meta_info: &[u8]) -> Option<Form> {
    let mut reader = Reader::new(meta_info);
    let typ = reader.read_optional(t::CONTENT_TYPE).ok()??;
    (parse_nni(typ)? == t::content_type::KEY).then_some(Form::PublicKey)
}

fn elements(bytes: &[u8], base: usize, context: Context, depth: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut reader = Reader::new(bytes);
    let mut content = Form::Content;
    while !reader.is_empty() {
        let start = reader.position();
        match reader.read_element() {
            Ok(element) => {
                let value_at = base + reader.position() - element.value.len();
                let mut meant = meaning(context, element.typ);
                match (context, element.typ) {
                    (Context::Data, t::NAME) => {
                        if let Ok(name) = NameView::parse_value(element.value) {
                            content = content_form(name);
                        }
                    }
                    (Context::Data, t::META_INFO) => {
                        content = content_form_by_type(element.value).unwrap_or(content);
                    }
                    // A segment may begin or end within an element.
                    (Context::Data, t::CONTENT)
                        if !matches!(content, Form::Nested(_)) || are_elements(element.value) =>
                    {
                        meant.1 = content;
                    }
                    (_, t::LP_PACKET) if is_piece(element.value) => {
                        if matches!(meant.1, Form::Nested(_)) {
                            meant.1 = Form::Nested(Context::LpPiece);
                        }
                    }
                    _ => {}
                }
                nodes.push(node(element, meant, [base + start, value_at], depth));
            }
            Err(error) => {
                let rest = &bytes[start..];
                nodes.push(Node {
                    typ: None,
                    name: "malformed",
                    offset_bytes: base + start,
                    value_bytes: rest.len(),
                    value: hex(rest),
                    error: Some(error.to_string()),
                    children: Vec::new(),
                });
                break;
            }
        }
    }
    nodes
}

/// The node of `element`, which begins, and whose value begins, at `places`.
fn node(
    element: Element<'_>,
    (name, form): (&'static str, Form),
    [offset_bytes, value_at]: [usize; 2],
    depth: usize,
) -> Node {
    let Element { typ, value } = element;
    let mut node = Node {
        typ: Some(typ),
        name,
        offset_bytes,
        value_bytes: value.len(),
        value: String::new(),
        error: None,
        children: Vec::new(),
    };
    match form {
        Form::Nested(_) if depth >= MAX_DEPTH => {
            node.value = hex(value);
            node.error = Some("nested too deeply to be shown".into());
        }
        Form::Nested(inner) => node.children = elements(value, value_at, inner, depth + 1),
        other => match shown(other, value) {
            Ok(text) => node.value = text,
            Err(error) => {
                node.value = hex(value);
                node.error = Some(error);
            }
        },
    }
    node
}

/// The name of the element `typ` inside `context`, and how it is read.
fn meaning(context: Context, typ: u32) -> (&'static str, Form) {
    use Context as C;
    use Form as F;
    match (context, typ) {
        (C::Packet | C::Lp | C::SafeBag, t::INTEREST) => ("Interest", F::Nested(C::Interest)),
        (C::Packet | C::Lp | C::SafeBag, t::DATA) => ("Data", F::Nested(C::Data)),
        (C::Packet, t::LP_PACKET) => ("LpPacket", F::Nested(C::Lp)),
        (C::Packet, 101) => ("ControlResponse", F::Nested(C::Management)),
        (C::Packet, 104) => ("ControlParameters", F::Nested(C::Parameters)),
        (C::Packet, 128) => ("SafeBag", F::Nested(C::SafeBag)),
        (C::SafeBag, 129) => ("EncryptedKey", F::Hex),

        (C::LpPiece, t::LP_FRAGMENT) => ("Fragment", F::Hex),
        (C::LpPiece, _) => meaning(C::Lp, typ),
        (C::Lp, t::LP_FRAGMENT) => ("Fragment", F::Nested(C::Packet)),
        (C::Lp, t::LP_SEQUENCE) => ("Sequence", F::Number),
        (C::Lp, t::LP_FRAG_INDEX) => ("FragIndex", F::Number),
        (C::Lp, t::LP_FRAG_COUNT) => ("FragCount", F::Number),
        (C::Lp, t::LP_PIT_TOKEN) => ("PitToken", F::Hex),
        (C::Lp, t::LP_NACK) => ("Nack", F::Nested(C::Nack)),
        (C::Nack, t::LP_NACK_REASON) => ("NackReason", F::NackReason),
        (C::Lp, t::LP_INCOMING_FACE_ID) => ("IncomingFaceId", F::Number),
        (C::Lp, t::LP_NEXT_HOP_FACE_ID) => ("NextHopFaceId", F::Number),
        (C::Lp, t::LP_CACHE_POLICY) => ("CachePolicy", F::Nested(C::CachePolicy)),
        (C::CachePolicy, t::LP_CACHE_POLICY_TYPE) => ("CachePolicyType", F::Number),
        (C::Lp, t::LP_CONGESTION_MARK) => ("CongestionMark", F::Number),
        (C::Lp, t::LP_ACK) => ("Ack", F::Number),
        (C::Lp, t::LP_TX_SEQUENCE) => ("TxSequence", F::Number),
        (C::Lp, t::LP_NON_DISCOVERY) => ("NonDiscovery", F::Flag),
        (C::Lp, t::LP_PREFIX_ANNOUNCEMENT) => ("PrefixAnnouncement", F::Nested(C::Packet)),

        (C::Interest, t::CAN_BE_PREFIX) => ("CanBePrefix", F::Flag),
        (C::Interest, t::MUST_BE_FRESH) => ("MustBeFresh", F::Flag),
        (C::Interest, t::FORWARDING_HINT) => ("ForwardingHint", F::Nested(C::Delegations)),
        (C::Delegations, t::DELEGATION) => ("Delegation", F::Nested(C::Delegations)),
        (C::Delegations, 30) => ("Preference", F::Number),
        (C::Interest, t::NONCE) => ("Nonce", F::Hex),
        (C::Interest, t::INTEREST_LIFETIME) => ("InterestLifetime", F::Milliseconds),
        (C::Interest, t::HOP_LIMIT) => ("HopLimit", F::Number),
        (C::Interest, t::APPLICATION_PARAMETERS) => ("ApplicationParameters", F::Content),
        (C::Interest, t::INTEREST_SIGNATURE_INFO) => {
            ("InterestSignatureInfo", F::Nested(C::Signature))
        }
        (C::Interest, t::INTEREST_SIGNATURE_VALUE) => ("InterestSignatureValue", F::Hex),

        (C::Data, t::META_INFO) => ("MetaInfo", F::Nested(C::MetaInfo)),
        (C::Data, t::CONTENT) => ("Content", F::Content),
        (C::Data, t::SIGNATURE_INFO) => ("SignatureInfo", F::Nested(C::Signature)),
        (C::Data, t::SIGNATURE_VALUE) => ("SignatureValue", F::Hex),
        (C::MetaInfo, t::CONTENT_TYPE) => ("ContentType", F::ContentType),
        (C::MetaInfo, t::FRESHNESS_PERIOD) => ("FreshnessPeriod", F::Milliseconds),
        (C::MetaInfo, t::FINAL_BLOCK_ID) => ("FinalBlockId", F::Component),

        (C::Signature, t::SIGNATURE_TYPE) => ("SignatureType", F::SignatureType),
        (C::Signature, t::KEY_LOCATOR) => ("KeyLocator", F::Nested(C::KeyLocator)),
        (C::KeyLocator, t::KEY_DIGEST) => ("KeyDigest", F::Hex),
        (C::Signature, t::SIGNATURE_NONCE) => ("SignatureNonce", F::Hex),
        (C::Signature, t::SIGNATURE_TIME) => ("SignatureTime", F::Time),
        (C::Signature, t::SIGNATURE_SEQ_NUM) => ("SignatureSeqNum", F::Number),
        (C::Signature, t::VALIDITY_PERIOD) => ("ValidityPeriod", F::Nested(C::Validity)),
        (C::Validity, t::NOT_BEFORE) => ("NotBefore", F::Text),
        (C::Validity, t::NOT_AFTER) => ("NotAfter", F::Text),
        (C::Signature, t::ADDITIONAL_DESCRIPTION) => {
            ("AdditionalDescription", F::Nested(C::Description))
        }
        (C::Description, t::DESCRIPTION_ENTRY) => {
            ("DescriptionEntry", F::Nested(C::DescriptionEntry))
        }
        (C::DescriptionEntry, t::DESCRIPTION_KEY) => ("DescriptionKey", F::Text),
        (C::DescriptionEntry, t::DESCRIPTION_VALUE) => ("DescriptionValue", F::Text),

        (C::Management, 102) => ("StatusCode", F::Number),
        (C::Management, 103) => ("StatusText", F::Text),
        (C::Management, 104) => ("ControlParameters", F::Nested(C::Parameters)),
        (C::Parameters, 105) => ("FaceId", F::Number),
        (C::Parameters, 106) => ("Cost", F::Number),
        (C::Parameters, 107) => ("Strategy", F::Nested(C::Strategy)),
        (C::Parameters, 108) => ("Flags", F::Number),
        (C::Parameters, 109) => ("ExpirationPeriod", F::Milliseconds),
        (C::Parameters, 111) => ("Origin", F::Origin),
        (C::Parameters, 112) => ("Mask", F::Number),
        (C::Parameters, 114) => ("Uri", F::Text),
        (C::Parameters, 129) => ("LocalUri", F::Text),
        (C::Parameters, 131) => ("Capacity", F::Number),
        (C::Parameters, 132) => ("Count", F::Number),
        (C::Parameters, 133) => ("FacePersistency", F::Persistency),
        (C::Parameters, 135) => ("BaseCongestionMarkingInterval", F::Number),
        (C::Parameters, 136) => ("DefaultCongestionThreshold", F::Number),
        (C::Parameters, 137) => ("Mtu", F::Number),
        (C::Parameters, 36908) => ("Worker", F::Number),

        (C::FaceEntries, 128) => ("FaceStatus", F::Nested(C::Face)),
        (C::FaceEntries, 130) => ("ChannelStatus", F::Nested(C::Face)),
        (C::FaceEntries, 192) => ("FaceEventNotification", F::Nested(C::Face)),
        (C::Face, 105 | 108 | 109 | 114 | 129 | 133 | 135..=137) => meaning(C::Parameters, typ),
        (C::Face, 132) => ("FaceScope", F::FaceScope),
        (C::Face, 134) => ("LinkType", F::LinkType),
        (C::Face, 36866) => ("FaceState", F::FaceState),
        (C::Face, 193) => ("FaceEventKind", F::FaceEvent),
        (C::FibEntries, 128) => ("FibEntry", F::Nested(C::Fib)),
        (C::Fib, 129) => ("NextHopRecord", F::Nested(C::Parameters)),
        (C::RibEntries, 128) => ("RibEntry", F::Nested(C::Rib)),
        (C::Rib, 129) => ("Route", F::Nested(C::Parameters)),
        (C::StrategyEntries, 128) => ("StrategyChoice", F::Nested(C::Parameters)),
        (C::CsEntries, 128) => ("CsInfo", F::Nested(C::Cs)),
        (C::Cs, 131 | 108) => meaning(C::Parameters, typ),
        (C::Cs, 129) => ("NHits", F::Number),
        (C::Cs, 130) => ("NMisses", F::Number),
        (C::Cs, 135) => ("NCsEntries", F::Number),
        (C::General, 128) => ("NfdVersion", F::Text),
        (C::General, 129) => ("StartTimestamp", F::Time),
        (C::General, 130) => ("CurrentTimestamp", F::Time),
        (C::General, 131) => ("NNameTreeEntries", F::Number),
        (C::General, 132) => ("NFibEntries", F::Number),
        (C::General, 133) => ("NPitEntries", F::Number),
        (C::General, 134) => ("NMeasurementsEntries", F::Number),
        (C::General, 135) => ("NCsEntries", F::Number),
        (C::Face | C::General, 144) => ("NInInterests", F::Number),
        (C::Face | C::General, 145) => ("NInData", F::Number),
        (C::Face | C::General, 146) => ("NOutInterests", F::Number),
        (C::Face | C::General, 147) => ("NOutData", F::Number),
        (C::Face, 148) => ("NInBytes", F::Number),
        (C::Face, 149) => ("NOutBytes", F::Number),
        (C::Face | C::General, 151) => ("NInNacks", F::Number),
        (C::Face | C::General, 152) => ("NOutNacks", F::Number),
        (C::General, 153) => ("NSatisfiedInterests", F::Number),
        (C::General, 154) => ("NUnsatisfiedInterests", F::Number),
        (C::DropEntries, 36864) => ("DropCount", F::Nested(C::Drop)),
        (C::Drop, 105) => ("FaceId", F::Number),
        (C::Drop, 36865) => ("DropReason", F::Text),
        (C::Drop, 36867) => ("NDropped", F::Number),
        (C::ProgramEntries, 37050) => ("FaceProgram", F::Nested(C::Program)),
        (C::Program, 105) => ("FaceId", F::Number),
        (C::Program, 37051) => ("Pid", F::Number),
        (C::Program, 37052) => ("ProgramName", F::Text),
        (_, t::NAME) => ("Name", F::Name),
        _ => ("unknown", F::Content),
    }
}

fn shown(form: Form, value: &[u8]) -> Result<String, String> {
    let number = || {
        // Some numbers have a fixed length, and none is longer than 8 bytes.
        parse_nni(value).ok_or_else(|| format!("{} bytes are no number", value.len()))
    };
    Ok(match form {
        Form::Nested(_) => String::new(),
        Form::Name => {
            let name = NameView::parse_value(value).map_err(|error| error.to_string())?;
            management_parameters(name).map_or_else(
                || name.to_string(),
                |parameters| format!("{name} [{parameters}]"),
            )
        }
        Form::Component => ComponentView::parse_element(value)
            .map_err(|error| error.to_string())?
            .to_string(),
        Form::Number => number()?.to_string(),
        Form::Milliseconds => format!("{} ms", number()?),
        Form::Time => format!("{} ({} ms)", date(number()?), number()?),
        Form::NackReason => nack_reason(number()?),
        Form::SignatureType => signature_type(number()?),
        Form::ContentType => named(
            number()?,
            &[
                (t::content_type::BLOB, "BLOB"),
                (t::content_type::LINK, "LINK"),
                (t::content_type::KEY, "KEY"),
                (t::content_type::NACK, "NACK"),
                (t::content_type::MANIFEST, "MANIFEST"),
                (t::content_type::PREFIX_ANNOUNCEMENT, "PrefixAnnouncement"),
            ],
        ),
        // Any bytes may be a key of some algorithm.
        Form::PublicKey => match VerifyingKey::from_spki(value) {
            Ok(key) => format!("{:?} public key {}", key.kind(), hex(value)),
            Err(_) => hex(value),
        },
        Form::Persistency => known(
            number()?,
            FacePersistency::from_code,
            FacePersistency::as_str,
        ),
        Form::FaceScope => known(number()?, FaceScope::from_code, FaceScope::as_str),
        Form::LinkType => known(number()?, LinkType::from_code, LinkType::as_str),
        Form::FaceState => known(number()?, FaceState::from_code, FaceState::as_str),
        Form::FaceEvent => known(number()?, FaceEventKind::from_code, FaceEventKind::as_str),
        Form::Origin => known(number()?, route_origin::name, |name| name),
        Form::Text => text(value).ok_or("not text")?,
        Form::Hex => hex(value),
        Form::Content => text(value).unwrap_or_else(|| hex(value)),
        Form::Flag if value.is_empty() => String::new(),
        Form::Flag => return Err("should be empty".into()),
    })
}

/// The parameters in the name of a management command. Names in them are shown
/// as they are, whatever they hold: this goes no deeper.
fn management_parameters(name: NameView<'_>) -> Option<String> {
    let (_, rest) = tachonym_protocol::CommandName::parse(name)?;
    let mut reader = Reader::new(rest.get(0)?.value());
    let parameters = reader.read_expected(104).ok()?;
    reader.finish().ok()?;
    let mut fields = Vec::new();
    let mut reader = Reader::new(parameters);
    while !reader.is_empty() {
        let element = reader.read_element().ok()?;
        let (name, form) = meaning(Context::Parameters, element.typ);
        let value = match form {
            Form::Name => plain_name(element.value),
            Form::Nested(_) => Reader::new(element.value)
                .read_expected(t::NAME)
                .ok()
                .and_then(plain_name),
            form => shown(form, element.value).ok(),
        };
        let value = value.unwrap_or_else(|| hex(element.value));
        fields.push(format!("{name}={value}"));
    }
    (!fields.is_empty()).then(|| fields.join(" "))
}

/// The URI of the name whose TLV-VALUE is `value`.
fn plain_name(value: &[u8]) -> Option<String> {
    NameView::parse_value(value)
        .ok()
        .map(|name| name.to_string())
}

/// A number with what it stands for, if that is known.
fn known<K>(
    number: u64,
    from_code: impl Fn(u64) -> Option<K>,
    name: impl Fn(K) -> &'static str,
) -> String {
    match from_code(number) {
        Some(kind) => format!("{} ({number})", name(kind)),
        None => number.to_string(),
    }
}

/// A reason by its name; one that others than the reason's own number stand for, with that.
fn nack_reason(number: u64) -> String {
    let reason = NackReason::from_code(number);
    match reason.code() == number {
        true => reason.to_string(),
        false => format!("{reason} ({number})"),
    }
}

/// Printable text, cut where it gets long.
fn text(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    if text
        .chars()
        .any(|c| c.is_control() && !c.is_ascii_whitespace())
    {
        return None;
    }
    let shown: String = text.chars().take(MAX_SHOWN_BYTES).collect();
    let rest = if shown.len() < text.len() { " …" } else { "" };
    Some(format!("{shown:?}{rest}"))
}

fn hex(value: &[u8]) -> String {
    let mut out = String::new();
    for byte in &value[..value.len().min(MAX_SHOWN_BYTES)] {
        out.push_str(&format!("{byte:02x}"));
    }
    if value.len() > MAX_SHOWN_BYTES {
        out.push_str(" …");
    }
    out
}

impl Node {
    /// Whether it, or anything in it, is not what it should be.
    pub(super) fn is_malformed(&self) -> bool {
        self.error.is_some() || self.children.iter().any(Self::is_malformed)
    }

    pub(super) fn write(&self, out: &mut impl Write, depth: usize) -> io::Result<()> {
        let indent = "  ".repeat(depth);
        let head = match self.typ {
            Some(typ) => format!("{} ({typ})", self.name),
            None => self.name.to_owned(),
        };
        write!(
            out,
            "{:>6} {indent}{head}, {} bytes",
            self.offset_bytes, self.value_bytes
        )?;
        if !self.value.is_empty() {
            write!(out, ": {}", self.value)?;
        }
        if let Some(error) = &self.error {
            write!(out, "  !! {error}")?;
        }
        writeln!(out)?;
        for child in &self.children {
            child.write(out, depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tachonym_packet::tlv::write_tlv;

    use super::*;

    /// Most bytes that are shown for a byte of the input.
    const MAX_GROWTH: usize = 100;

    fn element(typ: u32, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_tlv(&mut out, typ, value);
        out
    }

    /// What is shown of `wire`: text, and JSON. Neither is out of proportion.
    fn shown_both_ways(wire: &[u8]) -> [String; 2] {
        let nodes = read(wire);
        let mut lines = Vec::new();
        for node in &nodes {
            node.write(&mut lines, 0).expect("memory");
        }
        let lines = String::from_utf8(lines).expect("text");
        let json = serde_json::to_string(&nodes).expect("no maps");
        for shown in [&lines, &json] {
            let (n_shown, n_bytes) = (shown.len(), wire.len());
            assert!(
                n_shown <= MAX_GROWTH * n_bytes + 200,
                "{n_shown} of {n_bytes}"
            );
        }
        [lines, json]
    }

    #[test]
    fn nesting_stops_at_its_limit() {
        let mut wire = Vec::new();
        for _ in 0..200 {
            wire = element(t::LP_PACKET, &element(t::LP_FRAGMENT, &wire));
        }
        assert!(read(&wire)[0].is_malformed());
        let [lines, _] = shown_both_ways(&wire);
        assert!(lines.lines().count() <= MAX_DEPTH + 2);
    }

    /// The name of a command whose parameters have the name with `value`.
    fn command_about(value: &[u8]) -> Vec<u8> {
        let parameters = element(104, &element(t::NAME, value));
        let components = [
            &b"localhost"[..],
            b"nfd",
            b"rib",
            b"register",
            &parameters[..],
        ];
        components.map(component).concat()
    }

    /// A generic name component.
    fn component(value: &[u8]) -> Vec<u8> {
        element(8, value)
    }

    #[test]
    fn commands_in_the_names_of_commands_are_not_looked_into() {
        let mut name = component(b"innermost");
        for _ in 0..3000 {
            name = command_about(&name);
        }
        let wire = element(t::INTEREST, &element(t::NAME, &name));
        assert!(wire.len() < MAX_TREE_BYTES);
        let [lines, json] = shown_both_ways(&wire);
        assert_eq!(lines.matches("[Name=").count(), 1);
        assert_eq!(json.matches("[Name=").count(), 1);
    }

    #[test]
    fn packets_in_the_names_of_commands_are_not_looked_into() {
        let mut name = Vec::new();
        for _ in 0..3000 {
            let packet = element(t::INTEREST, &element(t::NAME, &name));
            name = [&command_about(b"")[..], &component(&packet)].concat();
            name = command_about(&name);
            if name.len() > MAX_TREE_BYTES / 2 {
                break;
            }
        }
        let data = element(t::DATA, &element(t::NAME, &name));
        assert!(data.len() < MAX_TREE_BYTES);
        let [lines, _] = shown_both_ways(&data);
        assert_eq!(lines.lines().count(), 2);
    }

    #[test]
    fn content_within_content_counts_towards_the_limit() {
        let metadata: tachonym_packet::Name = "/a/32=metadata/v=1/seg=0".parse().expect("a name");
        let name = metadata.encode();
        let mut wire = name.clone();
        for _ in 0..4000 {
            wire = element(t::DATA, &[&name[..], &element(t::CONTENT, &wire)].concat());
        }
        assert!(read(&wire)[0].is_malformed());
        let [lines, _] = shown_both_ways(&wire);
        assert!(lines.lines().count() <= 3 * MAX_DEPTH, "{lines}");
    }

    #[test]
    fn siblings_are_shown_in_proportion() {
        for sibling in [
            &[0xf0, 0][..],
            &[t::NAME as u8, 0],
            &[t::CAN_BE_PREFIX as u8, 0],
            &[t::HOP_LIMIT as u8, 0],
            &[t::HOP_LIMIT as u8, 1, 0],
            &[t::FORWARDING_HINT as u8, 0],
            &[
                t::INTEREST_LIFETIME as u8,
                8,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
            ],
        ] {
            let n_siblings = (MAX_TREE_BYTES - 16) / sibling.len() / 8;
            let mut wire = element(t::INTEREST, &sibling.repeat(n_siblings));
            let [lines, _] = shown_both_ways(&wire);
            assert_eq!(lines.lines().count(), n_siblings + 1);
            // As deep as it gets.
            for _ in 0..(MAX_DEPTH - 1) / 2 {
                wire = element(t::LP_PACKET, &element(t::LP_FRAGMENT, &wire));
            }
            shown_both_ways(&wire);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_shown_in_proportion(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            shown_both_ways(&bytes);
        }
    }
}
