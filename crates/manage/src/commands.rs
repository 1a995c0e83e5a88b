//! What the commands on faces, FIB, content store, strategies and workers do.
//!
//! Owns the way from checked parameters to calls of the [`ControlPlane`] and
//! back to a response with the parameters in effect. Commands on the RIB, which
//! go through state of the manager's own, are in `manager`.

use tachonym_packet::{FaceId, Name};
use tachonym_protocol::{
    ControlParameters, ControlResponse, FacePersistency, FaceStatus, FaceUri, FaceUriError,
    cs_flags, status_code,
};

use crate::control::{
    ControlError, ControlPlane, CsConfig, Erasure, FaceChanges, FaceCreateRequest, FaceCreated,
    FibChange, FibRefusalReason, LinkOptions, WorkersChange,
};
use crate::verbs::WorkersVerb;

/// Characters of an unknown scheme that a response repeats.
const MAX_SHOWN_SCHEME: usize = 16;

/// FaceIds below this one belong to the router itself.
pub(crate) const FIRST_FACE_ID: FaceId = FaceId(256);

/// Most packets that one `cs/erase` takes out, so that it does not hold up the
/// packets of others.
pub(crate) const MAX_ERASE_PKTS: u64 = 1024;

/// 200, with the parameters in effect.
pub(crate) fn ok(parameters: &ControlParameters) -> ControlResponse {
    ControlResponse::new(status_code::OK, "OK").with_parameters(parameters)
}

impl From<ControlError> for ControlResponse {
    fn from(error: ControlError) -> Self {
        let response = Self::new(error.status_code(), error.to_string());
        match error {
            ControlError::Conflict(refused) => response.with_parameters(&refused),
            _ => response,
        }
    }
}

/// The response to a next hop that the FIB did not take.
pub(crate) fn refused(reason: FibRefusalReason) -> ControlResponse {
    let (code, text) = match reason {
        FibRefusalReason::FaceNotFound => (
            status_code::GONE,
            "no such face, or it is gone; `tachonym face list` shows those that exist",
        ),
        FibRefusalReason::NameTooLong => (
            status_code::NAME_TOO_LONG,
            "the prefix has too many components",
        ),
        FibRefusalReason::TableFull => (
            status_code::UNAVAILABLE,
            "the FIB is full; raise tables.routes",
        ),
        FibRefusalReason::TooManyNextHops => (
            status_code::UNAVAILABLE,
            "the prefix has too many next hops; remove one first",
        ),
        FibRefusalReason::TooManyCollisions => (
            status_code::UNAVAILABLE,
            "the hashes of too many prefixes collide; restart the router, which then hashes \
             with another key",
        ),
        FibRefusalReason::OutOfMemory { missing_bytes } => {
            let text = format!(
                "the system has no more memory for the FIB: {missing_bytes} bytes are missing"
            );
            return ControlResponse::new(status_code::UNAVAILABLE, &text);
        }
    };
    ControlResponse::new(code, text)
}

/// The face that a command means: 0 or none is the one it came in by.
pub(crate) fn meant_face(parameters: &ControlParameters, incoming: FaceId) -> FaceId {
    match parameters.face_id {
        None | Some(0) => incoming,
        Some(id) => FaceId(id),
    }
}

/// The canonical FaceUri of a command whose parameter `key` is `text`.
fn canonical(
    key: &str,
    text: &str,
    uri: Result<FaceUri, FaceUriError>,
) -> Result<FaceUri, ControlError> {
    match uri {
        Ok(uri) if uri.is_canonical() => Ok(uri),
        Ok(_) => Err(ControlError::BadAddress(format!(
            "{key} {text:?} has a host name, which the router does not look up; send an \
             address, as in udp4://192.0.2.1:6363"
        ))),
        Err(FaceUriError::UnknownScheme) => {
            let scheme = text.split("://").next().unwrap_or_default();
            // A peer chose it: nothing of it may control a terminal or fill the log.
            let scheme: String = scheme.chars().take(MAX_SHOWN_SCHEME).collect();
            let scheme = scheme.escape_debug().to_string();
            Err(ControlError::UnsupportedProtocol(scheme))
        }
        Err(FaceUriError::TlsUnsupported) => Err(ControlError::UnsupportedProtocol("wss".into())),
        Err(error) => Err(ControlError::BadAddress(format!("{key} {text:?}: {error}"))),
    }
}

