//! `tachonym face`: the router's faces.

use std::error::Error;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_client::{CommandError, Controller};
use tachonym_protocol::{
    ControlParameters, FacePersistency, FaceQueryFilter, FaceState, FaceStatus, FaceUri,
    face_flags, status_code,
};

use super::failure::Failure;
use super::persistency::Persistency;
use super::programs::Programs;
use super::{
    FaceArgument, Management, Switch, asked, canonical, drops, find_face, output, own, text,
};

const EXAMPLES: &str = "\
Examples:
  tachonym face list --scheme udp4
  tachonym face create tcp4://192.0.2.1:6363 --persistency permanent
  tachonym face show 262
  tachonym face destroy udp4://192.0.2.1:6363

An on-demand face is made by its peer and closed when it is idle or the peer disconnects. A
persistent face is kept until it is destroyed or its connection fails. A permanent face is
kept until it is destroyed; it connects again by itself. Routes end with their face.";

/// List, create, change and destroy faces.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List faces with their state, their peer and what they received and sent.
    List {
        /// Only faces whose remote or local address has this scheme, such as udp4.
        #[arg(long)]
        scheme: Option<String>,
        /// Only faces with this remote address.
        #[arg(long, value_name = "FACEURI")]
        remote: Option<FaceUri>,
    },
    /// Show one face: address, state, options, packets, drops.
    Show {
        /// Number or remote address.
        face: FaceArgument,
    },
    /// Create a face, or show the one that exists.
    Create {
        /// Remote address, as in udp4://192.0.2.1:6363.
        #[arg(value_parser = parse_remote)]
        remote: FaceUri,
        /// Local address; without a port, the system chooses one.
        #[arg(long, value_name = "FACEURI", value_parser = FaceUri::parse_local)]
        local: Option<FaceUri>,
        #[command(flatten)]
        link: Link,
    },
    /// Change a face.
    Update {
        /// Number or remote address.
        face: FaceArgument,
        #[command(flatten)]
        link: Link,
    },
    /// Destroy a face; its routes go with it.
    Destroy {
        /// Number or remote address.
        face: FaceArgument,
    },
    /// Print events of faces as they happen: created, up, down, destroyed.
    Events {
        /// End after this many events.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
    },
}

fn parse_remote(text: &str) -> Result<FaceUri, Box<dyn Error + Send + Sync>> {
    let remote: FaceUri = text.parse()?;
    refuse_group(&remote)?;
    Ok(remote)
}

/// The protocol makes no faces to multicast groups.
fn refuse_group(remote: &FaceUri) -> Result<(), Failure> {
    match remote.is_multicast() {
        true => Err(Failure::MulticastGroup(remote.clone())),
        false => Ok(()),
    }
}

#[derive(Args)]
struct Link {
    /// How long the face lives.
    #[arg(long)]
    persistency: Option<Persistency>,
    /// Largest datagram, in bytes.
    #[arg(long, value_name = "N")]
    mtu_bytes: Option<u64>,
    /// Retransmit lost packets.
    #[arg(long, value_name = "SWITCH")]
    reliability: Option<Switch>,
    /// Mark packets while the link is congested.
    #[arg(long, value_name = "SWITCH")]
    congestion_marking: Option<Switch>,
    /// Accept and write the NDNLPv2 fields for local applications.
    #[arg(long, value_name = "SWITCH")]
    local_fields: Option<Switch>,
    /// How long the queue must exceed its threshold before the first mark, in
    /// milliseconds.
    #[arg(long, value_name = "N")]
    congestion_interval_ms: Option<u64>,
    /// Queue length that counts as congestion, in bytes.
    #[arg(long, value_name = "N")]
    congestion_threshold_bytes: Option<u64>,
}

impl Link {
    fn persistency(&self) -> Option<FacePersistency> {
        self.persistency.map(Into::into)
    }

    fn interval_ns(&self) -> Option<u64> {
        self.congestion_interval_ms
            .map(|ms| ms.saturating_mul(1_000_000))
    }

