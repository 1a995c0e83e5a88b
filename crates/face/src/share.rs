//! Several face systems of one router, a thread each.
//!
//! [`SystemShare`] says which of them a system is: from that follow the numbers of
//! its faces and its part of the limits. Owns what the systems hand each other:
//! connections that one has accepted for another, sockets at an address where all
//! listen, and the rule by which the kernel spreads UDP peers over these. Locks are
//! taken when a connection, a listener or an unknown peer comes, never for a packet
//! of a face. Next: `steering` for the rule, `system/siblings.rs` for how a system
//! uses this.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::{SockAddr, Socket};
use tachonym_packet::FaceId;
use tachonym_protocol::FaceUri;

use crate::options::ChannelOptions;
use crate::source::FaceCounts;
use crate::steering::{Family, Steering};
use crate::sys::filter;
use crate::transport::udp::UdpSocket;
use crate::waker::Waker;

/// Connections that wait for one system; further ones go to others.
const MAX_WAITING: usize = 64;

/// Which of the face systems of one router a system is.
///
/// The default is the whole router. The shares that [`SystemShare::split`]
/// returns belong together: [`crate::FaceSystem::listen`] of one of their systems
/// lets all of them listen, no two give a face the same number, and
/// [`SystemShare::owner_of`] tells from a number whose face it is. Each is good for
/// one system; all systems have to be polled for as long as one listens.
#[derive(Clone, Default)]
pub struct SystemShare {
    index: usize,
    siblings: Option<Arc<Siblings>>,
}

impl SystemShare {
    /// Most systems of one router.
    pub const MAX_SYSTEMS: usize = crate::steering::MAX_SOCKETS;

    /// The shares of `n_systems` systems, in their order: the whole for one.
    ///
    /// # Panics
    /// If that is none, or more than [`SystemShare::MAX_SYSTEMS`].
    #[must_use]
    pub fn split(n_systems: usize) -> Vec<Self> {
        assert!(
            (1..=Self::MAX_SYSTEMS).contains(&n_systems),
            "{n_systems} face systems"
        );
        if n_systems == 1 {
            return vec![Self::default()];
        }
        let siblings = Arc::new(Siblings {
            members: (0..n_systems).map(|_| Member::default()).collect(),
            next: AtomicUsize::new(0),
            groups: Mutex::new(Groups {
                steering: Steering::new(n_systems),
                sockets: Vec::new(),
            }),
            face_counts: Mutex::default(),
        });
        (0..n_systems)
            .map(|index| Self {
                index,
                siblings: Some(Arc::clone(&siblings)),
            })
            .collect()
    }

    /// Which system it is, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many systems there are.
    #[must_use]
    pub fn n_systems(&self) -> usize {
        self.siblings.as_ref().map_or(1, |all| all.members.len())
    }

    /// The index of the system that gives out, or gave, this number; `None` if none
    /// does: it is one of those that the protocol keeps for itself.
    #[must_use]
    pub fn owner_of(&self, face: FaceId) -> Option<usize> {
        let count = face.0.checked_sub(FaceId::FIRST_DYNAMIC.0)?;
        Some((count % self.n_systems() as u64) as usize)
    }

    /// The first number that the system gives a face; each further one is larger by
    /// the number of systems.
    pub(crate) fn first_face(&self) -> FaceId {
        FaceId(FaceId::FIRST_DYNAMIC.0 + self.index as u64)
    }

    /// The system's part of what all may have together; the parts add up.
    pub(crate) fn part_of(&self, total: usize) -> usize {
        let n_systems = self.n_systems();
        total / n_systems + usize::from(self.index < total % n_systems)
    }

    pub(crate) fn siblings(&self) -> Option<&Arc<Siblings>> {
        self.siblings.as_ref()
    }
}

impl fmt::Debug for SystemShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemShare({} of {})", self.index, self.n_systems())
    }
}

