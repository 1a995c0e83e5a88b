//! One Interest on its way, and what came of it.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tachonym_client::{Controller, Endpoint, Reply};
use tachonym_packet::{FaceId, Interest, NackReason, Name};
use tachonym_protocol::{ExplainQuery, FaceQueryFilter, PendingInterest, RecentDrop};
use tachonym_security::Signer;

use super::super::exit;
use super::super::hops::Hops;
use super::Arguments;

/// Time before the end of the Interest at which the router is asked where it went.
const LOOK_BEFORE_END: Duration = Duration::from_millis(300);

/// Longest wait, after the end of the Interest, for what the router said of it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// An Interest that was sent.
pub(super) struct Sent {
    /// What came back.
    pub(super) outcome: Outcome,
    /// Time from sending it.
    pub(super) after: Duration,
    /// The face of the router by which it came; `None`: the router did not say.
    pub(super) face: Option<FaceId>,
    /// If nothing came: the Interest as it was pending just before its end.
    pub(super) pending: Option<PendingInterest>,
    /// The faces that are mentioned here.
    pub(super) faces: Hops,
    /// What this router has on record of dropping it.
    pub(super) drop: Option<RecentDrop>,
}

/// What came back.
pub(super) enum Outcome {
    /// A Data.
    Data {
        name: Name,
        n_bytes: usize,
        freshness_ms: u64,
        signature_type: u64,
    },
    /// A Nack.
    Nack(NackReason),
    /// Nothing within the lifetime.
    Nothing,
}

impl Sent {
    /// What it means to a shell.
    pub(super) const fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Data { .. } => 0,
            Outcome::Nack(_) => exit::NACK,
            Outcome::Nothing => exit::TIMED_OUT,
        }
    }

    /// Whether the router that was asked sent it, and none behind it.
    pub(super) fn is_by_this_router(&self) -> bool {
        matches!(
            self.face,
            Some(FaceId::CONTENT_STORE | FaceId::INTERNAL | FaceId::NULL)
        )
    }
}

/// Sends an Interest and waits for what comes of it. `is_own`: the router is of this kind, and
/// has drops on record.
pub(super) fn send(
    arguments: &Arguments,
    endpoint: &mut Endpoint,
    signer: &Signer,
    is_own: bool,
) -> anyhow::Result<Sent> {
    // Without local fields it stays unknown where an answer came from.
    let _refused = Controller::new(endpoint, signer.clone()).enable_local_fields();
    let interest = Interest {
        can_be_prefix: arguments.can_be_prefix,
        must_be_fresh: arguments.must_be_fresh,
        lifetime_ms: Some(arguments.lifetime_ms),
        ..Interest::new(arguments.name.clone())
    };
    let pending = look_before_end(arguments, signer);
    let asked_at = Instant::now();
    let mut sent = Sent {
        outcome: Outcome::Nothing,
        after: Duration::ZERO,
        face: None,
        pending: None,
        faces: Hops::default(),
        drop: None,
    };
    match endpoint.ask(&interest)? {
        Reply::Data(answer) => {
            let data = answer.data();
            sent.outcome = Outcome::Data {
                name: data.name().to_name(),
                n_bytes: answer.wire().len(),
                freshness_ms: data.freshness_period_ms(),
                signature_type: data.signature_info().typ(),
            };
            sent.after = answer.rtt;
            sent.face = answer.incoming_face_id;
        }
        Reply::Nack {
            reason,
            incoming_face_id,
            after,
        } => {
            sent.outcome = Outcome::Nack(reason);
            sent.after = after;
            sent.face = incoming_face_id;
        }
        Reply::Nothing { after } => {
            sent.after = after;
            if let Ok((pending, faces)) = pending.recv_timeout(MAX_WAIT) {
                sent.pending = Some(pending);
                sent.faces = faces;
            }
        }
    }
    let mut controller = Controller::new(endpoint, signer.clone());
    if let Some(face) = sent.face.filter(|_| !sent.is_by_this_router()) {
        let filter = FaceQueryFilter {
            face_id: Some(face.0),
            ..FaceQueryFilter::default()
        };
        // A face of a program that has just ended is gone.
        let faces = controller.query_faces(&filter)?;
        sent.faces = Hops::of(&mut controller, faces)?;
    }
    if is_own && !matches!(sent.outcome, Outcome::Data { .. }) {
        let drops = controller.recent_drops(&arguments.name)?;
        // After the answer: ages are of the moment in which the router wrote it.
        let since_ms = u64::try_from(asked_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        sent.drop = drops
            .into_iter()
            .find(|it| it.name == arguments.name && it.kind == "Interest" && it.age_ms <= since_ms);
    }
    Ok(sent)
}

/// Asks the router just before the end of the Interest where it went, over another
/// connection, since this one waits for the answer. A router of another kind says nothing,
/// and then the channel is closed.
fn look_before_end(arguments: &Arguments, signer: &Signer) -> Receiver<(PendingInterest, Hops)> {
    let (found, pending) = mpsc::channel();
    let lifetime = Duration::from_millis(arguments.lifetime_ms);
    let query = ExplainQuery {
        name: arguments.name.clone(),
        can_be_prefix: arguments.can_be_prefix,
        must_be_fresh: arguments.must_be_fresh,
        face_id: None,
    };
    let uri = arguments.management.connection.uri();
    let signer = signer.clone();
    // If an answer comes, the program ends without waiting for this thread.
    thread::spawn(move || {
        thread::sleep(lifetime - LOOK_BEFORE_END.min(lifetime / 4));
        let Ok(mut endpoint) = uri.and_then(|uri| Ok(Endpoint::connect(&uri)?)) else {
            return;
        };
        let mut controller = Controller::new(&mut endpoint, signer);
        let found_out = controller.explain(&query).and_then(|explanation| {
            let faces = Hops::of(&mut controller, explanation.faces)?;
            Ok((explanation.pending, faces))
        });
        let Ok((pending, faces)) = found_out else {
            return;
        };
        let mut pending = pending.into_iter();
        let is_same = |it: &PendingInterest| {
            it.can_be_prefix == query.can_be_prefix && it.must_be_fresh == query.must_be_fresh
        };
        if let Some(pending) = pending.find(is_same) {
            // The receiver may have gone.
            let _ = found.send((pending, faces));
        }
    });
    pending
}