    fn switches(&self) -> [(u64, &'static str, Option<Switch>); 3] {
        [
            (
                face_flags::LP_RELIABILITY,
                "--reliability",
                self.reliability,
            ),
            (
                face_flags::CONGESTION_MARKING,
                "--congestion-marking",
                self.congestion_marking,
            ),
            (
                face_flags::LOCAL_FIELDS,
                "--local-fields",
                self.local_fields,
            ),
        ]
    }

    fn parameters(&self) -> ControlParameters {
        let mut parameters = ControlParameters {
            face_persistency: self.persistency(),
            mtu_bytes: self.mtu_bytes,
            base_congestion_marking_interval_ns: self.interval_ns(),
            default_congestion_threshold_bytes: self.congestion_threshold_bytes,
            ..ControlParameters::default()
        };
        for (bit, _, switch) in self.switches() {
            if let Some(switch) = switch {
                parameters.set_flag(bit, switch.is_on());
            }
        }
        parameters
    }

    /// Reports the properties of `face` that differ from those asked for.
    fn compare(&self, face: &FaceStatus) {
        let persistency = Some(face.face_persistency);
        asked::compare("--persistency", self.persistency(), persistency);
        asked::compare("--mtu-bytes", self.mtu_bytes, face.mtu_bytes);
        for (bit, option, switch) in self.switches() {
            let taken = Switch::of(face.flags & bit != 0);
            asked::compare(option, switch, Some(taken));
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        asked::compare(
            "--congestion-interval-ms",
            self.interval_ns().map(ms),
            face.base_congestion_marking_interval_ns.map(ms),
        );
        asked::compare(
            "--congestion-threshold-bytes",
            self.congestion_threshold_bytes,
            face.default_congestion_threshold_bytes,
        );
    }
}

/// Runs it.
///
/// # Errors
/// If the router refuses or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let management = &arguments.management;
    management.with(|controller| match &arguments.command {
        Command::List { scheme, remote } => {
            let filter = FaceQueryFilter {
                uri_scheme: scheme.clone(),
                uri: canonical_text(remote.as_ref())?,
                ..FaceQueryFilter::default()
            };
            let mut faces = match filter == FaceQueryFilter::default() {
                true => controller.faces()?,
                false => controller.query_faces(&filter)?,
            };
            faces.sort_by_key(|face| face.face_id);
            let programs = Programs::of(controller, &faces)?;
            let value = faces.iter().map(|face| with_program(face, &programs));
            let value = Value::Array(value.collect());
            management.print(&value, || list(&faces, &programs))
        }
        Command::Show { face } => {
            let face = status_of(controller, face)?;
            let version = controller.general_status()?.nfd_version;
            let drops = own::dataset(&version, || controller.drops())?;
            let programs = Programs::of(controller, std::slice::from_ref(&face))?;
            let of_face = Some(face.face_id);
            let mut value = with_program(&face, &programs);
            if let Some(drops) = &drops {
                value["drops"] = drops::to_json(drops, of_face);
            }
            management.print(&value, || {
                let mut rows = rows(&face);
                let peer = programs.peer(&face);
                if peer != face.uri {
                    rows.insert(2, vec!["program".into(), peer]);
                }
                rows.extend(drops.iter().flat_map(|drops| drops::rows(drops, of_face)));
                text::columns(&rows)
            })
        }
        Command::Create {
            remote,
            local,
            link,
        } => {
            let (id, existed) = create(controller, remote, local.as_ref(), link.parameters())?;
            output::warning(controller);
            let face = status_of(controller, &FaceArgument::Id(id))?;
            link.compare(&face);
            let mut value = to_json(&face);
            value["existed"] = existed.into();
            management.print(&value, || {
                let what = match existed {
                    true => "this face existed before",
                    false => "face created",
                };
                format!("{what}\n{}", show(&face))
            })
        }
        Command::Update { face, link } => {
            asked::for_a_change(&link.parameters())?;
            let parameters = ControlParameters {
                face_id: Some(find_face(controller, face)?),
                ..link.parameters()
            };
            let id = parameters.face_id.unwrap_or_default();
            controller.command("faces", "update", &parameters)?;
            let face = status_of(controller, &FaceArgument::Id(id))?;
            link.compare(&face);
            management.print(&to_json(&face), || show(&face))
        }
        Command::Destroy { face } => {
            // The protocol accepts a number without a face; a mistyped one is an error here.
            let id = status_of(controller, face)?.face_id;
            let parameters = ControlParameters {
                face_id: Some(id),
                ..ControlParameters::default()
            };
            controller.command("faces", "destroy", &parameters)?;
            management.print(&json!({ "face_id": id }), || {
                format!("face {id} destroyed\n")
            })
        }
        Command::Events { count } => events(controller, management, *count),
    })
}

/// The face to `remote`, and whether it existed before.
pub(super) fn create(
    controller: &mut Controller<'_>,
    remote: &FaceUri,
    local: Option<&FaceUri>,
    link: ControlParameters,
) -> anyhow::Result<(u64, bool)> {
    let remote = canonical(remote)?;
    refuse_group(&remote)?;
    let parameters = ControlParameters {
        uri: Some(remote.to_string()),
        local_uri: canonical_text(local)?,
        ..link
    };
    match controller.command("faces", "create", &parameters) {
        Ok(made) => Ok((made.face_id.context("the router names no face")?, false)),
        Err(CommandError::Refused {
            code: status_code::CONFLICT,
            parameters,
            ..
        }) if parameters.face_id.is_some() => Ok((parameters.face_id.unwrap_or_default(), true)),
        Err(error) => Err(error.into()),
    }
}

/// Reports if a face that existed before has another persistency than asked for.
pub(super) fn compare_persistency(
    controller: &mut Controller<'_>,
    face: u64,
    asked: Persistency,
) -> anyhow::Result<()> {
    let has = status_of(controller, &FaceArgument::Id(face))?.face_persistency;
    let asked = FacePersistency::from(asked);
    if has != asked {
        output::note(format_args!(
            "face {face} existed before and is {has}; `tachonym face update {face} \
             --persistency {asked}` changes it"
        ));
    }
    Ok(())
}

/// The text of an address, its host looked up.
fn canonical_text(uri: Option<&FaceUri>) -> anyhow::Result<Option<String>> {
    uri.map(|uri| canonical(uri).map(|uri| uri.to_string()))
        .transpose()
}

fn status_of(controller: &mut Controller<'_>, face: &FaceArgument) -> anyhow::Result<FaceStatus> {
    let id = find_face(controller, face)?;
    let filter = FaceQueryFilter {
        face_id: Some(id),
        ..FaceQueryFilter::default()
    };
    controller
        .query_faces(&filter)?
        .pop()
        .with_context(|| format!("no face {id}; `tachonym face list` shows all faces"))
}

fn events(
    controller: &mut Controller<'_>,
    management: &Management,
    count: Option<u64>,
) -> anyhow::Result<()> {
    let mut seen = None;
    for _ in 0..count.unwrap_or(u64::MAX) {
        let Some(event) = controller.next_face_event(&mut seen, None)? else {
            break;
        };
        if management.json {
            let value = json!({
                "kind": event.kind.as_str(),
                "face_id": event.face_id,
                "remote": event.uri,
                "local": event.local_uri,
            });
            output::line(value)?;
        } else {
            output::line(format_args!(
                "{} face {}: {} from {}",
                event.kind, event.face_id, event.uri, event.local_uri
            ))?;
        }
    }
    Ok(())
}

fn flag_names(flags: u64) -> Vec<&'static str> {
    [
        (face_flags::LOCAL_FIELDS, "local-fields"),
        (face_flags::LP_RELIABILITY, "reliability"),
        (face_flags::CONGESTION_MARKING, "congestion-marking"),
    ]
    .into_iter()
    .filter_map(|(bit, name)| (flags & bit != 0).then_some(name))
    .collect()
}

