//! Datagrams that the kernel dropped, for a process and for the machine.
//!
//! Reads `/proc` as proc_net(5) and the kernel's `net/ipv4/udp.c` describe it,
//! in the network namespace of the process. Refuses to guess: a missing figure
//! is an error.

use std::collections::HashSet;
use std::fs;
use std::io;

/// Columns of `/proc/net/udp`.
const INODE_COLUMN: usize = 9;
const DROPS_COLUMN: usize = 12;

/// Datagrams dropped so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// At UDP sockets that the process has open now.
    pub own_pkts: u64,
    /// At any UDP socket of its network namespace, because the receive buffer
    /// was full (`RcvbufErrors`).
    pub machine_pkts: u64,
}

impl Drops {
    /// Reads the counters for process `pid`.
    ///
    /// # Errors
    /// If it has ended, or `/proc` is not what it should be.
    pub fn read(pid: u32) -> io::Result<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        let mut inodes = HashSet::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            // One that was closed meanwhile has no drops to count.
            if let Ok(target) = fs::read_link(entry?.path()) {
                inodes.extend(inode_of(&target.to_string_lossy()));
            }
        }
        let own_pkts = drops_of(&read("udp")?, &inodes) + drops_of(&read("udp6")?, &inodes);
        let v4 = receive_errors(&read("snmp")?);
        let v4 = v4.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no Udp line"))?;
        Ok(Self {
            own_pkts,
            machine_pkts: v4 + receive_errors_v6(&read("snmp6")?),
        })
    }

    /// What was dropped since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            own_pkts: self.own_pkts.saturating_sub(earlier.own_pkts),
            machine_pkts: self.machine_pkts.saturating_sub(earlier.machine_pkts),
        }
    }
}

/// `socket:[1234]` is the socket with inode 1234.
fn inode_of(link: &str) -> Option<u64> {
    let inode = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    inode.parse().ok()
}

fn drops_of(table: &str, inodes: &HashSet<u64>) -> u64 {
    let drops = |line: &str| -> Option<u64> {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let inode = columns.get(INODE_COLUMN)?.parse().ok()?;
        let drops = columns.get(DROPS_COLUMN)?.parse().ok()?;
        inodes.contains(&inode).then_some(drops)
    };
    table.lines().filter_map(drops).sum()
}

/// Two lines begin with `Udp:`: names of the figures, and the figures.
fn receive_errors(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let mut names = lines.next()?.split_whitespace();
    let idx = names.position(|name| name == "RcvbufErrors")?;
    lines.next()?.split_whitespace().nth(idx)?.parse().ok()
}

/// One line each; none without IPv6.
fn receive_errors_v6(snmp6: &str) -> u64 {
    let figure = |line: &str| {
        let rest = line.strip_prefix("Udp6RcvbufErrors")?;
        rest.trim().parse::<u64>().ok()
    };
    snmp6.lines().find_map(figure).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn figures_are_found_by_their_names() {
        let snmp = "Ip: A B\nIp: 1 2\nUdp: InDatagrams InErrors RcvbufErrors Last\n\
                    Udp: 10 20 30 40\n";
        assert_eq!(receive_errors(snmp), Some(30));
        assert_eq!(receive_errors("Tcp: A\nTcp: 1\n"), None);
        assert_eq!(
            receive_errors_v6("Udp6InErrors \t5\nUdp6RcvbufErrors \t7\n"),
            7
        );
        assert_eq!(receive_errors_v6(""), 0);
        assert_eq!(inode_of("socket:[77]"), Some(77));
        assert_eq!(inode_of("/dev/null"), None);
    }

    #[test]
    fn only_the_sockets_of_the_process_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt \
                     uid  timeout inode ref pointer drops\n\
                     1: 0100007F:18EB 00000000:0000 07 0:0 00:0 0 0 0 501 2 0 4\n\
                     2: 0100007F:18EC 00000000:0000 07 0:0 00:0 0 0 0 502 2 0 8\n";
        // The columns of a real table are the same.
        assert_eq!(drops_of(table, &HashSet::from([502])), 8);
        assert_eq!(drops_of(table, &HashSet::from([501, 502])), 12);
        assert_eq!(drops_of(table, &HashSet::new()), 0);
    }

    #[test]
    fn an_overrun_socket_of_this_process_shows() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let options = socket2::SockRef::from(&receiver);
        options
            .set_recv_buffer_size(1)
            .expect("the kernel rounds up");
        let before = Drops::read(std::process::id()).expect("this process");
        let to = receiver.local_addr().expect("bound");
        for _ in 0..100 {
            sender.send_to(&[0; 1_000], to).expect("loopback");
        }
        let after = Drops::read(std::process::id()).expect("this process");
        assert!(after.since(before).own_pkts > 50);
        assert!(after.since(before).machine_pkts > 50);
    }
}