/// What accepted connections need of their listener.
pub(crate) struct Origin {
    pub(crate) kind: ListenerKind,
    pub(crate) local: FaceUri,
    pub(crate) options: ChannelOptions,
}

#[derive(Clone, Copy)]
pub(crate) enum ListenerKind {
    Unix,
    Tcp,
    WebSocket,
}

/// What one system hands to another.
pub(crate) enum Delivery {
    /// A connection that it has accepted.
    Connection {
        origin: Arc<Origin>,
        socket: Socket,
        peer: SockAddr,
        ticket: Ticket,
    },
    /// The other's socket at an address where all listen.
    Channel(Box<UdpSocket>),
    /// Nobody listens there any more.
    CloseChannel(SocketAddr),
    /// A face of another system was asked for: what this peer writes goes there.
    PeerMoved(SocketAddr),
}

/// All systems of one router.
pub(crate) struct Siblings {
    members: Box<[Member]>,
    /// Whose turn it is among those who have as few connections.
    next: AtomicUsize,
    groups: Mutex<Groups>,
    /// Faces of remote sources, in all systems together.
    face_counts: Mutex<FaceCounts>,
}

/// What the others know of a system.
#[derive(Default)]
struct Member {
    /// A system has been made of the share.
    is_claimed: AtomicBool,
    /// It can take connections.
    is_there: AtomicBool,
    /// Connections that are its, or wait for it.
    n_connections: AtomicUsize,
    has_deliveries: AtomicBool,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    deliveries: VecDeque<Delivery>,
    waker: Option<Waker>,
    /// The system is gone.
    is_closed: bool,
}

/// The sockets that share an address, and who gets what comes there.
struct Groups {
    steering: Steering,
    sockets: Vec<Group>,
}

/// One address where all systems listen.
struct Group {
    /// The system that was told to listen.
    opener: usize,
    local: SocketAddr,
    /// Its socket, which stands for the group.
    socket: Socket,
}

