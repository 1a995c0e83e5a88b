//! Status datasets and notifications: what the router tells about itself.
//!
//! Owns one value per kind of entry, and lists of them; those of `workers/list` are in
//! `workers`, those of `status/explain` in `explain`, those of `status/power` in `power`. `segments` cuts datasets into
//! segments.
//! Source: NFD Management protocol, "ForwarderStatus", "FaceMgmt", "FibMgmt",
//! "RibMgmt", "StrategyChoice", "CsMgmt".
//!
//! What this router adds to that protocol has TLV-TYPEs from 36864 (0x9000)
//! on, which neither it nor the packet format uses. Clients that do not know
//! them skip the even ones:
//!
//! | TLV-TYPE | element | in |
//! |---|---|---|
//! | 36864 | DropCount | `status/drops` |
//! | 36865 | DropReason | DropCount, RecentDrop, TraceRecord |
//! | 36866 | FaceState | FaceStatus |
//! | 36867 | NDropped | DropCount, WorkerStatus, RecentDrop |
//! | 36868 | TableMemory | `status/memory` |
//! | 36869 | PagesAskedFor | TableMemory |
//! | 36871 | NBaseBytes | TableMemory |
//! | 36873 | NTransparentBytes | TableMemory |
//! | 36875 | NHuge2mBytes | TableMemory |
//! | 36877 | NHuge1gBytes | TableMemory |
//! | 36878 | CsStats | `cs/stats` |
//! | 36880 | CsPolicy | CsStats, ControlParameters |
//! | 36883 | NInserts | CsStats, SecondLevelStats |
//! | 36885 | NNotAdmitted | CsStats, SecondLevelStats |
//! | 36887 | NEvictions | CsStats |
//! | 36889 | NBytes | CsStats |
//! | 36891 | CapacityBytes | CsStats |
//! | 36893 | PolicyBytes | CsStats |
//! | 36894 | CsPopularity | `cs/popularity` |
//! | 36896 | PopularityClass | CsPopularity |
//! | 36897 | NNames | PopularityClass |
//! | 36899 | NRequests | CsPopularity, PopularityClass |
//! | 36901 | NCountedNames | CsPopularity |
//! | 36903 | NRequestsSinceChange | CsPopularity |
//! | 36905 | MeterBytes | CsPopularity |
//! | 36906 | WorkersStatus | `workers/list` |
//! | 36908 | Worker | MovedName, WorkerStatus, ControlParameters |
//! | 36909 | Feed | WorkersStatus |
//! | 36911 | Dispatch | WorkersStatus |
//! | 36913 | IsFrozen | WorkersStatus |
//! | 36915 | MapVersion | WorkersStatus |
//! | 36917 | NBuckets | WorkersStatus |
//! | 36919 | NMoved | WorkersStatus |
//! | 36921 | NAway | WorkersStatus |
//! | 36922 | MovedName | WorkersStatus |
//! | 36923 | Key | MovedName |
//! | 36925 | IsPinned | MovedName |
//! | 36930 | WorkerStatus | WorkersStatus |
//! | 36931 | WorkerState | WorkerStatus |
//! | 36933 | Service | WorkerStatus |
//! | 36934 | Cpu | WorkerStatus, ReceiverStatus |
//! | 36936 | BusyPermille | WorkerStatus, ReceiverStatus |
//! | 36939 | NQueuedPkts | WorkerStatus |
//! | 36941 | SharePermille | WorkerStatus |
//! | 36943 | NInPkts | WorkerStatus |
//! | 36945 | NCrossedPkts | WorkerStatus |
//! | 36946 | ReceiverStatus | WorkersStatus |
//! | 36947 | Thread | ReceiverStatus |
//! | 36949 | NReceivedPkts | ReceiverStatus |
//! | 36950 | SecondLevelStats | CsStats |
//! | 36951 | NReads | SecondLevelStats |
//! | 36953 | NReadsAhead | SecondLevelStats |
//! | 36955 | NReadBytes | SecondLevelStats |
//! | 36957 | NLost | SecondLevelStats |
//! | 36959 | NDataBytes | SecondLevelStats |
//! | 36961 | NWrittenBytes | SecondLevelStats |
//! | 36963 | NWrittenBytesPerDay | SecondLevelStats |
//! | 36965 | NIndexed | SecondLevelStats |
//! | 36967 | MaxIndexed | SecondLevelStats |
//! | 36969 | NDeviceErrors | SecondLevelStats |
//! | 36971 | NDamaged | SecondLevelStats |
//! | 36973 | NLostVolumes | SecondLevelStats |
//! | 36975 | NRecovered | SecondLevelStats |
//! | 36977 | IsRecovering | SecondLevelStats |
//! | 36978 | NErasuresMerged | SecondLevelStats |
//! | 36980 | SecondLevelBalance | SecondLevelStats |
//! | 36981 | NOffered | SecondLevelBalance |
//! | 36982 | NSoughtRefused | SecondLevelStats |
//! | 36983 | NKnown | SecondLevelBalance |
//! | 36984 | NReadsRefused | SecondLevelStats |
//! | 36985 | NUnsuited | SecondLevelBalance |
//! | 36987 | NNoRoom | SecondLevelBalance |
//! | 36989 | NReplaced | SecondLevelBalance |
//! | 36991 | NErased | SecondLevelBalance |
//! | 36993 | NWaiting | SecondLevelBalance |
//! | 36995 | NNotIndexed | SecondLevelBalance |
//! | 36997 | NCrowdedOut | SecondLevelBalance |
//! | 36999 | NEmptiedEarly | SecondLevelBalance |
//! | 37001 | NPrefixesNotIndexed | SecondLevelBalance |
//! | 37010 | ExplainQuery | parameters of `status/explain` |
//! | 37011 | CanBePrefix | ExplainQuery, PendingInterest |
//! | 37013 | MustBeFresh | ExplainQuery, PendingInterest |
//! | 37014 | NameExplanation | `status/explain` |
//! | 37015 | IsOutOfScope | NameExplanation |
//! | 37017 | IsForLocalFaces | NameExplanation |
//! | 37019 | StoreServes | NameExplanation |
//! | 37020 | CachedData | NameExplanation |
//! | 37021 | FreshForMs | CachedData |
//! | 37023 | Answers | CachedData |
//! | 37025 | SsdFinding | NameExplanation |
//! | 37026 | PendingInterest | NameExplanation |
//! | 37027 | HasForwardingHint | PendingInterest |
//! | 37029 | IsSatisfied | PendingInterest |
//! | 37031 | AwaitsStore | PendingInterest |
//! | 37033 | ExpiresInMs | PendingInterest, WaitingFace |
//! | 37034 | WaitingFace | PendingInterest |
//! | 37035 | SinceMs | WaitingFace, AskedFace |
//! | 37036 | AskedFace | PendingInterest |
//! | 37038 | NackReason | AskedFace |
//! | 37040 | RoutePrefix | NameExplanation |
//! | 37042 | ExplainedNextHop | NameExplanation |
//! | 37043 | NextHopUse | ExplainedNextHop |
//! | 37045 | StrategyPrefix | NameExplanation |
//! | 37050 | FaceProgram | `faces/programs` |
//! | 37051 | Pid | FaceProgram |
//! | 37052 | ProgramName | FaceProgram |
//! | 37120 | RecentDrop | `status/recent-drops` |
//! | 37121 | IsNameCut | RecentDrop, TraceRecord |
//! | 37123 | PacketKind | RecentDrop, TraceRecord |
//! | 37125 | AgeMs | RecentDrop |
//! | 37140 | TraceQuery | name of `trace/records` |
//! | 37142 | TraceId | TraceQuery, ControlParameters |
//! | 37143 | Read | TraceQuery |
//! | 37144 | TraceBatch | `trace/records` |
//! | 37145 | NNotShown | TraceBatch |
//! | 37146 | Sample | ControlParameters |
//! | 37147 | HasEnded | TraceBatch |
//! | 37148 | TraceRecord | TraceBatch |
//! | 37149 | AtUs | TraceRecord |
//! | 37151 | TraceDecision | TraceRecord |
//! | 37152 | TraceFace | TraceRecord |
//! | 37153 | NMoreFaces | TraceRecord |
//! | 37154 | NackedFace | TraceRecord |
//! | 37156 | NackReason | TraceRecord |
//! | 37157 | NMoreNacked | TraceRecord |
//! | 37200 | WaitingStatus | WorkerStatus, ReceiverStatus |
//! | 37201 | SpinNs | WaitingStatus |
//! | 37203 | GatherNs | WaitingStatus |
//! | 37205 | WakeCostNs | WaitingStatus |
//! | 37207 | NWakeups | WaitingStatus |
//! | 37209 | NGathers | WaitingStatus |
//! | 37210 | Monitor | WaitingStatus |
//! | 37220 | PowerStatus | `status/power` |
//! | 37221 | Governor | PowerStatus |
//! | 37223 | NActive | PowerStatus |
//! | 37224 | PowerLever | PowerStatus |
//! | 37225 | LeverName | PowerLever, EnergyCounter |
//! | 37227 | IsUsed | PowerLever |
//! | 37229 | Detail | PowerLever |
//! | 37230 | WorkerPower | PowerStatus |
//! | 37231 | Sleep | WorkerPower |
//! | 37233 | PState | WorkerPower |
//! | 37234 | Khz | WorkerPower |
//! | 37240 | TapStatus | PowerStatus |
//! | 37241 | ForecastMillipkts | TapStatus |
//! | 37243 | IntervalNs | TapStatus |
//! | 37245 | TrafficFactorPermille | TapStatus |
//! | 37246 | PacketNs | TapStatus |
//! | 37249 | QueueMillipkts | TapStatus |
//! | 37251 | LowMillipkts | TapStatus |
//! | 37253 | HighMillipkts | TapStatus |
//! | 37260 | EnergyCounter | PowerStatus |
//! | 37261 | UsedUj | EnergyCounter |
//! | 37263 | Model | PowerStatus |
//! | 37265 | PowerWork | PowerStatus |
//! | 37267 | AtNs | PowerWork |
//! | 37269 | BusyNs | PowerWork |
//! | 37271 | CyclesNs | PowerWork |
//! | 37272 | MaxKhz | PowerWork |
//! | 37275 | NInPkts | PowerWork |
//! | 37277 | NOutPkts | PowerWork |
//! | 37281 | NInterests | PowerWork |
//! | 37283 | NHits | PowerWork |
//! | 37285 | NData | PowerWork |
//! | 37287 | NInserts | PowerWork |