/// The outcome of a command to create a face.
pub(crate) struct Creation {
    /// The face, new or found.
    pub(crate) face: FaceStatus,
    /// The response; `None`: the face is connecting, and the command is answered when it
    /// is connected or has failed.
    pub(crate) response: Option<ControlResponse>,
    /// The parameters in effect if it connects.
    pub(crate) effective: ControlParameters,
}

pub(crate) fn create_face(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
) -> Result<Creation, ControlError> {
    let uri = parameters.uri.as_deref().unwrap_or_default();
    let remote = canonical("Uri", uri, uri.parse())?;
    let local = parameters.local_uri.as_deref();
    let local = local.map(|text| canonical("LocalUri", text, FaceUri::parse_local(text)));
    let local = local.transpose()?;
    let persistency = parameters
        .face_persistency
        .unwrap_or(FacePersistency::Persistent);
    if persistency == FacePersistency::OnDemand {
        let text = "no command creates an on-demand face: the router creates it when its peer \
                    sends; ask for a persistent or permanent one";
        return Err(ControlError::Unsupported(text));
    }
    if matches!(remote, FaceUri::Unix(_)) {
        // The router may reach sockets that the sender of the command may not.
        let text = "a face to a Unix socket is not created by command; \
                    use [[face]] in the configuration file";
        return Err(ControlError::Unsupported(text));
    }
    let request = FaceCreateRequest {
        remote,
        local,
        persistency,
        options: LinkOptions::from_parameters(parameters),
    };
    let outcome = control.create_face(&request)?;
    let (FaceCreated::New(face) | FaceCreated::Connecting(face) | FaceCreated::Existing(face)) =
        &outcome;
    let effective = created(face, parameters);
    let response = match &outcome {
        FaceCreated::New(_) => Some(ok(&effective)),
        FaceCreated::Connecting(_) => None,
        FaceCreated::Existing(face) => {
            let text = format!(
                "a face to {} exists already: number {}",
                face.uri, face.face_id
            );
            Some(ControlResponse::new(status_code::CONFLICT, text).with_parameters(&effective))
        }
    };
    Ok(Creation {
        face: face.clone(),
        response,
        effective,
    })
}

pub(crate) fn update_face(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
    incoming: FaceId,
) -> Result<ControlResponse, ControlError> {
    let changes = FaceChanges {
        persistency: parameters.face_persistency,
        options: LinkOptions::from_parameters(parameters),
    };
    let face = control.update_face(meant_face(parameters, incoming), &changes)?;
    Ok(ok(&properties(&face)))
}

/// The properties of a face for the response to an update. NFD's clients refuse a
/// response with a Mask.
fn properties(face: &FaceStatus) -> ControlParameters {
    ControlParameters {
        face_id: Some(face.face_id),
        flags: Some(face.flags),
        face_persistency: Some(face.face_persistency),
        base_congestion_marking_interval_ns: face.base_congestion_marking_interval_ns,
        default_congestion_threshold_bytes: face.default_congestion_threshold_bytes,
        mtu_bytes: face.mtu_bytes,
        ..ControlParameters::default()
    }
}

/// The properties and addresses of a face for the response to a creation. Fields on
/// congestion and MTU are left out unless the command had them: python-ndn expects these
/// fields in another place than all other clients, and fails to parse the response.
fn created(face: &FaceStatus, asked: &ControlParameters) -> ControlParameters {
    let all = properties(face);
    ControlParameters {
        uri: Some(face.uri.clone()),
        local_uri: Some(face.local_uri.clone()),
        base_congestion_marking_interval_ns: asked
            .base_congestion_marking_interval_ns
            .and(all.base_congestion_marking_interval_ns),
        default_congestion_threshold_bytes: asked
            .default_congestion_threshold_bytes
            .and(all.default_congestion_threshold_bytes),
        mtu_bytes: asked.mtu_bytes.and(all.mtu_bytes),
        ..all
    }
}

