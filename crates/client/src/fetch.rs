//! Fetching a segmented object over an endpoint.
//!
//! Owns the loop between [`Fetcher`], which decides what to ask for, and the
//! [`Endpoint`]; puts segments in order. Memory is bounded by how far the
//! fetcher runs ahead of the first missing segment.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use tachonym_face::monotonic_now;
use tachonym_packet::types::{component, content_type, signature_type};
use tachonym_packet::{Component, DataView, Interest, MonoNs, NackReason, Name};
use tachonym_security::{Reject, VerifyingKey, verify_data};

use crate::endpoint::{Endpoint, EndpointError, Received};
use crate::fetcher::{Arrival, FetchCounters, FetchLimits, Fetcher, SEGMENT_LIFETIME};

/// Time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How to fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchOptions {
    /// Window and retries.
    pub limits: FetchLimits,
    /// Lifetime of each Interest.
    pub lifetime: Duration,
    /// Time without any new segment after which the fetch gives up.
    pub patience: Duration,
}

impl Default for FetchOptions {
    /// Lifetime 4 s, patience 30 s.
    fn default() -> Self {
        Self {
            limits: FetchLimits::default(),
            lifetime: SEGMENT_LIFETIME,
            patience: Duration::from_secs(30),
        }
    }
}

/// Why a fetch failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No Interest for a segment was answered.
    #[error("segment {segment} did not arrive{}", nack.map(|n| format!(": {n}")).unwrap_or_default())]
    GaveUp {
        /// The segment.
        segment: u64,
        /// Reason of the last Nack, if one came.
        nack: Option<NackReason>,
    },
    /// The signature of a segment is wrong or not trusted.
    #[error("segment {segment}: {reason}")]
    Untrusted {
        /// The segment.
        segment: u64,
        /// What is wrong with it.
        reason: Reject,
    },
    /// The producer answered that the segment does not exist.
    #[error("the producer has no segment {segment}")]
    NoSuchSegment {
        /// The segment.
        segment: u64,
    },
    /// The content could not be written.
    #[error("cannot write the content")]
    Sink(#[from] io::Error),
    /// The connection to the router failed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// Progress of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchProgress {
    /// Bytes of content that were written.
    pub n_bytes: u64,
    /// Segments that were written.
    pub n_segments: u64,
    /// Number of segments, once it is known.
    pub of_segments: Option<u64>,
    /// Segments that may be in flight now.
    pub window: usize,
}

/// Figures of a completed fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchReport {
    /// Bytes of content.
    pub n_bytes: u64,
    /// Segments.
    pub n_segments: u64,
    /// From the first Interest to the last Data.
    pub duration: Duration,
    /// Smoothed round-trip time at the end.
    pub rtt: Option<Duration>,
    /// Interests, losses, marks.
    pub counters: FetchCounters,
}

/// Checks the signature of `data` if it is a plain digest, which needs no key.
///
/// # Errors
/// If it is one, and wrong.
pub fn check_digest(data: &DataView<'_>) -> Result<(), Reject> {
    if data.signature_info().typ() == signature_type::DIGEST_SHA256 {
        Ok(verify_data(data, &VerifyingKey::digest())?)
    } else {
        Ok(())
    }
}