use tachonym_packet::{DecodeError, Name};

#[cfg(doc)]
use crate::ControlParameters;
use crate::codec::{self, management_value};
use crate::{FaceEventKind, FacePersistency, FaceScope, FaceState, LinkType};

management_value! {
    /// General status of the router; the content of `status/general`, without a
    /// head around it.
    #[derive(Default)]
    ForwarderStatus {
        /// Name and version of the software.
        nfd_version: Required<String> = 128,
        /// When the router started, in milliseconds since the Unix epoch.
        start_timestamp_ms: Required<u64> = 129,
        /// When this was written, in milliseconds since the Unix epoch.
        current_timestamp_ms: Required<u64> = 130,
        /// Nodes in the name tree.
        n_name_tree_entries: Required<u64> = 131,
        /// Entries in the FIB.
        n_fib_entries: Required<u64> = 132,
        /// Entries in the PIT.
        n_pit_entries: Required<u64> = 133,
        /// Entries in the measurements table.
        n_measurements_entries: Required<u64> = 134,
        /// Packets in the content store.
        n_cs_entries: Required<u64> = 135,
        /// Interests received.
        n_in_interests: Required<u64> = 144,
        /// Data received.
        n_in_data: Required<u64> = 145,
        /// Nacks received.
        n_in_nacks: Required<u64> = 151,
        /// Interests sent.
        n_out_interests: Required<u64> = 146,
        /// Data sent.
        n_out_data: Required<u64> = 147,
        /// Nacks sent.
        n_out_nacks: Required<u64> = 152,
        /// Interests that Data answered.
        n_satisfied_interests: Required<u64> = 153,
        /// Interests that nothing answered.
        n_unsatisfied_interests: Required<u64> = 154,
    }
}