fn with_program(face: &FaceStatus, programs: &Programs) -> Value {
    let mut value = to_json(face);
    value["program"] = programs.to_json(face.face_id);
    value
}

fn list(faces: &[FaceStatus], programs: &Programs) -> String {
    let groups = ["", "", "", "", "", "RECEIVED", "", "", "SENT"];
    let heads = [
        "FACE",
        "STATE",
        "REMOTE",
        "LOCAL",
        "PERSISTENCY",
        "INTERESTS",
        "DATA",
        "NACKS",
        "INTERESTS",
        "DATA",
        "NACKS",
    ];
    let mut rows = vec![
        groups.map(String::from).to_vec(),
        heads.map(String::from).to_vec(),
    ];
    for face in faces {
        rows.push(vec![
            face.face_id.to_string(),
            face.state.map_or("-", FaceState::as_str).to_owned(),
            programs.peer(face),
            face.local_uri.clone(),
            face.face_persistency.to_string(),
            face.n_in_interests.to_string(),
            face.n_in_data.to_string(),
            face.n_in_nacks.to_string(),
            face.n_out_interests.to_string(),
            face.n_out_data.to_string(),
            face.n_out_nacks.to_string(),
        ]);
    }
    text::columns(&rows)
}

fn show(face: &FaceStatus) -> String {
    text::columns(&rows(face))
}

