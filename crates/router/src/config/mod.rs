//! The configuration: one TOML file, every key optional.
//!
//! The structures here are the configuration *and* its reference: their doc
//! comments become `docs/configuration.md` (see [`mod@reference`]). What a type
//! cannot express is checked in `check`. A file that does not pass starts
//! nothing: each complaint names file, line and remedy.

mod check;
mod content_store;
mod lines;
mod load;
mod locality;
mod machine;
mod origin;
pub mod reference;
mod second_level;
mod signers;
mod warnings;
mod wording;
mod workers;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_forward::BURST_DISTANCE;
use tachonym_memory::PagePreference;
use tachonym_packet::HashKind;

pub(crate) use check::{NAME_REMEDY, parse_name};
pub(crate) use content_store::FREE_TABLE_BYTES;
pub use content_store::{Admission, ContentStore, Eviction};
pub use load::{Complaint, ConfigError};
pub use locality::{Local, Transport};
pub use origin::{Origin, StartError};
pub use second_level::{Io, SecondLevel, Volume};
pub use signers::{Announcements, Localhop, Names, Verification};
pub use warnings::Warning;
pub(crate) use workers::usable_cpus;
pub use workers::{Dispatch, Feed, Workers};

/// Everything an operator can set. An empty file is a working router.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What is written to standard error.
    pub log: Log,
    /// Where the router listens, and what every face may use.
    pub faces: Faces,
    /// Sizes of the tables. Each is a hard limit: reaching it is counted and
    /// answered, never exceeded.
    pub tables: Tables,
    /// The threads that receive and forward.
    pub workers: Workers,
    /// The memory of the tables.
    pub memory: Memory,
    /// Which Data are cached, and which make room.
    pub content_store: ContentStore,
    /// Data on SSD behind those in memory, if there is a volume for them; see
    /// docs/ssd.md. They survive restarts. Segments of an object are
    /// written and read together, a batch at a time.
    pub second_level: SecondLevel,
    /// How packets are forwarded.
    pub forwarding: Forwarding,
    /// Which strategy forwards under which prefix. Prefixes without one use
    /// the longest shorter prefix that has one; `/` has `best-route` unless it
    /// is set here.
    pub strategy: Vec<StrategyChoice>,
    /// Faces made at start.
    pub face: Vec<StaticFace>,
    /// Routes made at start, with origin `static`.
    pub route: Vec<StaticRoute>,
    /// Data that are verified before they are cached or answer anybody. One that
    /// is not signed as its prefix asks is dropped and counted. Nothing is
    /// fetched: every certificate that is needed is in a file, and a Data whose
    /// signer is unknown is dropped as a forged one is. A signature takes tens
    /// of microseconds to verify; `tachonym-lab verify` measures it.
    pub verification: Vec<Verification>,
    /// The management protocol.
    pub management: Management,
    /// Where it was read, for what goes wrong later.
    #[serde(skip)]
    pub origin: Origin,
}

/// What is written to standard error.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `off`, `error`, `warn`, `info`, `debug` or `trace`, or a filter of the
    /// form `info,tachonym_router=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".into(),
        }
    }
}

