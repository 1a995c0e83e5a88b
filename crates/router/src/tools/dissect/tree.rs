//! Bytes as a tree of TLV elements, as far as they are such.
//!
//! Owns what each element is called and how its value is read, by the element
//! around it. Depth and width are bounded by the input alone: every element
//! takes at least two bytes, and nesting stops at [`MAX_DEPTH`].

use std::io::{self, Write};

use serde_json::{Value, json};
use tachonym_packet::tlv::{Reader, parse_nni};
use tachonym_packet::{ComponentView, NackReason, NameView, types as t};

/// Deepest nesting that is shown.
const MAX_DEPTH: usize = 32;
/// Bytes of a value that are shown.
const MAX_SHOWN_BYTES: usize = 64;

/// An element, or bytes that are none.
pub(super) struct Node {
    typ: Option<u32>,
    name: &'static str,
    offset_bytes: usize,
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

/// The elements of `bytes`.
pub(super) fn read(bytes: &[u8]) -> Vec<Node> {
    elements(bytes, 0, Context::Packet, 0)
}

fn elements(bytes: &[u8], base: usize, context: Context, depth: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let start = reader.position();
        match reader.read_element() {
            Ok(element) => {
                let value_at = base + reader.position() - element.value.len();
                nodes.push(node(
                    element.typ,
                    element.value,
                    value_at,
                    base + start,
                    context,
                    depth,
                ));
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

fn node(
    typ: u32,
    value: &[u8],
    value_at: usize,
    offset_bytes: usize,
    context: Context,
    depth: usize,
) -> Node {
    let (name, form) = meaning(context, typ);
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
        (C::Packet, 128) => ("SafeBag or dataset entry", F::Nested(C::SafeBag)),
        (C::SafeBag, 129) => ("EncryptedKey", F::Hex),

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
        (C::Parameters, 111) => ("Origin", F::Number),
        (C::Parameters, 112) => ("Mask", F::Number),
        (C::Parameters, 114) => ("Uri", F::Text),
        (C::Parameters, 129) => ("LocalUri", F::Text),
        (C::Parameters, 131) => ("Capacity", F::Number),
        (C::Parameters, 132) => ("Count", F::Number),
        (C::Parameters, 133) => ("FacePersistency", F::Number),
        (C::Parameters, 135) => ("BaseCongestionMarkingInterval", F::Number),
        (C::Parameters, 136) => ("DefaultCongestionThreshold", F::Number),
        (C::Parameters, 137) => ("Mtu", F::Number),
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
        Form::Time => format!("{} ({} ms)", crate::tools::text::date(number()?), number()?),
        Form::NackReason => NackReason::from_code(number()?).to_string(),
        Form::SignatureType => named(
            number()?,
            &[
                (t::signature_type::DIGEST_SHA256, "DigestSha256"),
                (t::signature_type::SHA256_WITH_RSA, "SignatureSha256WithRsa"),
                (
                    t::signature_type::SHA256_WITH_ECDSA,
                    "SignatureSha256WithEcdsa",
                ),
                (
                    t::signature_type::HMAC_WITH_SHA256,
                    "SignatureHmacWithSha256",
                ),
                (t::signature_type::ED25519, "SignatureEd25519"),
                (t::signature_type::NULL, "NullSignature"),
            ],
        ),
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
        Form::Text => text(value).ok_or("not text")?,
        Form::Hex => hex(value),
        Form::Content => text(value).unwrap_or_else(|| hex(value)),
        Form::Flag if value.is_empty() => String::new(),
        Form::Flag => return Err("should be empty".into()),
    })
}

/// The parameters in the name of a management command.
fn management_parameters(name: NameView<'_>) -> Option<String> {
    let (_, rest) = tachonym_protocol::CommandName::parse(name)?;
    let parameters = rest.get(0)?;
    let nodes = elements(parameters.value(), 0, Context::Packet, 0);
    let [parameters] = nodes.as_slice() else {
        return None;
    };
    let fields = parameters.children.iter();
    let fields: Vec<String> = fields
        .map(|field| format!("{}={}", field.name, field.value))
        .collect();
    (parameters.typ == Some(104) && !fields.is_empty()).then(|| fields.join(" "))
}

fn named(number: u64, names: &[(u64, &str)]) -> String {
    let name = names.iter().find(|(known, _)| *known == number);
    match name {
        Some((_, name)) => format!("{name} ({number})"),
        None => number.to_string(),
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

    pub(super) fn to_json(&self) -> Value {
        let children: Vec<Value> = self.children.iter().map(Self::to_json).collect();
        json!({
            "type": self.typ,
            "name": self.name,
            "offset": self.offset_bytes,
            "bytes": self.value_bytes,
            "value": self.value,
            "error": self.error,
            "children": children,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nesting_stops_at_its_limit() {
        let mut wire = Vec::new();
        for _ in 0..200 {
            let mut outer = Vec::new();
            tachonym_packet::tlv::write_tlv(&mut outer, t::LP_FRAGMENT, &wire);
            wire.clear();
            tachonym_packet::tlv::write_tlv(&mut wire, t::LP_PACKET, &outer);
        }
        let nodes = read(&wire);
        assert!(nodes[0].is_malformed());
        let mut out = Vec::new();
        nodes[0].write(&mut out, 0).expect("memory");
        assert!(String::from_utf8(out).expect("text").lines().count() <= MAX_DEPTH + 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_shown(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            for node in read(&bytes) {
                node.write(&mut out, 0).expect("memory");
                node.to_json();
            }
        }
    }
}
