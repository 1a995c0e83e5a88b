//! UDP sockets, which many faces may share.
//!
//! A listening socket serves every peer that writes to it, but for those that
//! have a branch: a socket at the same address that is connected to one peer. A
//! dialled one is connected to a single peer; a multicast one reaches a group.
//! Owns the socket, the peers by their addresses, and the order in which their
//! queues are sent. Frames are grouped into messages here; faces and their queues
//! belong to the caller.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hashbrown::HashMap;
use rustix::net::netdevice;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockFilter, Socket, Type};
use tachonym_packet::FaceId;

use crate::options::{LinkOptions, Loopback, MulticastOptions, Offload, UdpOptions};
use crate::poller::SocketKey;
use crate::sys::option;
use crate::sys::udp::MAX_RECEIVED;
use crate::turns::Turns;

/// Largest payload of one UDP message, segmented or not.
const MAX_MESSAGE_BYTES: usize = 65_507;
/// Strangers get this part of the usual buffers, but no less than so many bytes if
/// the usual ones have them.
const STRANGER_BUFFER_PART: usize = 4;
const MIN_STRANGER_BUFFER_BYTES: usize = 256 << 10;
/// Segments that every kernel with GSO accepts in one message.
const MAX_SEGMENTS: usize = 64;

/// What a UDP socket is for.
pub(crate) enum UdpRole {
    /// Strangers may write to it and get faces.
    Channel(ChannelDefaults),
    /// Bound to a local address for dialled faces only.
    Dialled,
    /// Connected to the one peer of one face.
    Connected,
    /// Bound where a channel is, and connected to one of its peers, from which it
    /// receives.
    Branch(Branch),
    /// All of one multicast face.
    Multicast {
        face: FaceId,
        group: SocketAddr,
        /// Our own address, if what we send comes back.
        own: Option<SocketAddr>,
    },
}

/// A peer's own socket beside that of the channel: its datagrams have a queue of
/// their own in the kernel, which nobody else can fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    pub(crate) channel: SocketKey,
    pub(crate) face: FaceId,
    pub(crate) peer: SocketAddr,
    pub(crate) kind: BranchKind,
}

/// Why a peer has a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchKind {
    /// Its face was configured, or made by command.
    Asked,
    /// It came by itself, and sends much.
    Stranger,
}

/// What on-demand faces of a channel are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelDefaults {
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) link: LinkOptions,
    pub(crate) mtu_bytes: usize,
    /// The channel is this system's, not its part of a sibling's.
    pub(crate) is_told: bool,
}

/// See the module documentation.
pub(crate) struct UdpSocket {
    socket: Socket,
    /// Tells it from earlier sockets in the same place.
    pub(crate) generation: u32,
    pub(crate) role: UdpRole,
    pub(crate) local: SocketAddr,
    pub(crate) peers: HashMap<SocketAddr, FaceId, foldhash::fast::RandomState>,
    /// Faces with frames to send.
    pub(crate) dirty: Vec<FaceId>,
    /// The kernel takes no more; readiness for writing is waited for.
    pub(crate) is_blocked: bool,
    pub(crate) has_gso: bool,
    /// The receive queue was more than a quarter full at the last look.
    pub(crate) is_congested: bool,
    /// Size of the receive queue; 0 if the kernel does not tell.
    capacity_bytes: usize,
    /// Drops that the kernel had counted at the last look.
    pub(crate) n_kernel_drops: u32,
    /// Messages that a read brings.
    pub(crate) turns: Turns,
}

impl UdpSocket {
    fn new(socket: Socket, role: UdpRole, options: UdpOptions) -> io::Result<Self> {
        let fd = socket.as_fd();
        let has_gso = options.offload == Offload::Auto && option::has_udp_gso(fd);
        if options.offload == Offload::Auto {
            // Without it datagrams come one by one.
            let _ = option::enable_udp_gro(fd);
        }
        let local = socket
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut made = Self {
            socket,
            generation: 0,
            role,
            local,
            peers: HashMap::default(),
            dirty: Vec::new(),
            is_blocked: false,
            has_gso,
            is_congested: false,
            capacity_bytes: 0,
            n_kernel_drops: 0,
            turns: Turns::new(1, MAX_RECEIVED),
        };
        made.size_buffers(options);
        made.look_at_queue(0);
        Ok(made)
    }