/// Fetches the segments under `prefix`, which includes the version. `verify` checks each
/// ([`check_digest`] at least), `sink` gets their contents in order, and `progress` is called
/// every 100 ms. The first segment is requested alone, since it usually states the final one.
///
/// # Errors
/// If a segment does not arrive or is not trusted, or `sink` fails.
pub fn fetch(
    endpoint: &mut Endpoint,
    prefix: &Name,
    options: &FetchOptions,
    mut verify: impl FnMut(&DataView<'_>) -> Result<(), Reject>,
    sink: impl FnMut(&[u8]) -> io::Result<()>,
    mut progress: impl FnMut(&FetchProgress),
) -> Result<FetchReport, FetchError> {
    let started = endpoint.now();
    let mut fetcher = Fetcher::new(options.limits);
    let mut in_order = InOrder::new(sink);
    let mut interest = Interest {
        lifetime_ms: Some(u64::try_from(options.lifetime.as_millis()).unwrap_or(u64::MAX)),
        ..Interest::new(prefix.clone())
    };
    // Of the segments that are awaited.
    let mut nacks: BTreeMap<u64, NackReason> = BTreeMap::new();
    let mut last_arrival = started;
    let mut next_progress = started;
    while !fetcher.is_done() {
        let now = endpoint.now();
        fetcher.handle_timeout(now);
        while let Some(segment) = fetcher.poll_transmit(now) {
            interest.name.push(&Component::segment(segment));
            interest.nonce = None;
            endpoint.link().send_interest(&mut interest);
            interest.name.pop();
        }
        let stalled = now >= last_arrival + options.patience;
        if let Some(segment) = fetcher
            .gave_up()
            .or_else(|| stalled.then(|| fetcher.first_missing()))
        {
            return Err(FetchError::GaveUp {
                segment,
                nack: nacks.get(&segment).copied(),
            });
        }
        if now >= next_progress {
            next_progress = now + PROGRESS_INTERVAL;
            progress(&in_order.progress(&fetcher));
        }
        let deadline = [last_arrival + options.patience, next_progress]
            .into_iter()
            .chain(fetcher.poll_timeout())
            .min();
        let mut outcome = Ok(());
        endpoint.poll(deadline, |_, received| {
            // The wait is over only now.
            let now = monotonic_now();
            match received {
                Received::Data(data, headers) => {
                    let Some(segment) = segment_under(data.name(), prefix) else {
                        return ControlFlow::Continue(());
                    };
                    let arrived = Arrived {
                        now,
                        segment,
                        marked: headers.congestion_mark > 0,
                    };
                    match take(&mut fetcher, &mut in_order, &data, arrived, &mut verify) {
                        Ok(true) => {
                            last_arrival = now;
                            nacks.remove(&segment);
                        }
                        Ok(false) => {}
                        Err(error) => {
                            outcome = Err(error);
                            return ControlFlow::Break(());
                        }
                    }
                }
                Received::Nack(reason, back, _) => {
                    if let Some(segment) = segment_under(back.name(), prefix)
                        && fetcher.is_awaited(segment)
                    {
                        nacks.insert(segment, reason);
                        fetcher.handle_nack(segment, reason == NackReason::Congestion);
                    }
                }
                Received::Interest(..) => {}
            }
            ControlFlow::Continue(())
        })?;
        outcome?;
    }
    progress(&in_order.progress(&fetcher));
    Ok(FetchReport {
        n_bytes: in_order.n_bytes,
        n_segments: in_order.next,
        duration: endpoint.now().saturating_since(started),
        rtt: fetcher.rtt().smoothed(),
        counters: *fetcher.counters(),
    })
}

struct Arrived {
    now: MonoNs,
    segment: u64,
    marked: bool,
}

/// Takes one segment. Whether it was needed.
fn take<S: FnMut(&[u8]) -> io::Result<()>>(
    fetcher: &mut Fetcher,
    in_order: &mut InOrder<S>,
    data: &DataView<'_>,
    arrived: Arrived,
    verify: &mut impl FnMut(&DataView<'_>) -> Result<(), Reject>,
) -> Result<bool, FetchError> {
    let Arrived {
        now,
        segment,
        marked,
    } = arrived;
    if data.content_type() == content_type::NACK {
        return match fetcher.final_segment() {
            // Asked for beyond the end, before the end was known.
            Some(last) if segment > last => Ok(false),
            _ if segment > 0 && fetcher.first_missing() == 0 => Ok(false),
            _ => Err(FetchError::NoSuchSegment { segment }),
        };
    }
    verify(data).map_err(|reason| FetchError::Untrusted { segment, reason })?;
    let last = data
        .final_block_id()
        .filter(|id| id.typ() == component::SEGMENT)
        .and_then(|id| id.as_number());
    match fetcher.handle_data(now, segment, last, marked) {
        Arrival::New => in_order.take(segment, data.content()).map(|()| true),
        Arrival::Unneeded => Ok(false),
    }
}

/// The number of the segment under `prefix` that `name` is.
fn segment_under(name: tachonym_packet::NameView<'_>, prefix: &Name) -> Option<u64> {
    if name.len() != prefix.len() + 1 || !name.starts_with(prefix.view()) {
        return None;
    }
    name.last()
        .filter(|last| last.typ() == component::SEGMENT)
        .and_then(|last| last.as_number())
}

/// Hands contents over in the order of their segments.
struct InOrder<S> {
    sink: S,
    /// The segment to hand over next.
    next: u64,
    n_bytes: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl<S: FnMut(&[u8]) -> io::Result<()>> InOrder<S> {
    const fn new(sink: S) -> Self {
        Self {
            sink,
            next: 0,
            n_bytes: 0,
            waiting: BTreeMap::new(),
        }
    }

    fn take(&mut self, segment: u64, content: &[u8]) -> Result<(), FetchError> {
        if segment != self.next {
            self.waiting.insert(segment, content.to_vec());
            return Ok(());
        }
        self.hand_over(content)?;
        while let Some(content) = self.waiting.remove(&self.next) {
            self.hand_over(&content)?;
        }
        Ok(())
    }

    fn hand_over(&mut self, content: &[u8]) -> Result<(), FetchError> {
        (self.sink)(content)?;
        self.next += 1;
        self.n_bytes += content.len() as u64;
        Ok(())
    }

    fn progress(&self, fetcher: &Fetcher) -> FetchProgress {
        FetchProgress {
            n_bytes: self.n_bytes,
            n_segments: self.next,
            of_segments: fetcher.final_segment().map(|last| last.saturating_add(1)),
            window: fetcher.window(),
        }
    }
}
