//! Which of several sockets at one address receives a UDP peer's datagrams.
//!
//! By default the kernel chooses among the sockets of a group (`SO_REUSEPORT`) by a hash over
//! all of them, connected ones included: each socket that opens or closes would move other
//! peers. So the group gets a program (classic BPF, `SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5) that
//! chooses by the peer's address and port, with a secret seed, among the listeners' sockets
//! only. Owns the rule, as the kernel's program and as code, and the peers that are exempt from
//! it: [`MAX_PINS`] faces created by commands may be in another system than the rule says, for a
//! few instructions each. Such a peer's datagrams reach its face at any local address. Refuses
//! sockets.
//!
//! The first socket binds alone, so that another process at the address is noticed. All sockets
//! drop everything until the last is bound and the program is attached. A process of the same
//! user that joins the group later is never chosen. IPv6 datagrams with extension headers before
//! that of UDP go where the first of these headers says, always to the same socket.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use crate::sys::filter::{self, Instruction};

/// Peers that may be exempt at a time: the program looks for them one after
/// the other, two instructions each.
const MAX_PINS: usize = 64;
/// Odd factors whose bits are about evenly set.
const FACTORS: [u32; 2] = [0x9e37_79b1, 0x85eb_ca6b];
/// Largest number of sockets that a 16-bit hash is spread over.
pub(crate) const MAX_SOCKETS: usize = 1 << 10;

/// Where the source address begins in the IP header.
const V4_SOURCE_AT: u32 = 12;
const V6_SOURCE_AT: u32 = 8;
/// The source port begins the UDP header.
const LOAD_V4_PORT: [Instruction; 2] = filter::load_half_behind_ipv4();
const LOAD_V6_PORT: [Instruction; 1] = [filter::load_half(40)];

/// The rule of all groups of one router.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    n_sockets: usize,
    /// Strangers are not to know whom they share a socket with.
    seed: u32,
    pins: Vec<(SocketAddr, usize)>,
}

impl Steering {
    /// A rule for `n_sockets` of each group, 1 to [`MAX_SOCKETS`].
    pub(crate) fn new(n_sockets: usize) -> Self {
        Self {
            n_sockets,
            seed: RandomState::new().hash_one(0) as u32,
            pins: Vec::new(),
        }
    }

    /// The socket of `peer` unless it is exempt.
    fn home(&self, peer: &SocketAddr) -> usize {
        let mut hash = self.seed;
        for word in words(peer.ip()) {
            hash = mix(hash ^ word);
        }
        hash = (hash ^ u32::from(peer.port())).wrapping_mul(FACTORS[1]);
        ((hash >> 16) as usize * self.n_sockets) >> 16
    }

    /// The socket of an exempt peer.
    pub(crate) fn pinned(&self, peer: &SocketAddr) -> Option<usize> {
        let pin = self.pins.iter().find(|(pinned, _)| pinned == peer);
        pin.map(|&(_, idx)| idx)
    }

    /// The socket of `peer`.
    pub(crate) fn socket_of(&self, peer: &SocketAddr) -> usize {
        self.pinned(peer).unwrap_or_else(|| self.home(peer))
    }

    pub(crate) fn has_room(&self) -> bool {
        self.pins.len() < MAX_PINS
    }

    /// Makes `peer` that of the socket `idx`. False if there are too many
    /// exemptions; the programs are to be replaced if it is one more.
    pub(crate) fn pin(&mut self, peer: SocketAddr, idx: usize) -> bool {
        if !self.has_room() {
            return false;
        }
        self.pins.push((peer, idx));
        true
    }

    /// Ends the exemption of `peer` for the socket `idx`. False if there is none.
    pub(crate) fn unpin(&mut self, peer: &SocketAddr, idx: usize) -> bool {
        let before = self.pins.len();
        self.pins.retain(|pin| *pin != (*peer, idx));
        self.pins.len() != before
    }

