//! Commands: their names, parameters and responses.
//!
//! Owns [`ControlParameters`], [`ControlResponse`] and the names
//! `/localhost/nfd/<module>/<verb>`. Which verb needs which parameter is the
//! manager's business; signing and verifying is `tachonym-security`'s.
//! Source: NFD Management protocol, "ControlCommand".

use tachonym_packet::tlv::{self, Element};
use tachonym_packet::{ComponentView, DecodeError, Name, NameView, types};

use crate::FacePersistency;
use crate::codec::{FieldValue, management_value};

management_value! {
    /// What a command asks for, or what it has brought about.
    #[derive(Default)]
    ControlParameters = 104 {
        /// A name prefix.
        name: Optional<Name> = 7,
        /// A face; 0 stands for the face that the command came in by.
        face_id: Optional<u64> = 105,
        /// Remote FaceUri. Text, because the manager answers a malformed one.
        uri: Optional<String> = 114,
        /// Local FaceUri.
        local_uri: Optional<String> = 129,
        /// Where a route comes from: see [`route_origin`](crate::route_origin).
        origin: Optional<u64> = 111,
        /// Cost of a route or next hop.
        cost: Optional<u64> = 106,
        /// Capacity of the content store, in packets.
        capacity: Optional<u64> = 131,
        /// How many packets to erase, or how many were.
        count: Optional<u64> = 132,
        /// Flag bits; which ones depends on the module.
        flags: Optional<u64> = 108,
        /// Which bits of `flags` are meant.
        mask: Optional<u64> = 112,
        /// Name of a strategy.
        strategy: Optional<Name> = 107,
        /// How long a route lives, in milliseconds.
        expiration_period_ms: Optional<u64> = 109,
        /// Persistency of a face.
        face_persistency: Optional<FacePersistency> = 133,
        /// Base interval of congestion marking, in nanoseconds.
        base_congestion_marking_interval_ns: Optional<u64> = 135,
        /// Queue length from which congestion is marked, in bytes.
        default_congestion_threshold_bytes: Optional<u64> = 136,
        /// Largest packet a face sends, in bytes.
        mtu_bytes: Optional<u64> = 137,
        /// What the content store is to admit and to evict: words `key=value` with commas
        /// between, as in `admission=filter,eviction=fifo,filter_threshold=2`, with the keys
        /// of `[content_store]` in the configuration. This router's own.
        cs_policy: Optional<String> = 36880,
        /// Number of a worker. This router's own.
        worker: Optional<u64> = 36908,
        /// Number of a trace of packets. This router's own.
        trace_id: Optional<u64> = 37142,
        /// Of how many packets a trace shows one. This router's own.
        sample: Optional<u64> = 37146,
    }
}

impl ControlParameters {
    /// Sets `bit` (a mask with one bit) in Flags and Mask.
    pub fn set_flag(&mut self, bit: u64, on: bool) {
        let flags = self.flags.get_or_insert(0);
        *flags = if on { *flags | bit } else { *flags & !bit };
        *self.mask.get_or_insert(0) |= bit;
    }

    /// What Flags and Mask together say about `bit`; `None`: nothing.
    #[must_use]
    pub fn flag(&self, bit: u64) -> Option<bool> {
        let meant = self.mask? & bit != 0;
        meant.then(|| self.flags.unwrap_or(0) & bit != 0)
    }
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlResponse {
    /// Status code: see [`status_code`](crate::status_code).
    pub code: u64,
    /// What a person reads.
    pub text: String,
    /// Elements that follow; normally one ControlParameters.
    pub body: Vec<u8>,
}

impl ControlResponse {
    /// TLV-TYPE of the element that holds this value.
    pub const TLV_TYPE: u32 = 101;
    const STATUS_CODE: u32 = 102;
    const STATUS_TEXT: u32 = 103;

    /// A response without a body.
    #[must_use]
    pub fn new(code: u64, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            body: Vec::new(),
        }
    }

