//! How the router governs its power: the dataset `status/power`, this router's own.
//!
//! Owns the values, and the bounds of how many there are in one. The TLV-TYPEs are in the
//! table of `dataset`.

use crate::codec::{Bounded, management_value};

management_value! {
    /// How the router governs its power, and counters to compute watts from; the entry of
    /// `status/power`.
    #[derive(Default)]
    PowerStatus = 37220 {
        /// The governor as configured: `none`, `tap`, ...
        governor: Required<String> = 37221,
        /// Workers that run.
        n_active: Required<u64> = 37223,
        /// Each lever of this machine; up to [`PowerLever::MAX`].
        levers: Few<PowerLever> = 37224,
        /// Each governed worker, in the order of their numbers; up to [`WorkerPower::MAX`].
        workers: Few<WorkerPower> = 37230,
        /// What TAP decides by; `None` with another governor.
        tap: Optional<TapStatus> = 37240,
        /// Energy counters of processors; up to [`EnergyCounter::MAX`].
        energy: Few<EnergyCounter> = 37260,
        /// The server whose watts are computed, as TOML; see `power.model`.
        model: Required<String> = 37263,
        /// What the router has done.
        work: Required<PowerWork> = 37265,
    }
}

management_value! {
    /// Something to govern or to measure by, of a [`PowerStatus`].
    PowerLever = 37224 {
        /// Which: `workers`, `cpufreq`, `cpuidle` or `rapl`.
        name: Required<String> = 37225,
        /// Whether it is in use.
        is_used: Required<bool> = 37227,
        /// What the machine has, or why the lever is not in use.
        detail: Required<String> = 37229,
    }
}

management_value! {
    /// A worker, of a [`PowerStatus`].
    WorkerPower = 37230 {
        /// Its number, from 0.
        worker: Required<u64> = 36908,
        /// How deep it sleeps: 0 not at all, 1 lightly (it keeps its names), 2 deep.
        sleep: Required<u64> = 37231,
        /// Its P-state; 0 is the fastest.
        p_state: Required<u64> = 37233,
        /// The frequency that goes with it; `None` if that can't be set here.
        khz: Optional<u64> = 37234,
    }
}

management_value! {
    /// What TAP decides by (Iqbal 2013, section 6.3), of a [`PowerStatus`].
    TapStatus = 37240 {
        /// Packets that the next interval is forecast to bring.
        forecast_millipkts: Required<u64> = 37241,
        /// How long an interval is.
        interval_ns: Required<u64> = 37243,
        /// Share of what all workers can do that the forecast needs (equation 6.5), in 1/1000.
        traffic_factor_permille: Required<u64> = 37245,
        /// What a packet takes with this number of workers; `None` before the first one.
        packet_ns: Optional<u64> = 37246,
        /// The filtered length of the queue (equation 6.7), in 1/1000 packet.
        queue_millipkts: Required<u64> = 37249,
        /// Below: slower. In 1/1000 packet.
        low_millipkts: Required<u64> = 37251,
        /// From here on: faster, or one more worker. In 1/1000 packet.
        high_millipkts: Required<u64> = 37253,
    }
}

management_value! {
    /// An energy counter, of a [`PowerStatus`].
    EnergyCounter = 37260 {
        /// Which: `package-0`, or a part of it such as `package-0/core`.
        name: Required<String> = 37225,
        /// Microjoules counted so far. Only differences of readings of less than one range of the
        /// counter mean anything.
        used_uj: Required<u64> = 37261,
    }
}

management_value! {
    /// What the router has done since its start, of a [`PowerStatus`].
    #[derive(Default)]
    PowerWork = 37265 {
        /// The time of these numbers, since any moment.
        at_ns: Required<u64> = 37267,
        /// Time in which threads did not wait, of all threads.
        busy_ns: Required<u64> = 37269,
        /// Of that, weighted by the frequency at which it was: cycles divided by the highest
        /// frequency.
        cycles_ns: Required<u64> = 37271,
        /// The highest frequency of the processor; `None` if unknown.
        max_khz: Optional<u64> = 37272,
        /// Packets received from faces.
        n_in_pkts: Required<u64> = 37275,
        /// Packets sent to faces.
        n_out_pkts: Required<u64> = 37277,
        /// Interests that were looked up in the content store.
        n_interests: Required<u64> = 37281,
        /// Of these, those that found Data there.
        n_hits: Required<u64> = 37283,
        /// Data that came.
        n_data: Required<u64> = 37285,
        /// Data that were inserted into the content store.
        n_inserts: Required<u64> = 37287,
    }
}

impl PowerLever {
    /// Most that a [`PowerStatus`] tells of.
    pub const MAX: usize = 8;
}

impl WorkerPower {
    /// Most that a [`PowerStatus`] tells of.
    pub const MAX: usize = 128;
}

impl EnergyCounter {
    /// Most that a [`PowerStatus`] tells of.
    pub const MAX: usize = 64;
}

impl Bounded for PowerLever {
    const MAX: usize = Self::MAX;
}

impl Bounded for WorkerPower {
    const MAX: usize = Self::MAX;
}

impl Bounded for EnergyCounter {
    const MAX: usize = Self::MAX;
}