pub(crate) fn add_next_hop(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
    incoming: FaceId,
) -> Result<ControlResponse, ControlError> {
    let name = command_name(parameters);
    let face = meant_face(parameters, incoming);
    let cost = parameters.cost.unwrap_or(0);
    let effective = ControlParameters {
        name: Some(name.clone()),
        face_id: Some(face.0),
        cost: Some(cost),
        ..ControlParameters::default()
    };
    let change = FibChange::Add {
        name,
        face,
        cost,
        distance: 0,
    };
    Ok(match control.fib_apply(vec![change])?.first() {
        Some(refusal) => refused(refusal.reason),
        None => ok(&effective),
    })
}

pub(crate) fn remove_next_hop(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
    incoming: FaceId,
) -> Result<ControlResponse, ControlError> {
    let name = command_name(parameters);
    let face = meant_face(parameters, incoming);
    let effective = ControlParameters {
        name: Some(name.clone()),
        face_id: Some(face.0),
        ..ControlParameters::default()
    };
    // A refusal says that there was nothing to remove.
    control.fib_apply(vec![FibChange::Remove { name, face }])?;
    Ok(ok(&effective))
}

pub(crate) fn configure_cs(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
) -> Result<ControlResponse, ControlError> {
    let info = control.cs_config(&CsConfig {
        capacity_pkts: parameters.capacity,
        admit: parameters.flag(cs_flags::ENABLE_ADMIT),
        serve: parameters.flag(cs_flags::ENABLE_SERVE),
        policy: parameters.cs_policy.clone(),
    })?;
    Ok(ok(&ControlParameters {
        capacity: Some(info.capacity),
        flags: Some(info.flags),
        ..ControlParameters::default()
    }))
}

pub(crate) fn erase_cs(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
) -> Result<ControlResponse, ControlError> {
    let name = command_name(parameters);
    let wanted = parameters.count.unwrap_or(u64::MAX);
    let erasure = match parameters.count {
        Some(count) => Erasure::UpTo(count.min(MAX_ERASE_PKTS)),
        None => Erasure::All {
            at_once: MAX_ERASE_PKTS,
        },
    };
    let erased = control.cs_erase(&name, erasure)?;
    // A Capacity in the response means that there are more: it was
    // this limit that stopped the erasure, not the client's.
    let is_cut = erased.has_more && wanted > MAX_ERASE_PKTS;
    Ok(ok(&ControlParameters {
        name: Some(name),
        count: Some(erased.n_erased),
        capacity: is_cut.then_some(MAX_ERASE_PKTS),
        ..ControlParameters::default()
    }))
}

pub(crate) fn set_strategy(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
) -> Result<ControlResponse, ControlError> {
    let name = command_name(parameters);
    let wanted = parameters.strategy.clone().unwrap_or_default();
    let chosen = control.strategy_set(&name, &wanted)?;
    Ok(ok(&ControlParameters {
        name: Some(name),
        strategy: Some(chosen),
        ..ControlParameters::default()
    }))
}

pub(crate) fn unset_strategy(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
) -> Result<ControlResponse, ControlError> {
    let name = command_name(parameters);
    control.strategy_unset(&name)?;
    Ok(ok(&ControlParameters {
        name: Some(name),
        ..ControlParameters::default()
    }))
}

pub(crate) fn change_workers(
    control: &mut impl ControlPlane,
    verb: WorkersVerb,
    parameters: &ControlParameters,
) -> Result<ControlResponse, ControlError> {
    let name = command_name(parameters);
    let worker = parameters.worker.unwrap_or_default();
    control.change_workers(&match verb {
        WorkersVerb::Freeze => WorkersChange::Freeze,
        WorkersVerb::Thaw => WorkersChange::Thaw,
        WorkersVerb::Pin => WorkersChange::Pin { name, worker },
        WorkersVerb::Unpin => WorkersChange::Unpin { name },
        WorkersVerb::Add => WorkersChange::Add,
        WorkersVerb::Remove => WorkersChange::Remove { worker },
    })?;
    Ok(ok(parameters))
}

/// The Name of a command whose parameters were found to have one.
pub(crate) fn command_name(parameters: &ControlParameters) -> Name {
    parameters.name.clone().unwrap_or_default()
}
