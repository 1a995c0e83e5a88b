//! Traces of packets: commands of the module `trace` and the dataset `trace/records`, this
//! router's own.
//!
//! A trace is started by `trace/start` and read by `trace/records`; each read takes out what
//! was recorded since the last one. The dataset's name goes on with one component that holds
//! a [`TraceQuery`]. The TLV-TYPEs are in the table of `dataset`.

use tachonym_packet::{Component, ComponentView, DecodeError, Name};

use crate::TraceDecision;
use crate::codec::{Bounded, management_value};

/// Traces that a router runs at a time.
pub const MAX_TRACES: usize = 4;

/// How long a trace lives without being read, in milliseconds.
pub const TRACE_LEASE_MS: u64 = 30_000;

/// How long a trace records unless the command says otherwise, in milliseconds.
pub const TRACE_DEFAULT_MS: u64 = 10_000;

/// The longest that a trace may record, in milliseconds.
pub const TRACE_MAX_MS: u64 = 3_600_000;

management_value! {
    /// What is read of which trace.
    TraceQuery = 37140 {
        /// The trace, as the answer to `trace/start` says.
        trace_id: Required<u64> = 37142,
        /// Number of this read, from 1. The same number again gets the same records again.
        read: Required<u64> = 37143,
    }
}

impl TraceQuery {
    /// The component of the dataset's name that holds it.
    #[must_use]
    pub fn to_component(&self) -> Component {
        Component::generic(self.encode())
    }

    /// Reads such a component.
    ///
    /// # Errors
    /// If it holds something else.
    pub fn of_component(component: ComponentView<'_>) -> Result<Self, DecodeError> {
        Self::decode(component.value())
    }
}

management_value! {
    /// What a trace has recorded since it was last read; the content of `trace/records`.
    #[derive(Default)]
    TraceBatch = 37144 {
        /// Packets that the trace has not shown since its start: beyond its rate, left out by
        /// its sample, or more than its memory holds.
        n_not_shown: Required<u64> = 37145,
        /// Whether its time is over, or all that were asked for are recorded.
        has_ended: Required<bool> = 37147,
        /// The packets, in the order of their times; up to [`TraceRecord::MAX`].
        records: Few<TraceRecord> = 37148,
    }
}

management_value! {
    /// A packet, and what became of it.
    TraceRecord = 37148 {
        /// When it was handled, in microseconds since the Unix epoch.
        at_us: Required<u64> = 37149,
        /// `Interest`, `Data` or `Nack`.
        kind: Required<String> = 37123,
        /// The packet's name; of a Nack, that of the Interest in it.
        name: Required<Name> = 7,
        /// Whether the name is longer, and only its first components are here.
        is_name_cut: Required<bool> = 37121,
        /// The face it came from; `None` if that is not known. Faces below 256 are the
        /// router's own: 1 is management, 254 the content store.
        face_id: Optional<u64> = 105,
        /// The remote address of that face, if the thread that handled the packet has it.
        remote: Optional<String> = 114,
        /// What became of it.
        decision: Required<TraceDecision> = 37151,
        /// Faces that it, or the Data that answers it, was sent to; up to
        /// [`TraceFace::MAX`].
        to: Few<TraceFace> = 37152,
        /// Faces beyond these.
        n_more_faces: Required<u64> = 37153,
        /// Faces that a Nack was sent to.
        nacked: Few<TraceFace> = 37154,
        /// Faces beyond these.
        n_more_nacked: Required<u64> = 37157,
        /// The reason of these Nacks, as in `no-route`.
        nack_reason: Optional<String> = 37156,
        /// Why it was dropped, as in `status/drops`. Several reasons have commas between.
        drop_reason: Optional<String> = 36865,
    }
}

management_value! {
    /// A face that a packet was sent to.
    TraceFace = 37152 {
        /// Its number.
        face_id: Required<u64> = 105,
    }
}

impl TraceRecord {
    /// Most that a [`TraceBatch`] holds.
    pub const MAX: usize = 4_096;
}

impl TraceFace {
    /// Most of each kind that a [`TraceRecord`] names.
    pub const MAX: usize = 8;
}

impl Bounded for TraceRecord {
    const MAX: usize = Self::MAX;
}

impl Bounded for TraceFace {
    const MAX: usize = Self::MAX;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_and_a_query_come_back_as_they_were() {
        let face = |face_id| TraceFace { face_id };
        let record = |decision| TraceRecord {
            at_us: 1_700_000_000_000_000,
            kind: "Interest".into(),
            name: "/a/b".parse().expect("a name"),
            is_name_cut: false,
            face_id: Some(262),
            remote: Some("fd://15".into()),
            decision,
            to: vec![face(263), face(264)],
            n_more_faces: 1,
            n_more_nacked: 2,
            nacked: vec![face(265)],
            nack_reason: Some("no-route".into()),
            drop_reason: Some("no-route".into()),
        };
        let batch = TraceBatch {
            n_not_shown: 3,
            has_ended: true,
            records: TraceDecision::ALL.iter().copied().map(record).collect(),
        };
        assert_eq!(TraceBatch::decode(&batch.encode()).as_ref(), Ok(&batch));
        let query = TraceQuery {
            trace_id: u64::MAX,
            read: 1,
        };
        let component = query.to_component();
        assert_eq!(TraceQuery::of_component(component.view()), Ok(query));
    }
}