management_value! {
    /// A face and its counters; an entry of `faces/list` and `faces/query`.
    FaceStatus = 128 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Remote FaceUri.
        uri: Required<String> = 114,
        /// Local FaceUri.
        local_uri: Required<String> = 129,
        /// Time until the face goes unless it is used, in milliseconds.
        expiration_period_ms: Optional<u64> = 109,
        /// Scope.
        face_scope: Required<FaceScope> = 132,
        /// Persistency.
        face_persistency: Required<FacePersistency> = 133,
        /// Link type.
        link_type: Required<LinkType> = 134,
        /// Base interval of congestion marking, in nanoseconds.
        base_congestion_marking_interval_ns: Optional<u64> = 135,
        /// Queue length from which congestion is marked, in bytes.
        default_congestion_threshold_bytes: Optional<u64> = 136,
        /// Largest packet the face sends, in bytes.
        mtu_bytes: Optional<u64> = 137,
        /// Interests received.
        n_in_interests: Required<u64> = 144,
        /// Data received.
        n_in_data: Required<u64> = 145,
        /// Nacks received.
        n_in_nacks: Required<u64> = 151,
        /// Interests sent.
        n_out_interests: Required<u64> = 146,
        /// Data sent.
        n_out_data: Required<u64> = 147,
        /// Nacks sent.
        n_out_nacks: Required<u64> = 152,
        /// Bytes received.
        n_in_bytes: Required<u64> = 148,
        /// Bytes sent.
        n_out_bytes: Required<u64> = 149,
        /// Flags: see [`face_flags`](crate::face_flags).
        flags: Required<u64> = 108,
        /// Whether it can send. The last element, because ndn-cxx insists on
        /// the order of those before.
        state: Optional<FaceState> = 36866,
    }
}

