//! An Interest without an answer, as a tool reports it: which Interest, whether this router
//! or one behind it refused, and what to do.

use std::time::Duration;

use tachonym_client::{Controller, Endpoint, ExpressError, Refuser, find_refuser};
use tachonym_packet::{FaceId, Interest, NackReason, Name};
use tachonym_protocol::{FaceQueryFilter, FaceUri};
use tachonym_security::Signer;

use super::{exit, text};

/// Why an Interest has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// Neither Data nor Nack came.
    #[error(
        "no answer to {name}{}: `tachonym explain {name}` shows what the router does with it",
        within(*.waited)
    )]
    TimedOut {
        /// Of the Interest.
        name: Name,
        /// How long the tool waited, if it waited for this Interest alone.
        waited: Option<Duration>,
    },
    /// The router that the tool is connected to has no route.
    #[error(
        "this router refused {name}: no-route (no route leads to it, or only back to this \
         program); add one with `tachonym route add {about} FACEURI`; \
         `tachonym explain {name}` shows more"
    )]
    NoRoute {
        /// Of the Interest.
        name: Name,
        /// The prefix that lacks a route.
        about: Name,
    },
    /// The router that the tool is connected to refused for another reason.
    #[error(
        "this router refused {name}: {reason}{}; `tachonym explain {name}` shows more",
        meaning(*.reason)
    )]
    Here {
        /// Of the Interest.
        name: Name,
        /// Of the Nack.
        reason: NackReason,
    },
    /// A router or application behind that router refused.
    #[error(
        "{peer} refused {name}: {reason}{}; run `tachonym explain {name}` there",
        meaning(*.reason)
    )]
    Behind {
        /// Of the Interest.
        name: Name,
        /// Of the Nack.
        reason: NackReason,
        /// Who refused, in words.
        peer: String,
    },
    /// Which router refused is unknown.
    #[error(
        "{name} was refused, by this router or by one behind it: {reason}{}; \
         `tachonym explain {name}` shows what this router does with it",
        meaning(*.reason)
    )]
    Somewhere {
        /// Of the Interest.
        name: Name,
        /// Of the Nack.
        reason: NackReason,
    },
}

impl Unanswered {
    /// What it means to a shell.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::TimedOut { .. } => exit::TIMED_OUT,
            _ => exit::NACK,
        }
    }
}

fn within(waited: Option<Duration>) -> String {
    waited.map_or_else(String::new, |waited| {
        format!(" within {}", text::short_duration(waited))
    })
}

/// What a reason means, where the word does not say it.
const fn meaning(reason: NackReason) -> &'static str {
    match reason {
        NackReason::Congestion => " (a link or a table is full; try again later)",
        NackReason::Duplicate => " (it saw this Interest before; a loop of routes?)",
        NackReason::NoRoute => " (no route leads to it)",
        NackReason::None => " (no reason given)",
        NackReason::Other(_) => "",
    }
}

/// Why `interest`, retransmitted `n_retries` times, has no answer, by the `error` of
/// expressing it. A route that is missing is missing for the prefix `about`. After a Nack the
/// Interest is sent once more, to learn who refused it.
pub(super) fn explain(
    endpoint: &mut Endpoint,
    (interest, n_retries): (&Interest, u32),
    about: &Name,
    error: ExpressError,
) -> anyhow::Error {
    let name = interest.name.clone();
    match error {
        ExpressError::TimedOut => {
            let lifetime = interest.lifetime_ms.map(Duration::from_millis);
            let waited = lifetime.map(|it| it.saturating_mul(n_retries.saturating_add(1)));
            Unanswered::TimedOut { name, waited }.into()
        }
        ExpressError::Nack(reason) => refused(endpoint, interest, about, reason).into(),
        other => anyhow::Error::new(other).context(format!("cannot ask for {name}")),
    }
}

/// Why `interest` came back as a Nack.
pub(super) fn refused(
    endpoint: &mut Endpoint,
    interest: &Interest,
    about: &Name,
    reason: NackReason,
) -> Unanswered {
    let (name, about) = (interest.name.clone(), about.clone());
    match find_refuser(endpoint, interest) {
        None => Unanswered::Somewhere { name, reason },
        Some((Refuser::ThisRouter, NackReason::NoRoute)) => Unanswered::NoRoute { name, about },
        Some((Refuser::ThisRouter, reason)) => Unanswered::Here { name, reason },
        Some((Refuser::Behind(face), reason)) => Unanswered::Behind {
            name,
            reason,
            peer: peer(endpoint, face),
        },
    }
}

/// Who is behind a face of the router, in words.
fn peer(endpoint: &mut Endpoint, face: FaceId) -> String {
    let filter = FaceQueryFilter {
        face_id: Some(face.0),
        ..FaceQueryFilter::default()
    };
    let faces = Controller::new(endpoint, Signer::digest()).query_faces(&filter);
    let uri = faces
        .ok()
        .and_then(|mut faces| faces.pop())
        .map(|it| it.uri);
    match uri {
        Some(uri) if matches!(uri.parse(), Ok(FaceUri::Fd(_))) => {
            format!("the application behind face {face}")
        }
        Some(uri) => format!("the router behind face {face}, {uri},"),
        None => format!("the router behind face {face}"),
    }
}