/// Where the router listens, and what every face may use.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Faces {
    /// Most faces that exist at once. Remote peers that write datagrams leave half of
    /// them free and those that connect a quarter; programs on this machine leave a
    /// quarter and an eighth, so that there is always room for commands. Beyond, a new
    /// peer gets the face of the remote peer whose last exchange is longest ago: of one
    /// that never had any after a second, of others after ten seconds. An exchange is a
    /// Data that the face was sent, or that it sent when asked. Where none gives way the
    /// new peer is refused; both are counted. Faces of this machine, of `[[face]]` and of
    /// commands never give way.
    pub max_faces: usize,
    /// Most faces at once that the peers at one remote address make: an IPv4 address, or
    /// 64 bits of an IPv6 address; 0: no limit. A further one replaces that of them whose
    /// last exchange is longest ago, if it is older than a second. The faces of one address
    /// also have one share, as a single face has, of pending Interests, of commands that
    /// wait or are refused, and of the memory for fragments. Faces of this machine, of
    /// `[[face]]` and of commands do not count, and have a share each. Raise it where many
    /// peers come from one address, by a proxy or a translator.
    pub max_per_source: usize,
    /// Seconds after which a face that a remote peer made is closed, if the peer has sent
    /// no Interest until then; 0: never. A command is an Interest. A router that dials
    /// this one, and then waits for Interests from here, needs 0, or a `[[face]]` here.
    pub silent_timeout_s: u64,
    /// Most bytes that wait to be sent on one face; a packet beyond is dropped
    /// and counted on that face.
    pub max_backlog_bytes: usize,
    /// Seconds after which a connection is closed whose peer takes nothing of what
    /// waits for it, or, over Unix and TCP, leaves a packet unfinished.
    pub stall_timeout_s: u64,
    /// Whether faces mark packets when their queue grows (NDNLPv2 congestion
    /// marks).
    pub congestion_marking: bool,
    /// Queue length at which a face begins to mark, in bytes.
    pub congestion_threshold_bytes: u64,
    /// First interval between two marks, in milliseconds.
    pub congestion_interval_ms: u64,
    /// Receive buffer asked of the kernel for each UDP socket, in bytes; a stranger
    /// with a socket of its own gets a quarter, or 256 KiB if that is more. The
    /// kernel grants no more than `net.core.rmem_max` without privilege.
    pub socket_buffer_bytes: usize,
    /// Unix stream sockets, for programs on this machine.
    pub unix: Unix,
    /// UDP unicast.
    pub udp: Udp,
    /// TCP.
    pub tcp: Tcp,
    /// WebSocket: binary messages, one packet each.
    pub websocket: WebSocket,
    /// UDP multicast groups, each on one network interface. None unless listed.
    pub multicast: Vec<Multicast>,
}

impl Default for Faces {
    fn default() -> Self {
        Self {
            max_faces: 4096,
            max_per_source: 64,
            silent_timeout_s: 10,
            max_backlog_bytes: 16 << 20,
            stall_timeout_s: 30,
            congestion_marking: true,
            congestion_threshold_bytes: 65_536,
            congestion_interval_ms: 100,
            socket_buffer_bytes: 8 << 20,
            unix: Unix::default(),
            udp: Udp::default(),
            tcp: Tcp::default(),
            websocket: WebSocket::default(),
            multicast: Vec::new(),
        }
    }
}

/// Unix stream sockets, for programs on this machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Unix {
    /// Whether to listen.
    pub enabled: bool,
    /// Path of the socket. Empty: `/run/nfd/nfd.sock` where that can be made,
    /// else `nfd.sock` in `$XDG_RUNTIME_DIR/nfd`, else in
    /// `/tmp/tachonym-<uid>`; the choice is printed at start.
    pub path: PathBuf,
    /// Permissions of the socket, octal: who may connect to it. Other transports
    /// that are local are not restricted by it: `management.transports` says which
    /// of them carry commands.
    pub mode: String,
    /// Whether these faces count as local (see `faces.tcp.local`). `never`: for a
    /// socket at which a proxy takes the packets of other machines.
    pub local: Local,
}

impl Default for Unix {
    fn default() -> Self {
        Self {
            enabled: true,
            path: PathBuf::new(),
            mode: "0666".into(),
            local: Local::Loopback,
        }
    }
}

/// UDP unicast.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Udp {
    /// Addresses and ports to listen on. Empty: none.
    pub listen: Vec<String>,
    /// Seconds without a packet from the peer after which a face made on
    /// demand goes; 0 keeps it.
    pub idle_timeout_s: u64,
    /// Largest datagram payload sent, in bytes; larger packets leave in
    /// NDNLPv2 fragments.
    pub mtu_bytes: u64,
    /// When a face counts as local (see `faces.tcp.local`). `never`, as with NFD:
    /// programs of this machine register by `/localhop/nfd` (see
    /// `management.localhop`). With `loopback`, datagrams count whose source is a
    /// loopback address; the kernel drops those that come from other machines,
    /// unless `route_localnet` is set on an interface. Not checked here: by which
    /// interface they came.
    pub local: Local,
}

