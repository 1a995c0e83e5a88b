//! What an impaired link does to each packet, without sockets or clocks.
//!
//! Owns the decisions: lost, refused by a full queue, or forwarded once or
//! twice and when. Refuses to hold packets: see [`super::relay`].

use std::time::Duration;

use serde::Serialize;
use tachonym_bench::random::Random;
use tachonym_packet::MonoNs;

/// Properties of an impaired link, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Impairment {
    /// Share of packets that vanish, in per cent.
    pub loss_pct: f64,
    /// Share of packets that arrive twice, in per cent.
    pub duplicate_pct: f64,
    /// Share of packets that skip the delay and so overtake others, in per
    /// cent. Means nothing without a delay.
    pub reorder_pct: f64,
    /// One-way delay.
    #[serde(rename = "delay_ms", serialize_with = "as_ms")]
    pub delay: Duration,
    /// The delay varies evenly by up to this much both ways, which reorders.
    #[serde(rename = "jitter_ms", serialize_with = "as_ms")]
    pub jitter: Duration,
    /// Rate of the line in 10⁶ bits of UDP payload per second; `None`: any.
    pub rate_mbit: Option<f64>,
    /// Most packets held at once in one direction, waiting for the line or
    /// delayed; more are dropped on arrival.
    pub queue_packets: usize,
}

fn as_ms<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1e3)
}

impl Impairment {
    /// A link that forwards at once and never loses anything.
    #[must_use]
    pub fn none() -> Self {
        Self {
            loss_pct: 0.0,
            duplicate_pct: 0.0,
            reorder_pct: 0.0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate_mbit: None,
            queue_packets: 16_384,
        }
    }

    /// Says in words what cannot be, if anything.
    ///
    /// # Errors
    /// A share outside 0–100, a jitter beyond the delay, reordering without a
    /// delay, a rate that is not positive or a queue without a place.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("loss-pct", self.loss_pct),
            ("duplicate-pct", self.duplicate_pct),
            ("reorder-pct", self.reorder_pct),
        ];
        if let Some((name, pct)) = shares.iter().find(|(_, pct)| !(0.0..=100.0).contains(pct)) {
            return Err(format!("--{name} is {pct}, but a share is 0 to 100"));
        }
        if self.jitter > self.delay {
            return Err("--jitter-ms exceeds --delay-ms; raise the delay".into());
        }
        if self.reorder_pct > 0.0 && self.delay.is_zero() {
            return Err("--reorder-pct needs --delay-ms: packets overtake delayed ones".into());
        }
        if self
            .rate_mbit
            .is_some_and(|rate| !rate.is_finite() || rate <= 0.0)
        {
            return Err("--rate-mbit must be above 0; leave it out for no limit".into());
        }
        if self.queue_packets == 0 {
            return Err("--queue-packets must be at least 1".into());
        }
        Ok(())
    }
}

/// What happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It vanishes on the line.
    Lost,
    /// The queue is full.
    QueueFull,
    /// It leaves at `at`, and a copy of it at `copy_at` if there is one.
    Forward {
        /// When the packet leaves.
        at: MonoNs,
        /// When its duplicate leaves.
        copy_at: Option<MonoNs>,
        /// Whether it skipped the delay.
        overtakes: bool,
    },
}

/// One direction of an impaired link.
///
/// The n-th packet's loss, duplication, overtaking and jitter depend on the
/// seed and n alone: every packet draws equally many random numbers.
#[derive(Clone, Debug)]
pub struct LinkModel {
    impairment: Impairment,
    random: Random,
    line_free: MonoNs,
}