    /// A socket bound to `addr`, for several peers.
    pub(crate) fn bind(addr: SocketAddr, role: UdpRole, options: UdpOptions) -> io::Result<Self> {
        let socket = new_socket(addr)?;
        if addr.ip().is_unspecified() {
            // Answers must leave from the address that was written to.
            option::enable_packet_info(socket.as_fd(), addr.is_ipv4())?;
        }
        socket.bind(&addr.into())?;
        if matches!(role, UdpRole::Channel(_)) {
            // For branches. Only now: where somebody listens already, binding has
            // to fail.
            let _ = socket.set_reuse_port(true);
        }
        Self::new(socket, role, options)
    }

    /// One of the sockets of [`bind_group`], which hears nothing as yet.
    pub(crate) fn of_group(socket: Socket, role: UdpRole, options: UdpOptions) -> io::Result<Self> {
        Self::new(socket, role, options)
    }

    /// Lets a socket of a group hear.
    pub(crate) fn hear(&mut self) -> io::Result<()> {
        // What came before was not for it.
        self.look_at_queue(0);
        self.socket.detach_filter()
    }

    /// A socket at `local`, where a channel is bound, for the peer of `branch`.
    pub(crate) fn branch(
        local: SocketAddr,
        branch: Branch,
        options: UdpOptions,
    ) -> io::Result<Self> {
        let socket = new_socket(local)?;
        socket.set_reuse_port(true)?;
        socket.bind(&local.into())?;
        socket.connect(&branch.peer.into())?;
        Self::new(socket, UdpRole::Branch(branch), options)
    }

    /// Buffers as large as the system lets them be, and strangers' smaller.
    pub(crate) fn size_buffers(&self, options: UdpOptions) {
        let size = |usual: usize| match &self.role {
            UdpRole::Branch(branch) if branch.kind == BranchKind::Stranger => {
                (usual / STRANGER_BUFFER_PART).max(usual.min(MIN_STRANGER_BUFFER_BYTES))
            }
            _ => usual,
        };
        let _ = option::set_receive_buffer(self.fd(), size(options.receive_buffer_bytes));
        let _ = option::set_send_buffer(self.fd(), options.send_buffer_bytes);
    }

    /// Our address that the peer of a branch writes to.
    pub(crate) fn branch_ip(&self) -> Option<IpAddr> {
        matches!(self.role, UdpRole::Branch(_)).then(|| self.local.ip())
    }

    /// Whether nothing waits to be read.
    pub(crate) fn has_nothing(&self) -> bool {
        option::receive_queue(self.fd()).is_ok_and(|queue| queue.used_bytes == 0)
    }

    /// The face of its peer, if it is connected to one.
    pub(crate) fn only_face(&self) -> Option<FaceId> {
        match &self.role {
            UdpRole::Connected => self.peers.values().next().copied(),
            UdpRole::Branch(branch) => Some(branch.face),
            _ => None,
        }
    }

    /// A socket connected to `remote`.
    pub(crate) fn connect(
        remote: SocketAddr,
        local: Option<SocketAddr>,
        options: UdpOptions,
    ) -> io::Result<Self> {
        let socket = new_socket(remote)?;
        if let Some(local) = local {
            socket.bind(&local.into())?;
        }
        socket.connect(&remote.into())?;
        Self::new(socket, UdpRole::Connected, options)
    }

