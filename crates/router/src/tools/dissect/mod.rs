//! `tachonym dissect`: packets and captures as readable trees.
//!
//! Owns the command line and what is shown. What the bytes of a packet mean is
//! in `tree`; how packets lie in captures, in `capture`. Nothing here trusts a
//! byte of its input: what is malformed is shown as such.

mod capture;
mod tree;

use std::io::{Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tachonym_packet::lp::LpView;
use tachonym_packet::tlv::Reader;
use tachonym_packet::types::NAME;
use tachonym_packet::{Component, Name, NameView, PacketView};
use tachonym_protocol::{ControlParameters, ControlResponse};

use super::COMMON;
use capture::Captured;
use tree::Node;

/// Largest input that is read, in bytes.
const MAX_INPUT_BYTES: u64 = 4 << 30;
/// Largest input that is looked at as text.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// `SafeBag`, which holds a certificate and its key.
const SAFE_BAG: u32 = 128;

const EXAMPLES: &str = "\
Examples:
  tachonym peek /example/hello --packet | tachonym dissect
  tachonym dissect --brief capture.pcap
  tachonym dissect --type nack --name /example capture.pcap";

/// Show a packet, or the packets of a capture, as a readable tree.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A packet as bytes, hexadecimal or base64, or a capture (pcap, pcapng);
    /// `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// What is shown of an input, and how.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Form of the input; detected without it.
    #[arg(long, value_enum)]
    pub input: Option<Form>,
    /// Print one line per packet.
    #[arg(long)]
    pub brief: bool,
    /// Show only packets whose name has this prefix.
    #[arg(long, value_name = "NAME", value_parser = super::name::parse)]
    pub name: Option<Name>,
    /// Show only packets of this kind.
    #[arg(long = "type", value_enum, value_name = "KIND")]
    pub kind: Option<Kind>,
    /// Read these UDP and TCP ports of a capture; may be repeated. Without it, all UDP
    /// ports and TCP 6363 and 9696.
    #[arg(long, value_name = "N")]
    pub port: Vec<u16>,
    /// Print JSON for scripts: one line per packet.
    #[arg(long, help_heading = COMMON)]
    pub json: bool,
}

/// The form of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The bytes themselves.
    Raw,
    /// Hexadecimal digits; blanks are ignored.
    Hex,
    /// Base64; blanks are ignored.
    Base64,
    /// A capture.
    Capture,
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Asks for Data.
    Interest,
    /// Answers an Interest.
    Data,
    /// An Interest that came back.
    Nack,
}

/// Whether the packets of an input are well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// All that were shown are.
    WellFormed,
    /// At least one that was shown is malformed.
    Malformed,
}

/// Runs it. The exit code is 1 if some packet is malformed.
///
/// # Errors
/// If the input cannot be read, or is nothing that can be shown.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let input = read_input(&arguments.file)?;
    let mut out = std::io::stdout().lock();
    let verdict = dissect(&input, &arguments.options, &mut out, &mut |line| {
        super::output::note(format_args!("passed over {line}"));
    })?;
    out.flush()?;
    Ok(match verdict {
        Verdict::WellFormed => ExitCode::SUCCESS,
        Verdict::Malformed => ExitCode::FAILURE,
    })
}

/// Shows `input` on `out`. Skipped parts are reported to `report`, one line per reason, even
/// if the input turns out to be damaged.
///
/// # Errors
/// If `input` is not what `options` say, is a damaged capture, or `out` fails.
pub fn dissect(
    input: &[u8],
    options: &Options,
    out: &mut impl Write,
    report: &mut dyn FnMut(&str),
) -> anyhow::Result<Verdict> {
    let mut shower = Shower {
        options,
        out,
        verdict: Verdict::WellFormed,
    };
    match options.input.unwrap_or_else(|| guess(input)) {
        Form::Capture => {
            let (passed_over, result) =
                capture::read(input, &options.port, &mut |packet| shower.show(&packet));
            for line in passed_over.lines() {
                report(&line);
            }
            result?;
        }
        Form::Raw => shower.show_all(input)?,
        Form::Hex => shower.show_all(&from_hex(input)?)?,
        Form::Base64 => shower.show_all(&from_base64(input)?)?,
    }
    Ok(shower.verdict)
}