management_value! {
    /// Which faces `faces/query` shall list: those that agree with every field.
    #[derive(Default)]
    FaceQueryFilter = 150 {
        /// Number of the face.
        face_id: Optional<u64> = 105,
        /// Scheme of the remote or of the local FaceUri.
        uri_scheme: Optional<String> = 131,
        /// Remote FaceUri.
        uri: Optional<String> = 114,
        /// Local FaceUri.
        local_uri: Optional<String> = 129,
        /// Scope.
        face_scope: Optional<FaceScope> = 132,
        /// Persistency.
        face_persistency: Optional<FacePersistency> = 133,
        /// Link type.
        link_type: Optional<LinkType> = 134,
    }
}

management_value! {
    /// A listener; an entry of `faces/channels`.
    ChannelStatus = 130 {
        /// The address it listens on, as a FaceUri.
        local_uri: Required<String> = 129,
    }
}

management_value! {
    /// Something that happened to a face; an item of the stream `faces/events`.
    FaceEventNotification = 192 {
        /// What happened.
        kind: Required<FaceEventKind> = 193,
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Remote FaceUri.
        uri: Required<String> = 114,
        /// Local FaceUri.
        local_uri: Required<String> = 129,
        /// Scope.
        face_scope: Required<FaceScope> = 132,
        /// Persistency.
        face_persistency: Required<FacePersistency> = 133,
        /// Link type.
        link_type: Required<LinkType> = 134,
        /// Flags: see [`face_flags`](crate::face_flags).
        flags: Required<u64> = 108,
    }
}

management_value! {
    /// One next hop of a [`FibEntry`].
    NextHopRecord = 129 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Cost.
        cost: Required<u64> = 106,
    }
}