impl Groups {
    fn attach(&self, family: Family) -> io::Result<()> {
        let program = self.steering.program(family);
        self.sockets
            .iter()
            .filter(|group| Family::of(&group.local) == family)
            .try_for_each(|group| filter::attach_to_group(group.socket.as_fd(), &program))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What they hold is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Siblings {
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Reads or changes how many faces remote sources have.
    pub(crate) fn change_face_counts<T>(&self, change: impl FnOnce(&mut FaceCounts) -> T) -> T {
        change(&mut lock(&self.face_counts))
    }

    /// The system that a new connection goes to: the one with the fewest, of those
    /// that take what waits for them. `own` is that which asks.
    pub(crate) fn next_for_connection(self: &Arc<Self>, own: usize) -> (usize, Ticket) {
        let n_systems = self.members.len();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let fewest = (0..n_systems)
            .map(|i| (first + i) % n_systems)
            .filter(|&index| self.members[index].is_there.load(Ordering::Acquire))
            .filter(|&index| index == own || lock(&self.members[index].inbox).has_room())
            .min_by_key(|&index| self.members[index].n_connections.load(Ordering::Relaxed));
        let index = fewest.unwrap_or(own);
        (index, Ticket::new(self, index))
    }

    /// Hands something to the system `index`, which drops it if it is gone.
    pub(crate) fn deliver(&self, index: usize, delivery: Delivery) {
        let member = &self.members[index];
        let mut inbox = lock(&member.inbox);
        if inbox.is_closed {
            return;
        }
        inbox.deliveries.push_back(delivery);
        member.has_deliveries.store(true, Ordering::Release);
        // One that is yet to be made finds it then.
        if let Some(waker) = &inbox.waker {
            waker.wake();
        }
    }

    /// The next thing for the system `index`. Almost free if there is none.
    pub(crate) fn take(&self, index: usize) -> Option<Delivery> {
        let member = &self.members[index];
        if !member.has_deliveries.load(Ordering::Acquire) {
            return None;
        }
        let mut inbox = lock(&member.inbox);
        let delivery = inbox.deliveries.pop_front();
        if inbox.deliveries.is_empty() {
            member.has_deliveries.store(false, Ordering::Release);
        }
        delivery
    }

    /// Whether there is something for the system `index`.
    pub(crate) fn has_deliveries(&self, index: usize) -> bool {
        self.members[index].has_deliveries.load(Ordering::Acquire)
    }

    /// Lets the kernel choose among `sockets`, bound to one address and put into
    /// their group in the order of the systems that they are for.
    /// Returns their address.
    pub(crate) fn add_group(&self, opener: usize, sockets: &[Socket]) -> io::Result<SocketAddr> {
        let socket = sockets.get(opener).ok_or(io::ErrorKind::InvalidInput)?;
        let socket = socket.try_clone()?;
        let local = socket.local_addr()?.as_socket();
        let local = local.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut groups = lock(&self.groups);
        let program = groups.steering.program(Family::of(&local));
        filter::attach_to_group(socket.as_fd(), &program)?;
        groups.sockets.push(Group {
            opener,
            local,
            socket,
        });
        Ok(local)
    }

    /// Forgets the group at `local`.
    pub(crate) fn remove_group(&self, local: &SocketAddr) {
        lock(&self.groups)
            .sockets
            .retain(|group| group.local != *local);
    }

    /// The system to which the kernel gives what `peer` writes to a listener.
    pub(crate) fn home_of(&self, peer: &SocketAddr) -> usize {
        lock(&self.groups).steering.socket_of(peer)
    }

    /// The system to which `peer` has been moved.
    pub(crate) fn moved_to(&self, peer: &SocketAddr) -> Option<usize> {
        lock(&self.groups).steering.pinned(peer)
    }

    /// Whether one more peer could be moved.
    pub(crate) fn can_move(&self) -> bool {
        lock(&self.groups).steering.has_room()
    }

    /// Sees that what `peer` writes to listeners goes to the system `index`.
    ///
    /// # Errors
    /// The system to which it goes, if that cannot be changed.
    pub(crate) fn move_peer(&self, peer: SocketAddr, index: usize) -> Result<(), usize> {
        let mut groups = lock(&self.groups);
        let home = groups.steering.socket_of(&peer);
        if home == index {
            return Ok(());
        }
        let is_taken = groups.steering.pinned(&peer).is_some();
        if is_taken || !groups.steering.pin(peer, index) {
            return Err(home);
        }
        if groups.attach(Family::of(&peer)).is_err() {
            groups.steering.unpin(&peer, index);
            // Those that were replaced get the old program again.
            let _ = groups.attach(Family::of(&peer));
            return Err(home);
        }
        drop(groups);
        self.deliver(home, Delivery::PeerMoved(peer));
        Ok(())
    }

    /// Lets `peer` go back from the system `index`, if it has been moved there.
    pub(crate) fn release_peer(&self, peer: &SocketAddr, index: usize) {
        let mut groups = lock(&self.groups);
        if groups.steering.unpin(peer, index) {
            // A program that stays on for longer does no harm.
            let _ = groups.attach(Family::of(peer));
        }
    }
}

impl Inbox {
    fn has_room(&self) -> bool {
        self.deliveries.len() < MAX_WAITING
    }
}

/// A system's place among its siblings, until it is dropped.
pub(crate) struct Membership {
    siblings: Arc<Siblings>,
    index: usize,
}

impl Membership {
    /// Takes the place of `share`, whose owner is woken by `waker`; `None`: it has
    /// no siblings.
    ///
    /// # Errors
    /// If the share has been used: numbers of faces would come twice.
    pub(crate) fn claim(share: &SystemShare, waker: &Waker) -> io::Result<Option<Self>> {
        let Some(siblings) = share.siblings() else {
            return Ok(None);
        };
        let member = &siblings.members[share.index];
        if member.is_claimed.swap(true, Ordering::AcqRel) {
            let message = "a face system of this share has been made already";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let mut inbox = lock(&member.inbox);
        inbox.waker = Some(waker.clone());
        if !inbox.deliveries.is_empty() {
            waker.wake();
        }
        drop(inbox);
        member.is_there.store(true, Ordering::Release);
        Ok(Some(Self {
            siblings: Arc::clone(siblings),
            index: share.index,
        }))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let member = &self.siblings.members[self.index];
        member.is_there.store(false, Ordering::Release);
        let mut groups = lock(&self.siblings.groups);
        groups.sockets.retain(|group| group.opener != self.index);
        drop(groups);
        let mut inbox = lock(&member.inbox);
        inbox.is_closed = true;
        // Dropped without the lock: a ticket may be among them.
        let deliveries = std::mem::take(&mut inbox.deliveries);
        drop(inbox);
        drop(deliveries);
    }
}

/// A connection of one of several systems, counted for as long as it lives.
pub(crate) struct Ticket {
    siblings: Arc<Siblings>,
    index: usize,
}

impl Ticket {
    fn new(siblings: &Arc<Siblings>, index: usize) -> Self {
        let n_connections = &siblings.members[index].n_connections;
        n_connections.fetch_add(1, Ordering::Relaxed);
        Self {
            siblings: Arc::clone(siblings),
            index,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let n_connections = &self.siblings.members[self.index].n_connections;
        n_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_face_has_one_owner() {
        for n_systems in [1, 2, 3, 7] {
            let shares = SystemShare::split(n_systems);
            assert_eq!(shares.len(), n_systems);
            for share in &shares {
                let first = share.first_face();
                assert_eq!(share.owner_of(first), Some(share.index()));
                let later = FaceId(first.0 + 1000 * n_systems as u64);
                assert_eq!(shares[0].owner_of(later), Some(share.index()));
            }
            assert_eq!(shares[0].owner_of(FaceId(255)), None);
        }
    }

    #[test]
    fn the_parts_of_a_limit_add_up() {
        for n_systems in [1, 2, 3, 7] {
            let shares = SystemShare::split(n_systems);
            for total in [0, 1, 6, 4096, 65_537] {
                let parts: Vec<_> = shares.iter().map(|share| share.part_of(total)).collect();
                assert_eq!(parts.iter().sum::<usize>(), total);
                let (least, most) = (parts.iter().min(), parts.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1);
            }
        }
    }

    #[test]
    fn connections_go_to_whoever_has_the_fewest() {
        let shares = SystemShare::split(3);
        let siblings = shares[0].siblings().unwrap();
        let waker = Waker::new().unwrap();
        let _members: Vec<_> = shares[..2]
            .iter()
            .map(|share| Membership::claim(share, &waker).unwrap())
            .collect();
        let mut tickets: Vec<_> = (0..8).map(|_| siblings.next_for_connection(0)).collect();
        let n_of = |tickets: &[(usize, Ticket)], index| {
            tickets.iter().filter(|(of, _)| *of == index).count()
        };
        // The third is not there yet.
        assert_eq!([0, 1, 2].map(|index| n_of(&tickets, index)), [4, 4, 0]);
        tickets.retain(|(of, _)| *of == 0);
        for _ in 0..4 {
            tickets.push(siblings.next_for_connection(0));
        }
        assert_eq!([0, 1, 2].map(|index| n_of(&tickets, index)), [4, 4, 0]);
    }

    #[test]
    fn a_share_is_good_for_one_system() {
        let shares = SystemShare::split(2);
        let waker = Waker::new().unwrap();
        let member = Membership::claim(&shares[1], &waker).unwrap();
        assert!(Membership::claim(&shares[1], &waker).is_err());
        drop(member);
        assert!(
            Membership::claim(&shares[1], &waker).is_err(),
            "numbers come once"
        );
        assert!(
            Membership::claim(&SystemShare::default(), &waker)
                .unwrap()
                .is_none()
        );
    }
}
