//! What packets cost: Iqbal 2013, section 3.2.5.

/// How long a core works on a packet of a service, its penalties aside.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceModel {
    /// Its name.
    pub name: &'static str,
    /// Nanoseconds for any packet.
    pub fixed_ns: u32,
    /// Nanoseconds for each 64 bytes.
    pub per_64_bytes_ns: u32,
}

impl ServiceModel {
    /// Nanoseconds for a packet of this many bytes.
    #[inline]
    #[must_use]
    pub const fn processing_ns(&self, packet_bytes: u16) -> u64 {
        self.fixed_ns as u64 + self.per_64_bytes_ns as u64 * packet_bytes as u64 / 64
    }

    /// Packets per second of a core that does nothing else, for packets of this many bytes on
    /// average, as profiling would measure it.
    #[must_use]
    pub fn rate_pps(&self, mean_packet_bytes: f64) -> f64 {
        let per_byte_ns = f64::from(self.per_64_bytes_ns) / 64.0;
        1e9 / (f64::from(self.fixed_ns) + per_byte_ns * mean_packet_bytes)
    }
}

/// The four paths of the thesis' Figure 3.2 with the latencies of section 3.2.5: VPN
/// traffic that leaves (equation 3.2), plain forwarding, scanning, and VPN traffic that
/// comes (equation 3.3).
pub const PATHS: [ServiceModel; 4] = [
    ServiceModel {
        name: "VPN out",
        fixed_ns: 3_700,
        per_64_bytes_ns: 230,
    },
    ServiceModel {
        name: "forwarding",
        fixed_ns: 500,
        per_64_bytes_ns: 0,
    },
    ServiceModel {
        name: "scan",
        fixed_ns: 3_530,
        per_64_bytes_ns: 0,
    },
    ServiceModel {
        name: "VPN in",
        fixed_ns: 5_800,
        per_64_bytes_ns: 210,
    },
];

/// What a packet costs beyond its processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalties {
    /// Its flow's packet before went to another core: data is not in this core's cache.
    pub flow_moved_ns: u32,
    /// The core's packet before was of another service: code is not in its cache.
    pub cold_code_ns: u32,
}

impl Penalties {
    /// As published: 0.8 µs and 10 µs.
    pub const PUBLISHED: Self = Self {
        flow_moved_ns: 800,
        cold_code_ns: 10_000,
    };

    /// None: the thesis' ideal.
    pub const NONE: Self = Self {
        flow_moved_ns: 0,
        cold_code_ns: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_the_published_ones() {
        let at = |path: usize, bytes| PATHS[path].processing_ns(bytes);
        assert_eq!([at(0, 64), at(0, 640)], [3_930, 6_000]);
        assert_eq!([at(1, 64), at(1, 1_500)], [500, 500]);
        assert_eq!([at(2, 64), at(2, 1_500)], [3_530, 3_530]);
        assert_eq!([at(3, 64), at(3, 640)], [6_010, 7_900]);
        assert!((PATHS[0].rate_pps(640.0) - 1e9 / 6_000.0).abs() < 1e-6);
    }
}