impl Default for Udp {
    fn default() -> Self {
        Self {
            listen: vec!["0.0.0.0:6363".into(), "[::]:6363".into()],
            idle_timeout_s: 600,
            mtu_bytes: 8800,
            local: Local::Never,
        }
    }
}

/// TCP.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tcp {
    /// Addresses and ports to listen on. Empty: none.
    pub listen: Vec<String>,
    /// Seconds without a packet from the peer after which a face made on
    /// demand goes; 0 keeps it until the peer closes.
    pub idle_timeout_s: u64,
    /// When a face counts as local. Local faces may use `/localhost`, which includes
    /// every command, may have local fields, and are admitted when others are not.
    /// `loopback`: if both ends are loopback addresses. `never`: for a listener
    /// behind a TLS proxy, a tunnel or a sidecar on this machine, whose connections
    /// all come from loopback addresses wherever their packets come from. Holds for
    /// faces that are dialled too, unless `[[face]]` says otherwise.
    pub local: Local,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            listen: vec!["0.0.0.0:6363".into(), "[::]:6363".into()],
            idle_timeout_s: 0,
            local: Local::Loopback,
        }
    }
}

/// WebSocket: binary messages, one packet each.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocket {
    /// Addresses and ports to listen on. Empty: none.
    pub listen: Vec<String>,
    /// Seconds without a packet from the peer after which a face made on
    /// demand goes; 0 keeps it until the peer closes.
    pub idle_timeout_s: u64,
    /// When a face counts as local (see `faces.tcp.local`). Even with `loopback`,
    /// one whose handshake has an `Origin` (a web page), `Forwarded`, `Via` or
    /// `X-Forwarded-*` (a proxy) is never local.
    pub local: Local,
    /// Origins of the web pages that may connect, such as `https://app.example` or
    /// `http://127.0.0.1:8080`; others are refused with 403. Empty: all may.
    /// Programs that send no `Origin` may connect in any case.
    pub origins: Vec<String>,
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            listen: vec!["0.0.0.0:9696".into(), "[::]:9696".into()],
            idle_timeout_s: 0,
            local: Local::Never,
            origins: Vec::new(),
        }
    }
}

/// A face to everybody in a UDP multicast group on one network interface.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// Name of the network interface, such as `eth0`.
    pub interface: String,
    /// Address of the group and port. NDN's are `224.0.23.170:56363` and
    /// `[ff02::1234]:56363`.
    #[serde(default = "ndn_group")]
    pub group: String,
    /// Most routers that a datagram passes (TTL or hop limit); 1 stays on the
    /// link.
    #[serde(default = "one_hop")]
    pub hops: u8,
    /// Largest datagram sent, in bytes; larger packets leave in fragments.
    #[serde(default = "ethernet_payload")]
    pub mtu_bytes: u64,
}

/// The group of NDN over IPv4.
fn ndn_group() -> String {
    "224.0.23.170:56363".into()
}

fn one_hop() -> u8 {
    1
}

/// What an Ethernet frame holds of a UDP datagram over IPv6.
fn ethernet_payload() -> u64 {
    1452
}