management_value! {
    /// A prefix and where Interests under it go; an entry of `fib/list`.
    FibEntry = 128 {
        /// The prefix.
        name: Required<Name> = 7,
        /// The next hops.
        next_hops: Repeated<NextHopRecord> = 129,
    }
}

management_value! {
    /// One route of a [`RibEntry`].
    Route = 129 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Where the route came from: see [`route_origin`](crate::route_origin).
        origin: Required<u64> = 111,
        /// Cost.
        cost: Required<u64> = 106,
        /// Flags: see [`route_flags`](crate::route_flags).
        flags: Required<u64> = 108,
        /// Time until the route expires, in milliseconds; `None`: never.
        expiration_period_ms: Optional<u64> = 109,
    }
}

management_value! {
    /// A prefix and its routes; an entry of `rib/list`.
    RibEntry = 128 {
        /// The prefix.
        name: Required<Name> = 7,
        /// The routes.
        routes: Repeated<Route> = 129,
    }
}

management_value! {
    /// A prefix and its strategy; an entry of `strategy-choice/list`.
    StrategyChoice = 128 {
        /// The prefix.
        name: Required<Name> = 7,
        /// Name of the strategy, with its version and parameters.
        strategy: Required<Name> = 107,
    }
}

management_value! {
    /// State of the content store; the entry of `cs/info`.
    #[derive(Default)]
    CsInfo = 128 {
        /// Capacity, in packets.
        capacity: Required<u64> = 131,
        /// Flags: see [`cs_flags`](crate::cs_flags).
        flags: Required<u64> = 108,
        /// Packets in the store.
        n_cs_entries: Required<u64> = 135,
        /// Lookups that found something.
        n_hits: Required<u64> = 129,
        /// Lookups that found nothing.
        n_misses: Required<u64> = 130,
    }
}

management_value! {
    /// How much was dropped for one reason; an entry of `status/drops`, a
    /// dataset of this router's own. What a face dropped is part of the count
    /// without a face, too, which also covers faces that are gone.
    DropCount = 36864 {
        /// The face that dropped it; `None`: the whole router.
        face_id: Optional<u64> = 105,
        /// The reason: lower case, words joined by hyphens.
        reason: Required<String> = 36865,
        /// How many packets (or connections) since the start.
        n_dropped: Required<u64> = 36867,
    }
}

management_value! {
    /// The program behind a face of the router's Unix socket; an entry of `faces/programs`,
    /// a dataset of this router's own.
    FaceProgram = 37050 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Process that opened the connection.
        pid: Required<u64> = 37051,
        /// Name of the program that the process runs now, without control characters;
        /// `None`: the process has ended, or hides it.
        name: Optional<String> = 37052,
    }
}

management_value! {
    /// What memory the tables have that ask the system for pages by themselves; the
    /// entry of `status/memory`, a dataset of this router's own. What tables have
    /// from the allocator is not in it.
    #[derive(Default)]
    TableMemory = 36868 {
        /// What pages the configuration asks for.
        asked_for: Required<String> = 36869,
        /// Bytes in the smallest pages of the machine.
        n_base_bytes: Required<u64> = 36871,
        /// Bytes that the kernel backs by 2 MiB pages as it finds them.
        n_transparent_bytes: Required<u64> = 36873,
        /// Bytes in 2 MiB pages of the kernel's pool.
        n_huge_2m_bytes: Required<u64> = 36875,
        /// Bytes in 1 GiB pages of the kernel's pool.
        n_huge_1g_bytes: Required<u64> = 36877,
    }
}