    /// This response with `parameters` as its body.
    #[must_use]
    pub fn with_parameters(mut self, parameters: &ControlParameters) -> Self {
        self.body = parameters.encode();
        self
    }

    /// The body as ControlParameters, `None` if it is empty.
    ///
    /// # Errors
    /// If there is a body that is something else.
    pub fn parameters(&self) -> Result<Option<ControlParameters>, DecodeError> {
        if self.body.is_empty() {
            return Ok(None);
        }
        ControlParameters::decode(&self.body).map(Some)
    }

    /// Appends the whole element.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, Self::TLV_TYPE, |out| {
            tlv::write_nni(out, Self::STATUS_CODE, self.code);
            tlv::write_tlv(out, Self::STATUS_TEXT, self.text.as_bytes());
            out.extend_from_slice(&self.body);
        });
    }

    /// The whole element.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// Reads `wire`, which has to be exactly one ControlResponse. Whatever
    /// elements follow the status text are its body.
    ///
    /// # Errors
    /// If it is malformed, or lacks the code or the text.
    pub fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = tlv::Reader::new(tlv::read_single(wire, Self::TLV_TYPE)?);
        let code = u64::read(Element {
            typ: Self::STATUS_CODE,
            value: reader.read_expected(Self::STATUS_CODE)?,
        })?;
        let text = String::read(Element {
            typ: Self::STATUS_TEXT,
            value: reader.read_expected(Self::STATUS_TEXT)?,
        })?;
        let body = reader.remaining().to_vec();
        while !reader.is_empty() {
            reader.read_element()?;
        }
        Ok(Self { code, text, body })
    }
}

/// Which router a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `/localhost/nfd`: the router on this machine.
    Localhost,
    /// `/localhop/nfd`: a router that is one hop away.
    Localhop,
}

impl Scope {
    /// `/localhost/nfd` or `/localhop/nfd`.
    #[must_use]
    pub fn prefix(self) -> Name {
        Name::new().with(self.word()).with("nfd")
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Localhost => "localhost",
            Self::Localhop => "localhop",
        }
    }
}

/// `/<scope>/nfd/<module>/<verb>`: the name of a command, a dataset or a
/// notification stream, before its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandName<'a> {
    /// Which router is addressed.
    pub scope: Scope,
    /// The module, as in `rib`.
    pub module: &'a str,
    /// The verb, as in `register`.
    pub verb: &'a str,
}

impl<'a> CommandName<'a> {
    /// Components that the name takes before its parameters.
    pub const N_COMPONENTS: usize = 4;

    /// A name on this machine's router.
    #[must_use]
    pub const fn local(module: &'a str, verb: &'a str) -> Self {
        Self {
            scope: Scope::Localhost,
            module,
            verb,
        }
    }

    /// The name, without parameters.
    #[must_use]
    pub fn name(&self) -> Name {
        self.scope.prefix().with(self.module).with(self.verb)
    }

    /// The name of the command in the form that carries its parameters in the
    /// name; what is signed follows it.
    #[must_use]
    pub fn with_parameters(&self, parameters: &ControlParameters) -> Name {
        self.name().with(&*parameters.encode())
    }

    /// Splits a name into command and what follows it. `None` if the first four
    /// components are not those of a command.
    #[must_use]
    pub fn parse(name: NameView<'a>) -> Option<(Self, NameView<'a>)> {
        let mut components = name.components();
        let scope = match generic_text(components.next()?)? {
            "localhost" => Scope::Localhost,
            "localhop" => Scope::Localhop,
            _ => return None,
        };
        if generic_text(components.next()?)? != "nfd" {
            return None;
        }
        let module = generic_text(components.next()?)?;
        let verb = generic_text(components.next()?)?;
        let command = Self {
            scope,
            module,
            verb,
        };
        Some((command, name.suffix(Self::N_COMPONENTS)))
    }
}

fn generic_text(component: ComponentView<'_>) -> Option<&str> {
    (component.typ() == types::component::GENERIC)
        .then(|| std::str::from_utf8(component.value()).ok())
        .flatten()
}