/// Sizes of the tables. Each is a hard limit: reaching it is counted and
/// answered, never exceeded.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    /// Most pending Interests.
    pub pit_entries: usize,
    /// Most bytes that pending Interests may hold.
    pub pit_bytes: usize,
    /// Most Data packets in the content store.
    pub cs_packets: usize,
    /// Most bytes of Data packets in the content store. What its policy remembers of names
    /// comes on top: `tachonym cs stats` tells how much.
    pub cs_bytes: usize,
    /// How pending Interests and cached Data are found.
    pub index: TableIndex,
    /// Whether pending Interests and cached Data are found in a table each or in one. Both
    /// answer alike.
    pub pit_cs: PitCsLayout,
    /// Most routes in the RIB, and so prefixes in the FIB.
    pub routes: usize,
    /// Most bytes of the names of all prefixes with routes together.
    pub route_bytes: usize,
    /// In which order the FIB is asked for the prefixes of a name. All answer alike.
    pub fib_engine: FibEngine,
    /// When the FIB compares names, rather than hashes of them.
    pub fib_matching: FibMatching,
    /// Level pulling: a prefix that more than so many different components follow is one
    /// below which searches begin, whatever the engine; 0: none, else at least 8. For FIBs
    /// of which a large part is behind a few prefixes, like /com.
    pub fib_level_pulling: u32,
    /// Milliseconds for which a dead Interest's nonce is remembered; at least
    /// 6000. Where `dead_nonces` are too few for so long, the oldest go earlier.
    pub dead_nonce_ms: u64,
    /// Most nonces of dead Interests: of those that nobody answered in `dead_nonce_ms`.
    /// Each takes 32 to 45 bytes.
    pub dead_nonces: usize,
    /// The function that hashes names, under a key that is new at each start.
    /// `auto` is the fastest on this processor.
    pub name_hash: NameHash,
    /// Most Data that are remembered as verified, so that none is verified
    /// twice; each takes 20 bytes, and 0 remembers none. Only with
    /// `[[verification]]`.
    pub verified_data: usize,
}

/// In which order the FIB is asked for the prefixes of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FibEngine {
    /// The longest first. Routes cost least memory, and change fastest.
    #[default]
    LongestFirst,
    /// First the length that most prefixes have, then longer or shorter ones. For names
    /// much longer than their prefixes.
    TwoStage,
    /// By halves of the lengths that are left. For prefixes of many lengths.
    BinarySearch,
    /// The shortest first. For FIBs whose prefixes are short.
    ShortestFirst,
}

/// When the FIB compares names, rather than hashes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FibMatching {
    /// Once, at the end of a search.
    #[default]
    AtEnd,
    /// Whenever hashes agree.
    Always,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            pit_entries: 262_144,
            pit_bytes: 256 << 20,
            cs_packets: 65_536,
            cs_bytes: 256 << 20,
            index: TableIndex::default(),
            pit_cs: PitCsLayout::default(),
            routes: 10_000_000,
            route_bytes: 256 << 20,
            fib_engine: FibEngine::default(),
            fib_matching: FibMatching::default(),
            fib_level_pulling: 0,
            dead_nonce_ms: 6000,
            dead_nonces: 1 << 20,
            name_hash: NameHash::default(),
            verified_data: 65_536,
        }
    }
}

/// The function that hashes names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameHash {
    /// `multilinear-aes` if the processor has instructions for AES, else
    /// `siphash-1-3`.
    #[default]
    Auto,
    /// Universal hashing, then AES-128.
    MultilinearAes,
    /// SipHash with 1 and 3 rounds.
    #[serde(rename = "siphash-1-3")]
    SipHash13,
    /// SipHash with 2 and 4 rounds.
    #[serde(rename = "siphash-2-4")]
    SipHash24,
}

impl NameHash {
    /// The function on this processor.
    #[must_use]
    pub fn kind(self) -> HashKind {
        match self {
            Self::Auto => HashKind::fastest(),
            Self::MultilinearAes => HashKind::MultilinearAes,
            Self::SipHash13 => HashKind::SipHash13,
            Self::SipHash24 => HashKind::SipHash24,
        }
    }
}

/// What pages the memory of the tables should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TablePages {
    /// The largest of which enough are free.
    #[default]
    Auto,
    /// 1 GiB pages of the kernel's pool.
    #[serde(rename = "1g")]
    Huge1G,
    /// 2 MiB pages of the kernel's pool.
    #[serde(rename = "2m")]
    Huge2M,
    /// As the kernel finds 2 MiB pages.
    Transparent,
    /// The smallest pages.
    Base,
}

impl From<TablePages> for PagePreference {
    fn from(pages: TablePages) -> Self {
        match pages {
            TablePages::Auto => Self::Auto,
            TablePages::Huge1G => Self::Huge1G,
            TablePages::Huge2M => Self::Huge2M,
            TablePages::Transparent => Self::Transparent,
            TablePages::Base => Self::Base,
        }
    }
}