    /// A socket of the group and interface that `multicast` names.
    pub(crate) fn join(
        multicast: &MulticastOptions,
        face: FaceId,
        options: UdpOptions,
    ) -> io::Result<Self> {
        let socket = new_socket(multicast.group)?;
        let index = netdevice::name_to_index(&socket, &multicast.interface)?;
        let mut group = multicast.group;
        if let SocketAddr::V6(v6) = &mut group {
            v6.set_scope_id(index);
        }
        // Other programs, and our own faces on other interfaces, share the
        // port; each socket hears its own interface only.
        socket.set_reuse_address(true)?;
        socket.bind(&group.into())?;
        match group {
            SocketAddr::V4(v4) => {
                let interface = InterfaceIndexOrAddress::Index(index);
                socket.set_multicast_all_v4(false)?;
                socket.join_multicast_v4_n(v4.ip(), &interface)?;
            }
            SocketAddr::V6(v6) => {
                // Kernels before 4.20 lack it and hear all interfaces.
                let _ = socket.set_multicast_all_v6(false);
                socket.join_multicast_v6(v6.ip(), index)?;
            }
        }
        configure_multicast_sending(&socket, &group, index, multicast)?;
        let own = match multicast.loopback {
            Loopback::Off => None,
            Loopback::On => own_address(&group, index, multicast),
        };
        let role = UdpRole::Multicast { face, group, own };
        Self::new(socket, role, options)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether one of its addresses would have to be chosen for each peer.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// Whether so much at once shows that the receive queue fills up.
    #[inline]
    pub(crate) fn was_filling(&self, taken_bytes: usize) -> bool {
        taken_bytes > self.capacity_bytes / 8
    }

    /// Looks how full the receive queue was, before `taken_bytes` were taken
    /// from it: what is left of a small one tells nothing. Returns how many
    /// datagrams the kernel has dropped since the last look.
    pub(crate) fn look_at_queue(&mut self, taken_bytes: usize) -> u64 {
        let Ok(queue) = option::receive_queue(self.fd()) else {
            self.is_congested = false;
            return 0;
        };
        self.capacity_bytes = queue.capacity_bytes as usize;
        self.is_congested = queue.used_bytes as usize + taken_bytes > self.capacity_bytes / 4;
        let n_drops = queue.n_drops.wrapping_sub(self.n_kernel_drops);
        self.n_kernel_drops = queue.n_drops;
        u64::from(n_drops)
    }
}

fn new_socket(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(addr),
        Type::DGRAM.nonblocking(),
        Some(Protocol::UDP),
    )?;
    if addr.is_ipv6() {
        // IPv4 has sockets of its own.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Binds `n_sockets` to `addr`, among which the kernel will choose, in the order
/// of their group. They are deaf: datagrams are dropped as if nobody was there yet,
/// so that none reaches one while the group is not complete.
///
/// The first binds alone and lets others join only after that, so that this fails
/// where somebody listens already, whoever it is.
pub(crate) fn bind_group(addr: SocketAddr, n_sockets: usize) -> io::Result<Vec<Socket>> {
    let mut addr = addr;
    let mut sockets: Vec<Socket> = Vec::with_capacity(n_sockets);
    for i in 0..n_sockets {
        let socket = new_socket(addr)?;
        if addr.ip().is_unspecified() {
            option::enable_packet_info(socket.as_fd(), addr.is_ipv4())?;
        }
        socket.attach_filter(&[SockFilter::new(
            (libc::BPF_RET | libc::BPF_K) as u16,
            0,
            0,
            0,
        )])?;
        if i > 0 {
            socket.set_reuse_port(true)?;
        }
        socket.bind(&addr.into())?;
        if i == 0 {
            socket.set_reuse_port(true)?;
            addr = socket.local_addr()?.as_socket().unwrap_or(addr);
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

/// The address that a datagram to `remote` would leave from.
pub(crate) fn source_towards(remote: SocketAddr) -> io::Result<IpAddr> {
    let probe = new_socket(remote)?;
    probe.connect(&remote.into())?;
    let local = probe.local_addr()?.as_socket();
    Ok(local.ok_or(io::ErrorKind::AddrNotAvailable)?.ip())
}

fn configure_multicast_sending(
    socket: &Socket,
    group: &SocketAddr,
    index: u32,
    multicast: &MulticastOptions,
) -> io::Result<()> {
    let loops = multicast.loopback == Loopback::On;
    let hops = u32::from(multicast.hops);
    match group {
        SocketAddr::V4(_) => {
            option::set_multicast_interface_v4(socket.as_fd(), index)?;
            socket.set_multicast_loop_v4(loops)?;
            socket.set_multicast_ttl_v4(hops)
        }
        SocketAddr::V6(_) => {
            socket.set_multicast_if_v6(index)?;
            socket.set_multicast_loop_v6(loops)?;
            socket.set_multicast_hops_v6(hops)
        }
    }
}

/// The address that our datagrams to `group` come from.
fn own_address(group: &SocketAddr, index: u32, multicast: &MulticastOptions) -> Option<SocketAddr> {
    let probe = new_socket(*group).ok()?;
    configure_multicast_sending(&probe, group, index, multicast).ok()?;
    probe.connect(&(*group).into()).ok()?;
    let mut own = probe.local_addr().ok()?.as_socket()?;
    own.set_port(group.port());
    Some(own)
}

/// A run of frames that leaves as one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) n_frames: usize,
    pub(crate) n_bytes: usize,
    /// Size of each frame but the last, if there are several.
    pub(crate) segment_bytes: Option<u16>,
}

/// The longest run at the front of frames with these lengths that one message
/// may carry: equal sizes, and after them a smaller one. Frames larger than
/// `max_segment_bytes` go alone.
pub(crate) fn next_run(lens: &[u32], max_segment_bytes: u32) -> Run {
    let Some(&first) = lens.first() else {
        return Run {
            n_frames: 0,
            n_bytes: 0,
            segment_bytes: None,
        };
    };
    let alone = Run {
        n_frames: 1,
        n_bytes: first as usize,
        segment_bytes: None,
    };
    let Ok(segment) = u16::try_from(first) else {
        return alone;
    };
    if first > max_segment_bytes {
        return alone;
    }
    let mut run = alone;
    for &len in lens[1..].iter().take(MAX_SEGMENTS - 1) {
        let n_bytes = run.n_bytes + len as usize;
        if len > first || n_bytes > MAX_MESSAGE_BYTES {
            break;
        }
        run = Run {
            n_frames: run.n_frames + 1,
            n_bytes,
            segment_bytes: Some(segment),
        };
        if len < first {
            break;
        }
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(lens: &[u32], max_segment_bytes: u32) -> Vec<usize> {
        let mut rest = lens;
        let mut all = Vec::new();
        while !rest.is_empty() {
            let run = next_run(rest, max_segment_bytes);
            all.push(run.n_frames);
            rest = &rest[run.n_frames..];
        }
        all
    }

    #[test]
    fn equal_frames_and_one_smaller_make_a_run() {
        assert_eq!(runs(&[9, 9, 9, 4, 9, 9], 100), [4, 2]);
        assert_eq!(runs(&[4, 9, 9], 100), [1, 2]);
        assert_eq!(runs(&[9, 9, 4, 4], 8), [1, 1, 2]);
        assert_eq!(runs(&[9, 9], 0), [1, 1]);
        assert!(runs(&[], 100).is_empty());
    }

    #[test]
    fn a_run_stays_within_a_message() {
        assert_eq!(runs(&[100; 130], 2000), [64, 64, 2]);
        assert_eq!(runs(&[8800; 8], 8800), [7, 1]);
    }

    proptest! {
        #[test]
        fn the_kernel_would_cut_a_run_into_the_same_frames(
            lens in prop::collection::vec(1..9000_u32, 1..200),
            max in 0..9000_u32,
        ) {
            let mut rest = &lens[..];
            while !rest.is_empty() {
                let run = next_run(rest, max);
                let frames = &rest[..run.n_frames];
                let total: usize = frames.iter().map(|&len| len as usize).sum();
                prop_assert_eq!(total, run.n_bytes);
                let segment = run.segment_bytes.map_or(total, usize::from);
                let cut: Vec<u32> = (0..total)
                    .step_by(segment)
                    .map(|at| segment.min(total - at) as u32)
                    .collect();
                prop_assert_eq!(&cut[..], frames);
                rest = &rest[run.n_frames..];
            }
        }
    }
}