fn read_input(file: &PathBuf) -> anyhow::Result<Vec<u8>> {
    let mut input = Vec::new();
    let limit = MAX_INPUT_BYTES + 1;
    if file.as_os_str() == "-" {
        let stdin = std::io::stdin().lock();
        stdin.take(limit).read_to_end(&mut input)
    } else {
        let opened = std::fs::File::open(file);
        let opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
        opened.take(limit).read_to_end(&mut input)
    }
    .with_context(|| format!("cannot read {}", file.display()))?;
    if input.len() as u64 > MAX_INPUT_BYTES {
        bail!("the input is larger than {MAX_INPUT_BYTES} bytes; cut it with editcap");
    }
    if input.is_empty() {
        bail!("the input is empty");
    }
    Ok(input)
}

/// Captures have magic numbers; text is hexadecimal if it can be.
fn guess(input: &[u8]) -> Form {
    if capture::is_capture(input) {
        return Form::Capture;
    }
    if input.len() <= MAX_TEXT_BYTES {
        if from_hex(input).is_ok() {
            return Form::Hex;
        }
        // What decodes to no TLV was no base64.
        if from_base64(input).is_ok_and(|bytes| tree::begins_packet(&bytes)) {
            return Form::Base64;
        }
    }
    Form::Raw
}

fn without_blanks(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    text.retain(|byte| !byte.is_ascii_whitespace());
    text
}

fn from_hex(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let digits = without_blanks(text);
    let digits = digits.strip_prefix(b"0x").unwrap_or(&digits);
    if !digits.len().is_multiple_of(2) {
        bail!("an odd number of hexadecimal digits");
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).context("not hexadecimal");
    digits
        .chunks_exact(2)
        .map(|pair| {
            let byte = digit(pair[0])? * 16 + digit(pair[1])?;
            u8::try_from(byte).context("two digits make a byte")
        })
        .collect()
}

fn from_base64(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::STANDARD, config);
    engine.decode(without_blanks(text)).context("not base64")
}

struct Shower<'a, W: Write> {
    options: &'a Options,
    out: &'a mut W,
    verdict: Verdict,
}

/// A packet as a line of JSON.
#[derive(Serialize)]
struct JsonLine<'a> {
    place: Option<&'a str>,
    bytes: usize,
    kind: &'static str,
    name: Option<String>,
    implicit_digest: Option<&'a str>,
    error: Option<&'a str>,
    tree: &'a [Node],
}