/// The memory of the tables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// What pages the FIB and the indexes of the other tables should have. `1g` and
    /// `2m` are pages of the kernel's pool (`sysctl vm.nr_hugepages`), which it takes
    /// as it grows; `transparent` leaves it to the kernel to find 2 MiB pages; `base`
    /// are its smallest pages. Where there are too few of a kind, a table gets the next
    /// smaller one for the rest. `auto` takes pages of the pool if there are enough
    /// for all of a growth, else transparent ones. `tachonym status` tells what
    /// was got.
    pub pages: TablePages,
}

/// How pending Interests and cached Data are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableIndex {
    /// In one cache line, or its neighbour if that is full.
    #[default]
    Single,
    /// In the emptier of two cache lines: fuller tables, more reads.
    DLeft,
}

/// Whether pending Interests and cached Data are found in one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PitCsLayout {
    /// Each kind in a table of its own.
    Separate,
    /// Both in one: a packet looks in one place, and a Data that is cached takes that of
    /// the Interest that it answers.
    #[default]
    Composite,
}

/// Which Data is cached although nobody asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnsolicitedData {
    /// None: it is dropped.
    #[default]
    DropAll,
    /// What comes from programs on this machine.
    AdmitLocal,
    /// What comes from the network.
    AdmitNetwork,
    /// All of it.
    AdmitAll,
}

/// In which order the packets of a burst are hashed, fetched for and carried. No
/// outcome depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Nothing is fetched ahead.
    Naive,
    /// A packet's hash buckets are fetched when its name is hashed.
    BucketPrefetch,
    /// The next packet is hashed, and its buckets fetched, before a packet is carried.
    PreHash,
    /// As `pre-hash`, and the next packet's table entries are fetched too.
    Shtl,
    /// The whole burst is hashed first and fetched for as memory allows.
    #[default]
    Burst,
}

/// How packets are forwarded.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Forwarding {
    /// Longest time that an Interest stays pending, in milliseconds, whatever its
    /// InterestLifetime: else a peer could fill the table for good.
    pub max_interest_lifetime_ms: u64,
    /// Which Data is cached although nobody asked for it.
    pub unsolicited_data: UnsolicitedData,
    /// Name prefixes of the producer region: a forwarding hint that names one
    /// of them has arrived and is stripped.
    pub producer_region: Vec<String>,
    /// Whether an Interest with parameters is dropped unless the digest in its
    /// name is theirs. Costs a SHA-256 each; producers check it anyway.
    pub verify_parameters_digest: bool,
    /// In which order the packets of a burst are hashed, fetched for and carried.
    pub schedule: Schedule,
    /// How many packets are fetched for together with `burst`, 1 to 64: too few, and
    /// memory is waited for; too many, and what was fetched is gone from the cache again.
    /// `tachonym-lab distance` measures what is best on a machine.
    pub burst_distance: u8,
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            max_interest_lifetime_ms: 60_000,
            unsolicited_data: UnsolicitedData::default(),
            producer_region: Vec::new(),
            verify_parameters_digest: false,
            schedule: Schedule::default(),
            burst_distance: BURST_DISTANCE as u8,
        }
    }
}

/// A strategy for a prefix.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrategyChoice {
    /// Name prefix.
    pub prefix: String,
    /// `best-route`, `multicast`, `random`, `asf`, `access`, `self-learning`, or a
    /// full strategy name such as `/localhost/nfd/strategy/best-route/v=5`.
    /// `self-learning` needs `management.announcements.learn`, or it asks all
    /// neighbours for every Interest without a route.
    pub strategy: String,
}

/// Whether a face outlives failures and idleness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Persistency {
    /// Goes when it fails.
    Persistent,
    /// Stays, and reconnects by itself.
    Permanent,
}