impl LinkModel {
    /// A direction with its own random sequence.
    #[must_use]
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            random: Random::new(seed),
            line_free: MonoNs::ZERO,
        }
    }

    /// Decides about a packet of `len_bytes` that arrives while `n_held`
    /// packets are held.
    pub fn offer(&mut self, now: MonoNs, len_bytes: usize, n_held: usize) -> Fate {
        let is_lost = self.happens(self.impairment.loss_pct);
        let is_doubled = self.happens(self.impairment.duplicate_pct);
        let overtakes = self.happens(self.impairment.reorder_pct);
        let delay = self.draw_delay();
        let copy_delay = self.draw_delay();
        if is_lost {
            return Fate::Lost;
        }
        if n_held >= self.impairment.queue_packets {
            return Fate::QueueFull;
        }
        let sent = self.transmit(now, len_bytes);
        let at = if overtakes { sent } else { sent + delay };
        let has_room = n_held + 1 < self.impairment.queue_packets;
        let copy_at = (is_doubled && has_room).then(|| self.transmit(now, len_bytes) + copy_delay);
        Fate::Forward {
            at,
            copy_at,
            overtakes,
        }
    }

    fn happens(&mut self, pct: f64) -> bool {
        self.random.next_fraction() * 100.0 < pct
    }

    fn draw_delay(&mut self) -> Duration {
        let shift = self.random.next_fraction() * 2.0 - 1.0;
        let jitter_ns = self.impairment.jitter.as_nanos() as f64 * shift;
        let delay_ns = self.impairment.delay.as_nanos() as f64 + jitter_ns;
        Duration::from_nanos(delay_ns as u64)
    }

    /// Puts a packet on the line and says when its last bit has left.
    fn transmit(&mut self, now: MonoNs, len_bytes: usize) -> MonoNs {
        let Some(rate_mbit) = self.impairment.rate_mbit else {
            return now;
        };
        // Bits over 10⁶ bits a second are microseconds.
        let duration_ns = len_bytes as f64 * 8.0 / rate_mbit * 1e3;
        self.line_free = self.line_free.max(now) + Duration::from_nanos(duration_ns as u64);
        self.line_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: MonoNs = MonoNs(1_000_000);

    fn fates(impairment: &Impairment, seed: u64, n_packets: usize) -> Vec<Fate> {
        let mut model = LinkModel::new(impairment.clone(), seed);
        (0..n_packets).map(|_| model.offer(NOW, 1_000, 0)).collect()
    }

    #[test]
    fn a_seed_repeats_its_decisions() {
        let impairment = Impairment {
            loss_pct: 10.0,
            duplicate_pct: 5.0,
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(3),
            reorder_pct: 2.0,
            ..Impairment::none()
        };
        assert_eq!(fates(&impairment, 42, 1_000), fates(&impairment, 42, 1_000));
        assert_ne!(fates(&impairment, 42, 1_000), fates(&impairment, 43, 1_000));
    }

    #[test]
    fn the_shares_come_out_as_asked() {
        let impairment = Impairment {
            loss_pct: 1.0,
            duplicate_pct: 5.0,
            reorder_pct: 20.0,
            delay: Duration::from_millis(10),
            ..Impairment::none()
        };
        let (mut lost, mut doubled, mut overtaking) = (0, 0, 0);
        for fate in fates(&impairment, 1, 100_000) {
            match fate {
                Fate::Lost => lost += 1,
                Fate::QueueFull => panic!("nothing is held"),
                Fate::Forward {
                    copy_at, overtakes, ..
                } => {
                    doubled += u32::from(copy_at.is_some());
                    overtaking += u32::from(overtakes);
                }
            }
        }
        assert!((900..1_100).contains(&lost), "{lost}");
        assert!((4_700..5_200).contains(&doubled), "{doubled}");
        assert!((19_400..20_200).contains(&overtaking), "{overtaking}");
    }

    #[test]
    fn loss_of_a_packet_does_not_depend_on_the_other_settings() {
        let plain = Impairment {
            loss_pct: 30.0,
            ..Impairment::none()
        };
        let busy = Impairment {
            duplicate_pct: 50.0,
            delay: Duration::from_millis(5),
            jitter: Duration::from_millis(5),
            ..plain.clone()
        };
        let lost = |impairment| -> Vec<bool> {
            let all = fates(impairment, 9, 500);
            all.iter().map(|fate| *fate == Fate::Lost).collect()
        };
        assert_eq!(lost(&plain), lost(&busy));
    }

    #[test]
    fn delay_and_jitter_bound_the_departure() {
        let impairment = Impairment {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(2),
            ..Impairment::none()
        };
        for fate in fates(&impairment, 5, 1_000) {
            let Fate::Forward { at, .. } = fate else {
                panic!("nothing is lost");
            };
            let held = at.saturating_since(NOW);
            assert!(held >= Duration::from_millis(8) && held <= Duration::from_millis(12));
        }
    }

    #[test]
    fn the_line_spaces_packets_by_its_rate() {
        let mut model = LinkModel::new(
            Impairment {
                rate_mbit: Some(8.0),
                ..Impairment::none()
            },
            0,
        );
        let mut leave = |now, len| match model.offer(now, len, 0) {
            Fate::Forward { at, .. } => at,
            other => panic!("{other:?}"),
        };
        // 8 Mbit/s carry a byte a microsecond.
        assert_eq!(leave(NOW, 1_000), NOW.plus_ms(1));
        assert_eq!(leave(NOW, 2_000), NOW.plus_ms(3));
        assert_eq!(leave(NOW.plus_ms(50), 1_000), NOW.plus_ms(51));
    }

    #[test]
    fn a_full_queue_refuses_and_leaves_no_room_for_copies() {
        let mut model = LinkModel::new(
            Impairment {
                duplicate_pct: 100.0,
                queue_packets: 2,
                ..Impairment::none()
            },
            0,
        );
        assert_eq!(model.offer(NOW, 1, 2), Fate::QueueFull);
        assert!(matches!(
            model.offer(NOW, 1, 1),
            Fate::Forward { copy_at: None, .. }
        ));
        assert!(matches!(
            model.offer(NOW, 1, 0),
            Fate::Forward {
                copy_at: Some(_),
                ..
            }
        ));
    }

    #[test]
    fn impossible_settings_are_refused() {
        let wrong = [
            Impairment {
                loss_pct: 101.0,
                ..Impairment::none()
            },
            Impairment {
                duplicate_pct: -1.0,
                ..Impairment::none()
            },
            Impairment {
                reorder_pct: 1.0,
                ..Impairment::none()
            },
            Impairment {
                jitter: Duration::from_millis(1),
                ..Impairment::none()
            },
            Impairment {
                rate_mbit: Some(0.0),
                ..Impairment::none()
            },
            Impairment {
                queue_packets: 0,
                ..Impairment::none()
            },
        ];
        assert!(wrong.iter().all(|impairment| impairment.check().is_err()));
        assert_eq!(Impairment::none().check(), Ok(()));
    }
}