impl<W: Write> Shower<'_, W> {
    /// Shows the packets that lie one behind the other in `bytes`.
    fn show_all(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = match tachonym_packet::tlv::element_len(rest) {
                Ok(Some(len)) if len <= rest.len() => len,
                _ => rest.len(),
            };
            let (wire, tail) = rest.split_at(len);
            rest = tail;
            self.show(&Captured {
                place: None,
                wire: wire.to_vec(),
            })?;
        }
        Ok(())
    }

    fn show(&mut self, packet: &Captured) -> anyhow::Result<()> {
        let wire = &packet.wire;
        let summary = Summary::of(wire);
        if !self.is_wanted(&summary) {
            return Ok(());
        }
        let tree = tree::read(wire);
        if tree.iter().any(Node::is_malformed) || summary.error.is_some() {
            self.verdict = Verdict::Malformed;
        }
        if self.options.json {
            let line = JsonLine {
                place: packet.place.as_deref(),
                bytes: wire.len(),
                kind: summary.kind,
                name: summary.name.as_ref().map(ToString::to_string),
                implicit_digest: summary.digest.as_deref(),
                error: summary.error.as_deref(),
                tree: &tree,
            };
            serde_json::to_writer(&mut *self.out, &line).map_err(std::io::Error::from)?;
            writeln!(self.out)?;
            return Ok(());
        }
        if let Some(place) = &packet.place {
            write!(self.out, "{place}  ")?;
        }
        writeln!(self.out, "{}", summary.line(wire.len()))?;
        if !self.options.brief {
            for node in &tree {
                node.write(&mut self.out, 1)?;
            }
            if let Some(digest) = &summary.digest {
                writeln!(self.out, "         implicit digest: {digest}")?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn is_wanted(&self, summary: &Summary) -> bool {
        let has_kind = match self.options.kind {
            None => true,
            Some(Kind::Interest) => summary.kind == "Interest",
            Some(Kind::Data) => summary.kind == "Data",
            Some(Kind::Nack) => summary.kind == "Nack",
        };
        let has_name = self.options.name.as_ref().is_none_or(|prefix| {
            let name = summary.name.as_ref();
            name.is_some_and(|name| name.starts_with(prefix.view()))
        });
        has_kind && has_name
    }
}

/// The one line about a packet.
struct Summary {
    kind: &'static str,
    name: Option<Name>,
    details: Vec<String>,
    /// Implicit digest of a Data, as a name component.
    digest: Option<String>,
    /// Why a router would refuse it.
    error: Option<String>,
}

impl Summary {
    fn of(wire: &[u8]) -> Self {
        let mut summary = Self {
            kind: "malformed",
            name: None,
            details: Vec::new(),
            digest: None,
            error: None,
        };
        if wire.len() > tree::MAX_TREE_BYTES {
            summary.error = Some("too large to be shown".into());
        } else if let Err(error) = summary.fill(wire) {
            summary.error = Some(error.to_string());
        }
        summary
    }

    fn fill(&mut self, wire: &[u8]) -> Result<(), tachonym_packet::DecodeError> {
        // What is no packet, and yet an element by itself.
        let alone = match Reader::new(wire).read_type()? {
            NAME => Some("Name"),
            ControlResponse::TLV_TYPE => Some("ControlResponse"),
            ControlParameters::TLV_TYPE => Some("ControlParameters"),
            SAFE_BAG => Some("SafeBag"),
            _ => None,
        };
        if let Some(kind) = alone {
            let mut reader = Reader::new(wire);
            reader.read_element()?;
            reader.finish()?;
            self.kind = kind;
            if kind == "Name" {
                self.name = Some(NameView::parse_element(wire)?.to_name());
            }
            return Ok(());
        }
        let frame = LpView::parse(wire)?;
        let headers = frame.headers();
        let Some(fragment) = frame.fragment() else {
            self.kind = "IDLE";
            return Ok(());
        };
        if headers.is_fragmented() {
            self.kind = "fragment";
            let (index, count) = (headers.frag_index, headers.frag_count);
            self.details.push(format!("{} of {count}", index + 1));
            return Ok(());
        }
        match PacketView::parse(fragment)? {
            PacketView::Interest(interest) => {
                self.kind = "Interest";
                if let Some(reason) = headers.nack {
                    self.kind = "Nack";
                    self.details.push(reason.to_string());
                }
                self.name = Some(interest.name().to_name());
                if interest.can_be_prefix() {
                    self.details.push("CanBePrefix".into());
                }
                if interest.must_be_fresh() {
                    self.details.push("MustBeFresh".into());
                }
                if let Some(hops) = interest.hop_limit() {
                    self.details.push(format!("HopLimit={hops}"));
                }
                if interest.has_forwarding_hint() {
                    self.details.push("ForwardingHint".into());
                }
            }
            PacketView::Data(data) => {
                self.kind = "Data";
                self.name = Some(data.name().to_name());
                let digest = Component::implicit_digest(&data.implicit_digest());
                self.digest = Some(digest.to_string());
                let n_bytes = data.content().len();
                self.details.push(format!("{n_bytes} bytes of content"));
            }
        }
        if headers.congestion_mark > 0 {
            self.details.push("congestion mark".into());
        }
        Ok(())
    }

    fn line(&self, n_bytes: usize) -> String {
        let mut line = self.kind.to_owned();
        if let Some(name) = &self.name {
            line.push_str(&format!(" {name}"));
        }
        if let Some(error) = &self.error {
            line.push_str(&format!(": {error}"));
        }
        for detail in &self.details {
            line.push_str(&format!(", {detail}"));
        }
        format!("{line} ({n_bytes} bytes)")
    }
}
