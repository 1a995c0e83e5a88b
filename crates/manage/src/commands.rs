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
        FibRefusalReason::FaceNotFound => (status_code::GONE, "face does not exist"),
        FibRefusalReason::NameTooLong => {
            (status_code::NAME_TOO_LONG, "prefix has too many components")
        }
        FibRefusalReason::TableFull => (status_code::UNAVAILABLE, "FIB is full"),
        FibRefusalReason::TooManyNextHops => {
            (status_code::UNAVAILABLE, "prefix has too many next hops")
        }
        FibRefusalReason::TooManyCollisions => (
            status_code::UNAVAILABLE,
            "hashes of too many prefixes collide; a new start draws another key",
        ),
        FibRefusalReason::OutOfMemory { missing_bytes } => {
            let text = format!("FIB lacks {missing_bytes} bytes of memory");
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

/// A canonical FaceUri out of a command.
fn canonical(uri: Result<FaceUri, FaceUriError>) -> Result<FaceUri, ControlError> {
    match uri {
        Ok(uri) if uri.is_canonical() => Ok(uri),
        Ok(_) => Err(ControlError::BadAddress("FaceUri is not canonical")),
        Err(FaceUriError::UnknownScheme | FaceUriError::TlsUnsupported) => {
            Err(ControlError::UnsupportedProtocol)
        }
        Err(_) => Err(ControlError::BadAddress("malformed FaceUri")),
    }
}

/// What has come of a command to create a face.
pub(crate) enum Creation {
    /// It can be answered.
    Done(ControlResponse),
    /// The face is there and connects; the parameters in effect if it can.
    UnderWay(FaceId, Box<ControlParameters>),
}

pub(crate) fn create_face(
    control: &mut impl ControlPlane,
    parameters: &ControlParameters,
) -> Result<Creation, ControlError> {
    let remote = canonical(parameters.uri.as_deref().unwrap_or_default().parse())?;
    let local = parameters.local_uri.as_deref().map(FaceUri::parse_local);
    let local = local.map(canonical).transpose()?;
    let persistency = parameters
        .face_persistency
        .unwrap_or(FacePersistency::Persistent);
    if persistency == FacePersistency::OnDemand {
        let text = "an on-demand face is made by its peer";
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
    Ok(match control.create_face(&request)? {
        FaceCreated::New(face) => Creation::Done(ok(&created(&face, parameters))),
        FaceCreated::Connecting(face) => {
            Creation::UnderWay(FaceId(face.face_id), Box::new(created(&face, parameters)))
        }
        FaceCreated::Existing(face) => Creation::Done(
            ControlResponse::new(status_code::CONFLICT, "face exists already")
                .with_parameters(&created(&face, parameters)),
        ),
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

/// What a face is like, as the response to an update tells it. NFD's clients
/// refuse a response with a Mask.
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

/// The same with the addresses, as the response to a creation tells it. What the
/// command did not mention of congestion and MTU is left out: python-ndn expects
/// these fields at another place than all others do, and gives up.
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
    // A Capacity in the response tells the client that there are more: it was
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