management_value! {
    /// What the content store has done, and how it decides; the entry of `cs/stats`, a
    /// dataset of this router's own.
    #[derive(Default)]
    CsStats = 36878 {
        /// What is admitted and what is evicted, as [`CsPolicy`](ControlParameters::cs_policy)
        /// of a command says it.
        policy: Required<String> = 36880,
        /// Packets in the store.
        n_cs_entries: Required<u64> = 135,
        /// Capacity, in packets.
        capacity: Required<u64> = 131,
        /// Lookups that found something.
        n_hits: Required<u64> = 129,
        /// Lookups that found nothing.
        n_misses: Required<u64> = 130,
        /// Data that came and were cached, and were not before.
        n_inserts: Required<u64> = 36883,
        /// Data that the policy did not admit.
        n_not_admitted: Required<u64> = 36885,
        /// Data that made room.
        n_evictions: Required<u64> = 36887,
        /// Bytes in use of the capacity.
        n_bytes: Required<u64> = 36889,
        /// Capacity, in bytes.
        capacity_bytes: Required<u64> = 36891,
        /// Bytes of what the policy remembers, beside the capacity.
        n_policy_bytes: Required<u64> = 36893,
        /// How the second level stands, if there is one.
        second_level: Optional<SecondLevelStats> = 36950,
    }
}

management_value! {
    /// What the second level of the content store has done since the start, of a [`CsStats`].
    #[derive(Default)]
    SecondLevelStats = 36950 {
        /// Interests that it answered.
        n_hits: Required<u64> = 129,
        /// Interests that it had nothing for, or could not answer.
        n_misses: Required<u64> = 130,
        /// Reads for Interests, and ahead of them.
        n_reads: Required<u64> = 36951,
        /// Of these, ahead of them.
        n_reads_ahead: Required<u64> = 36953,
        /// Bytes that were read.
        n_read_bytes: Required<u64> = 36955,
        /// Data that were written, or are on their way to a device.
        n_inserts: Required<u64> = 36883,
        /// Data that its policy did not want.
        n_not_admitted: Required<u64> = 36885,
        /// Data that were to be written, and are not, for their volume, or the last one, went
        /// out of service.
        n_lost: Required<u64> = 36957,
        /// Bytes of the Data that were written.
        n_data_bytes: Required<u64> = 36959,
        /// Bytes that were written for them.
        n_written_bytes: Required<u64> = 36961,
        /// Bytes written for each day, as far as the time since the start tells.
        n_written_bytes_per_day: Required<u64> = 36963,
        /// Batches and prefixes in the index, and how many there may be.
        n_indexed: Required<u64> = 36965,
        /// See above.
        max_indexed: Required<u64> = 36967,
        /// Requests that a device could not carry out, or not in time.
        n_device_errors: Required<u64> = 36969,
        /// Batches that were read and found damaged.
        n_damaged: Required<u64> = 36971,
        /// Volumes that are out of service, those of all workers together.
        n_lost_volumes: Required<u64> = 36973,
        /// Batches that were found at the start.
        n_recovered: Required<u64> = 36975,
        /// Whether what was there before the start is still being looked for.
        is_recovering: Required<bool> = 36977,
        /// Times that everything older was erased, for there were more erased prefixes than
        /// are kept.
        n_erasures_merged: Optional<u64> = 36978,
        /// What else became of the Data that were offered, and of batches.
        balance: Optional<SecondLevelBalance> = 36980,
        /// Interests of other workers that this one answered as a miss although the index had a
        /// candidate: too many waited already, or no read was free.
        n_sought_refused: Optional<u64> = 36982,
        /// Interests refused a read of the SSD level, those of other workers included.
        n_reads_refused: Optional<u64> = 36984,
    }
}