fn rows(face: &FaceStatus) -> Vec<Vec<String>> {
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    vec![
        row("face", face.face_id.to_string()),
        row("remote", face.uri.clone()),
        row("local", face.local_uri.clone()),
        row("state", or_none(face.state.map(|state| state.to_string()))),
        row("scope", face.face_scope.to_string()),
        row("persistency", face.face_persistency.to_string()),
        row("link type", face.link_type.to_string()),
        row("flags", flag_names(face.flags).join(", ")),
        row("MTU", or_none(face.mtu_bytes.map(|n| format!("{n} bytes")))),
        row(
            "expires in",
            or_none(face.expiration_period_ms.map(|n| format!("{n} ms"))),
        ),
        row(
            "congestion mark",
            format!(
                "after {} with more than {} waiting",
                or_none(
                    face.base_congestion_marking_interval_ns
                        .map(|ns| format!("{} ms", ns / 1_000_000))
                ),
                or_none(
                    face.default_congestion_threshold_bytes
                        .map(|n| format!("{n} bytes"))
                ),
            ),
        ),
        row(
            "received",
            format!(
                "{} Interests, {} Data, {} Nacks, {}",
                face.n_in_interests,
                face.n_in_data,
                face.n_in_nacks,
                text::bytes(face.n_in_bytes)
            ),
        ),
        row(
            "sent",
            format!(
                "{} Interests, {} Data, {} Nacks, {}",
                face.n_out_interests,
                face.n_out_data,
                face.n_out_nacks,
                text::bytes(face.n_out_bytes)
            ),
        ),
    ]
}

fn to_json(face: &FaceStatus) -> Value {
    json!({
        "face_id": face.face_id,
        "remote": face.uri,
        "local": face.local_uri,
        "state": face.state.map(FaceState::as_str),
        "scope": face.face_scope.as_str(),
        "persistency": face.face_persistency.as_str(),
        "link_type": face.link_type.as_str(),
        "flags": flag_names(face.flags),
        "mtu_bytes": face.mtu_bytes,
        "expires_ms": face.expiration_period_ms,
        "congestion_interval_ns": face.base_congestion_marking_interval_ns,
        "congestion_threshold_bytes": face.default_congestion_threshold_bytes,
        "in": {
            "interests": face.n_in_interests,
            "data": face.n_in_data,
            "nacks": face.n_in_nacks,
            "bytes": face.n_in_bytes,
        },
        "out": {
            "interests": face.n_out_interests,
            "data": face.n_out_data,
            "nacks": face.n_out_nacks,
            "bytes": face.n_out_bytes,
        },
    })
}