/// A face made at start.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticFace {
    /// Remote FaceUri: `udp4://192.0.2.1:6363`, `tcp6://[2001:db8::1]:6363`,
    /// `ws://192.0.2.1:9696`, `unix:///run/other.sock`.
    pub remote: String,
    /// Local FaceUri, of the remote's scheme; without a port, or with 0: the
    /// system chooses one. Absent: the router chooses.
    #[serde(default)]
    pub local: Option<String>,
    /// Whether the face outlives failures; absent: it is permanent, except that
    /// one to a Unix socket is persistent.
    #[serde(default)]
    pub persistency: Option<Persistency>,
    /// Largest frame sent, in bytes; absent: the transport's default.
    #[serde(default)]
    pub mtu_bytes: Option<u64>,
    /// Whether lost frames are sent again (NDNLPv2 reliability).
    #[serde(default)]
    pub reliability: bool,
    /// Whether the face marks packets when its queue grows; absent: as
    /// `faces.congestion_marking` says.
    #[serde(default)]
    pub congestion_marking: Option<bool>,
    /// Whether the peer is told where packets came from and may choose next hops
    /// (NDNLPv2 local fields); only for programs on this machine.
    #[serde(default)]
    pub local_fields: bool,
    /// When the face counts as local (see `faces.tcp.local`); absent: as its
    /// transport's `local` says. `never`: for a neighbour behind a tunnel that ends
    /// on this machine.
    #[serde(default)]
    pub locality: Option<Local>,
}

/// A route made at start.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticRoute {
    /// Name prefix.
    pub prefix: String,
    /// Remote FaceUri of the next hop; a face is made if none has it. With the
    /// group of `[[faces.multicast]]`, the route is by each face to that group.
    pub next_hop: String,
    /// Cost; the cheapest next hop is asked first.
    #[serde(default)]
    pub cost: u64,
}

/// The management protocol.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Management {
    /// Commands that wait for the manager; one more is dropped and counted.
    pub queue_commands: usize,
    /// Who may command what over faces of this machine. A command is obeyed if
    /// one of the rules allows it. Without rules every signed command that comes
    /// over one of `transports` is obeyed. To restrict who may command, name
    /// signers here; or write `transports = ["unix"]` and restrict who reaches the
    /// Unix socket with `faces.unix.mode`.
    pub authorize: Vec<Authorize>,
    /// Over which transports commands under `/localhost/nfd` are obeyed, if their
    /// faces are local at all: `unix`, `tcp`, `udp`, `websocket`. Local faces of
    /// others read datasets; their commands are refused with 403 and counted
    /// (`command-transport`). Any user of this machine can connect over TCP.
    pub transports: Vec<Transport>,
    /// Whether neighbours may register routes to themselves, by commands under
    /// `/localhop/nfd/rib`. Programs of this machine that use UDP or WebSocket are
    /// neighbours in this sense.
    pub localhop: Localhop,
    /// Whose prefix announcements count: those of programs here (`rib/announce`)
    /// and, with `learn`, those that Data bring to names whose strategy is
    /// `self-learning`. A signer announces what is under its identity (`names`), and
    /// none `/`, `/localhost` or `/localhop`. The route costs what the announcement
    /// says, or 2048. Without `any` and `anchors` programs on this machine may announce
    /// any other prefix, neighbours what they may register, and nothing is learnt.
    pub announcements: Announcements,
}

impl Default for Management {
    fn default() -> Self {
        Self {
            queue_commands: 4096,
            authorize: Vec::new(),
            transports: vec![Transport::Unix, Transport::Tcp],
            localhop: Localhop::default(),
            announcements: Announcements::default(),
        }
    }
}

/// Opens modules to signers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Authorize {
    /// Modules that are opened: `faces`, `fib`, `rib`, `cs`,
    /// `strategy-choice`, `workers`.
    pub modules: Vec<String>,
    /// Accept any signer; digests are verified, keys believed.
    #[serde(default)]
    pub any: bool,
    /// Files of certificates that are trusted, and so are those that they have
    /// issued: as `tachonym keys` and `ndnsec cert-dump` write them.
    #[serde(default)]
    pub anchors: Vec<PathBuf>,
    /// Files of certificates between an anchor and a signer.
    #[serde(default)]
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    #[serde(default)]
    pub signers_under: Option<String>,
}
