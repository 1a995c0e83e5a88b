//! What a router would do with a configuration, in a few lines.

use std::fmt;

use super::{Config, Transport};

/// Rows of a heading and a text, for an operator to read; see [`Config::summary`].
#[derive(Debug)]
pub struct Summary(Vec<(&'static str, String)>);

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (heading, text)) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "  {heading:<14} {text}")?;
        }
        Ok(())
    }
}

impl Config {
    /// Where a router with this configuration would listen, which faces and routes it
    /// would create, how many threads and how large a content store it would have, and
    /// who could send it commands.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut rows = vec![("listens on", self.listeners())];
        let multicast = self.faces.multicast.iter();
        let groups: Vec<_> = multicast
            .map(|it| format!("{} on {}", it.group, it.interface))
            .collect();
        if !groups.is_empty() {
            rows.push(("multicast", groups.join(", ")));
        }
        rows.push((
            "creates",
            format!(
                "{}, {}, {}",
                counted(self.face.len(), "[[face]]"),
                counted(self.route.len(), "[[route]]"),
                counted(self.strategy.len(), "[[strategy]]"),
            ),
        ));
        rows.push(("worker threads", self.worker_threads()));
        rows.push(("DRAM level", self.dram_level()));
        rows.push(("SSD level", self.ssd_level()));
        rows.push(("commands", self.commands()));
        Summary(rows)
    }

    fn listeners(&self) -> String {
        let f = &self.faces;
        let mut listeners = Vec::new();
        if f.unix.enabled {
            let path = &f.unix.path;
            listeners.push(match path.as_os_str().is_empty() {
                true => "unix (path chosen at start)".into(),
                false => format!("unix {}", path.display()),
            });
        }
        let lists = [
            ("udp", &f.udp.listen),
            ("tcp", &f.tcp.listen),
            ("websocket", &f.websocket.listen),
        ];
        let lists = lists.iter().filter(|(_, list)| !list.is_empty());
        listeners.extend(lists.map(|(name, list)| format!("{name} {}", list.join(" "))));
        match listeners.is_empty() {
            true => "nothing".into(),
            false => listeners.join(", "),
        }
    }

    fn worker_threads(&self) -> String {
        let w = &self.workers;
        let mut text = w.threads.to_string();
        if w.most() > usize::from(w.threads) {
            text += &format!(", up to {} while it runs", w.most());
        }
        if w.n_io_threads() > 0 {
            text += &format!(", and {} I/O threads", w.n_io_threads());
        }
        text
    }

    fn dram_level(&self) -> String {
        let t = &self.tables;
        if t.cs_packets == 0 || t.cs_bytes == 0 {
            return "off".into();
        }
        format!(
            "up to {} packets and {}, {}",
            t.cs_packets,
            size(t.cs_bytes as u64),
            self.content_store.to_words().replace(',', ", "),
        )
    }

    fn ssd_level(&self) -> String {
        let volumes = &self.second_level.volume;
        let volumes: Vec<_> = volumes
            .iter()
            .map(|it| format!("{} in {}", size(it.bytes), it.path.display()))
            .collect();
        match volumes.is_empty() {
            true => "off".into(),
            false => volumes.join(", "),
        }
    }

    fn commands(&self) -> String {
        let m = &self.management;
        let transports: Vec<_> = m.transports.iter().map(|it| it.as_str()).collect();
        let local = match (transports.is_empty(), m.authorize.len()) {
            (true, _) => "none from this machine".into(),
            (_, 0) => format!(
                "accepted from every local application over {}",
                transports.join(" and ")
            ),
            (_, n) => format!(
                "accepted from local applications by {} over {}",
                counted(n, "rule"),
                transports.join(" and ")
            ),
        };
        let neighbours = match m.localhop.enabled {
            true => "neighbours may register routes",
            false => "neighbours may not register routes",
        };
        format!("{local}; {neighbours}")
    }
}

impl Transport {
    /// Its name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Websocket => "websocket",
        }
    }
}

fn counted(n: usize, what: &str) -> String {
    match (n, what.ends_with(']')) {
        (1, _) | (_, true) => format!("{n} {what}"),
        _ => format!("{n} {what}s"),
    }
}

/// `bytes` in the largest binary unit that leaves at least 1.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let exponent = (bytes.max(1).ilog2() / 10).min(4);
    let unit = UNITS[exponent as usize];
    let scaled = bytes as f64 / f64::from(exponent * 10).exp2();
    match scaled.fract() < 0.05 {
        true => format!("{scaled:.0} {unit}"),
        false => format!("{scaled:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_reads_best() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1000, "1000 bytes"),
            (1 << 20, "1 MiB"),
            (1_500_000_000, "1.4 GiB"),
            (1 << 42, "4 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn the_summary_names_what_the_file_changes() {
        let text = "faces.unix.path = \"/tmp/k/nfd.sock\"\nfaces.websocket.listen = []\n\
                    workers.threads = 2\ntables.cs_bytes = 1073741824\n\
                    management.localhop.enabled = true\nmanagement.localhop.any = true\n\
                    [[route]]\nprefix = \"/a\"\nnext_hop = \"udp4://192.0.2.1\"\n";
        let summary = Config::parse(text).expect("good").summary().to_string();
        for part in [
            "listens on     unix /tmp/k/nfd.sock, udp 0.0.0.0:6363 [::]:6363, tcp ",
            "creates        0 [[face]], 1 [[route]], 0 [[strategy]]",
            "worker threads 2\n",
            "DRAM level     up to 65536 packets and 1 GiB, admission=none, eviction=lru",
            "SSD level      off",
            "commands       accepted from every local application over unix and tcp; \
             neighbours may register routes",
        ] {
            assert!(summary.contains(part), "{part}:\n{summary}");
        }
        assert!(!summary.contains("websocket"), "{summary}");
    }
}