    /// The rule as a program for datagrams over IPv4 or IPv6, whose result is the
    /// place of a socket in the group.
    pub(crate) fn program(&self, family: Family) -> Vec<Instruction> {
        let (source_at, n_words, load_port) = match family {
            Family::V4 => (V4_SOURCE_AT, 1, &LOAD_V4_PORT[..]),
            Family::V6 => (V6_SOURCE_AT, 4, &LOAD_V6_PORT[..]),
        };
        let mut code = Vec::new();
        let pins = self.pins.iter();
        for (peer, idx) in pins.filter(|(peer, _)| Family::of(peer) == family) {
            // Whatever differs skips the rest of the pin.
            let mut n_left = 2 * n_words + load_port.len() + 2;
            let mut skip_unless = |value, n_done: usize| {
                n_left -= n_done;
                filter::skip_unless(value, n_left as u8)
            };
            for (i, word) in words(peer.ip()).enumerate() {
                code.push(filter::load_word(source_at + 4 * i as u32));
                code.push(skip_unless(word, 2));
            }
            code.extend_from_slice(load_port);
            code.push(skip_unless(u32::from(peer.port()), load_port.len() + 1));
            code.push(filter::answer(*idx as u32));
        }
        code.push(filter::set(self.seed));
        for i in 0..n_words {
            code.push(filter::keep());
            code.push(filter::load_word(source_at + 4 * i as u32));
            code.extend(filter::xor_kept());
            // `mix`.
            code.push(filter::multiply(FACTORS[0]));
            code.push(filter::keep());
            code.push(filter::shift_right(15));
            code.extend(filter::xor_kept());
        }
        code.push(filter::keep());
        code.extend_from_slice(load_port);
        code.extend(filter::xor_kept());
        code.extend([
            filter::multiply(FACTORS[1]),
            filter::shift_right(16),
            filter::multiply(self.n_sockets as u32),
            filter::shift_right(16),
            filter::answer_accumulator(),
        ]);
        code
    }
}

/// Which IP carries a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(addr: &SocketAddr) -> Self {
        match addr {
            SocketAddr::V4(_) => Self::V4,
            SocketAddr::V6(_) => Self::V6,
        }
    }
}

/// The address in words, as they follow each other in a header.
fn words(ip: IpAddr) -> impl Iterator<Item = u32> {
    let (words, n_words) = match ip {
        IpAddr::V4(ip) => ([ip.to_bits(), 0, 0, 0], 1),
        IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            ([96, 64, 32, 0].map(|shift| (bits >> shift) as u32), 4)
        }
    };
    words.into_iter().take(n_words)
}

fn mix(hash: u32) -> u32 {
    let hash = hash.wrapping_mul(FACTORS[0]);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> impl Iterator<Item = SocketAddr> {
        (1..=1200_u16).map(|n| match n % 3 {
            0 => ([10, 0, 0, 7], 6000 + n).into(),
            1 => ([10, 0, (n >> 8) as u8, n as u8], 6363).into(),
            _ => SocketAddr::new(std::net::Ipv6Addr::from(u128::from(n)).into(), 6363),
        })
    }

    #[test]
    fn peers_are_spread_evenly_whatever_they_differ_in() {
        for n_sockets in [1, 2, 3, 8] {
            let steering = Steering::new(n_sockets);
            let mut n_peers = vec![0; n_sockets];
            peers().for_each(|peer| n_peers[steering.socket_of(&peer)] += 1);
            let fair = 1200 / n_sockets;
            let is_even = n_peers.iter().all(|n| (fair / 2..=2 * fair).contains(n));
            assert!(is_even, "seed {:#x}: {n_peers:?}", steering.seed);
        }
    }

    #[test]
    fn an_exempt_peer_is_where_it_was_put_until_it_is_not_exempt() {
        let mut steering = Steering::new(3);
        let all: Vec<_> = peers().collect();
        let before: Vec<_> = all.iter().map(|peer| steering.socket_of(peer)).collect();
        for peer in &all[..MAX_PINS] {
            assert!(steering.pin(*peer, 2));
        }
        assert!(!steering.pin(all[MAX_PINS], 2), "too many");
        assert!(
            all[..MAX_PINS]
                .iter()
                .all(|peer| steering.socket_of(peer) == 2)
        );
        assert!(!steering.unpin(&all[0], 1), "of another socket");
        for peer in &all[..MAX_PINS] {
            assert!(steering.unpin(peer, 2));
        }
        let after: Vec<_> = all.iter().map(|peer| steering.socket_of(peer)).collect();
        assert_eq!(before, after);
    }
}