management_value! {
    /// What became of the Data that were offered to the second level, beside those of
    /// [`SecondLevelStats`] that were written, not admitted or lost: together these are all. And
    /// of batches that were written, what is not found any more though it is there.
    #[derive(Default)]
    SecondLevelBalance = 36980 {
        /// Data that were offered.
        n_offered: Required<u64> = 36981,
        /// Data that were there already.
        n_known: Required<u64> = 36983,
        /// Data whose name has no component or too many, or that came while no volume was in
        /// service.
        n_unsuited: Required<u64> = 36985,
        /// Data for which there was no room where batches are put together.
        n_no_room: Required<u64> = 36987,
        /// Data that were replaced by others of their names before they were written.
        n_replaced: Required<u64> = 36989,
        /// Data that were erased before they were written.
        n_erased: Required<u64> = 36991,
        /// Data that wait where batches are put together.
        n_waiting: Required<u64> = 36993,
        /// Batches that found no place in the index.
        n_not_indexed: Required<u64> = 36995,
        /// Batches that left the index early, for they were written in too many parts.
        n_crowded_out: Required<u64> = 36997,
        /// Regions whose batches were forgotten early, for want of room in the index.
        n_emptied_early: Required<u64> = 36999,
        /// Prefixes of batches that found no place: by these the batches are not found.
        n_prefixes_not_indexed: Required<u64> = 37001,
    }
}

management_value! {
    /// Names that were asked for about as often as each other, of a [`CsPopularity`].
    PopularityClass = 36896 {
        /// How many; an estimate.
        n_names: Required<u64> = 36897,
        /// Requests for all of them together.
        n_requests: Required<u64> = 36899,
    }
}

management_value! {
    /// How often names were asked for lately that the content store may answer; the entry of
    /// `cs/popularity`, a dataset of this router's own.
    #[derive(Default)]
    CsPopularity = 36894 {
        /// Requests that it is about.
        n_requests: Required<u64> = 36899,
        /// Names whose requests were counted one by one; what all are is estimated.
        n_counted_names: Required<u64> = 36901,
        /// Of these requests, those since the store has changed its size or its policy.
        n_requests_since_change: Required<u64> = 36903,
        /// Hits among those.
        n_hits: Required<u64> = 129,
        /// Data that were inserted meanwhile.
        n_inserts: Required<u64> = 36883,
        /// Bytes that the measurement takes, which are part of the policy's in
        /// [`CsStats`].
        n_meter_bytes: Required<u64> = 36905,
        /// All names, those first that were asked for least.
        classes: Repeated<PopularityClass> = 36896,
    }
}

impl FaceQueryFilter {
    /// Whether `face` agrees with every field that is present.
    #[must_use]
    pub fn matches(&self, face: &FaceStatus) -> bool {
        fn agrees<T: PartialEq>(wanted: Option<&T>, actual: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == actual)
        }
        let scheme_of = |uri: &str, scheme: &str| {
            uri.strip_prefix(scheme)
                .is_some_and(|rest| rest.starts_with("://"))
        };
        agrees(self.face_id.as_ref(), &face.face_id)
            && self.uri_scheme.as_ref().is_none_or(|scheme| {
                scheme_of(&face.uri, scheme) || scheme_of(&face.local_uri, scheme)
            })
            && agrees(self.uri.as_ref(), &face.uri)
            && agrees(self.local_uri.as_ref(), &face.local_uri)
            && agrees(self.face_scope.as_ref(), &face.face_scope)
            && agrees(self.face_persistency.as_ref(), &face.face_persistency)
            && agrees(self.link_type.as_ref(), &face.link_type)
    }
}

/// An entry of a dataset: elements of one type, one after the other.
macro_rules! dataset_entry {
    ($($name:ident),+) => {$(
        impl $name {
            /// Reads the reassembled content of a dataset. Unrecognised elements
            /// of non-critical type between the entries are skipped.
            ///
            /// # Errors
            /// If an entry is malformed, or something critical is unrecognised.
            pub fn decode_list(content: &[u8]) -> Result<Vec<Self>, DecodeError> {
                codec::decode_list(content, Self::TLV_TYPE)
            }

            /// The content of a dataset with these entries.
            #[must_use]
            pub fn encode_list<'a>(entries: impl IntoIterator<Item = &'a Self>) -> Vec<u8> {
                let mut content = Vec::new();
                for entry in entries {
                    entry.encode_into(&mut content);
                }
                content
            }
        }
    )+};
}

dataset_entry!(
    FaceStatus,
    ChannelStatus,
    FibEntry,
    RibEntry,
    StrategyChoice,
    DropCount,
    FaceProgram
);
