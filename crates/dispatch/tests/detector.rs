//! The detector does what section 4.4.2 of Iqbal 2013 says, step by step.

use proptest::prelude::*;
use tachonym_dispatch::baselines::ExactTop;
use tachonym_dispatch::{Detector, DetectorConfig, Key, LapsError, ServiceId};

const ONE: ServiceId = ServiceId(0);

/// The same as plainly as can be: lists that are searched.
struct Naive {
    config: DetectorConfig,
    afc: Vec<(u64, u32)>,
    sets: Vec<Vec<Option<(u64, u32)>>>,
}

impl Naive {
    fn new(config: DetectorConfig) -> Self {
        Self {
            config,
            afc: Vec::new(),
            sets: vec![vec![None; 4]; config.n_annex / 4],
        }
    }

    fn set(&mut self, key: u64) -> &mut Vec<Option<(u64, u32)>> {
        let n_sets = self.sets.len() as u64;
        let set = (Key(key).spread() & 0xFFFF_FFFF) % n_sets;
        &mut self.sets[set as usize]
    }

    fn put(set: &mut [Option<(u64, u32)>], it: (u64, u32)) {
        let least = set
            .iter()
            .map(|place| place.map_or(0, |it| it.1))
            .min()
            .unwrap();
        let place = set
            .iter_mut()
            .find(|place| place.map_or(0, |it| it.1) == least);
        *place.unwrap() = Some(it);
    }

    fn see(&mut self, key: u64) {
        if let Some(it) = self.afc.iter_mut().find(|it| it.0 == key) {
            it.1 += 1;
            if it.1 == self.config.saturation {
                self.afc.iter_mut().for_each(|it| it.1 /= 2);
                for place in self.sets.iter_mut().flatten() {
                    *place = place.map(|(key, n)| (key, n / 2)).filter(|it| it.1 > 0);
                }
            }
            return;
        }
        let max = self.config.saturation - 1;
        let n_aggressive = self.config.n_aggressive;
        let set = self.set(key);
        let Some(at) = set.iter().position(|it| it.is_some_and(|it| it.0 == key)) else {
            Self::put(set, (key, 1));
            return;
        };
        let count = (set[at].unwrap().1 + 1).min(max);
        set[at] = Some((key, count));
        if self.afc.len() < n_aggressive {
            self.set(key)[at] = None;
            self.afc.push((key, count));
            return;
        }
        let least = self.afc.iter().map(|it| it.1).min().unwrap();
        if count > least {
            self.set(key)[at] = None;
            let victim = self.afc.iter().position(|it| it.1 == least).unwrap();
            let victim = std::mem::replace(&mut self.afc[victim], (key, count));
            if victim.1 > 0 {
                Self::put(self.set(victim.0), victim);
            }
        }
    }
}

fn contents(detector: &Detector) -> Vec<(u64, u32)> {
    let mut all: Vec<_> = detector
        .aggressive()
        .map(|it| (it.key.0, it.count))
        .collect();
    all.sort_unstable();
    all
}

proptest! {
    #[test]
    fn it_agrees_with_plain_lists(
        n_aggressive in 1_usize..6,
        n_sets_log2 in 0_u32..3,
        saturation in 2_u32..12,
        keys in prop::collection::vec((0_u64..24, 0_u64..24), 0..400),
    ) {
        let config = DetectorConfig {
            n_aggressive,
            n_annex: 4 << n_sets_log2,
            saturation,
            ..DetectorConfig::default()
        };
        let mut detector = Detector::new(config).unwrap();
        let mut naive = Naive::new(config);
        for (a, b) in keys {
            // Small ones come more often.
            let key = a.min(b);
            detector.handle_packet(ONE, Key(key));
            naive.see(key);
            let mut expected = naive.afc.clone();
            expected.sort_unstable();
            prop_assert_eq!(contents(&detector), expected);
        }
    }
}

#[test]
fn large_flows_are_told_from_many_small_ones() {
    let mut detector = Detector::new(DetectorConfig::default()).unwrap();
    let mut exact = ExactTop::new(16);
    for n in 0..400_000_u64 {
        // Half of the packets are of 16 flows; the others come once or twice.
        let key = if n % 2 == 0 {
            n / 2 % 16
        } else {
            1_000 + n % 150_000
        };
        detector.handle_packet(ONE, Key(key));
        exact.handle_packet(Key(key));
    }
    assert!((0..16).all(|key| detector.is_aggressive(Key(key))));
    assert!((0..16).all(|key| exact.contains(Key(key))));
}

#[test]
fn one_packet_in_so_many_is_looked_at() {
    for sample_every in [1, 7, 100] {
        let config = DetectorConfig {
            sample_every,
            saturation: u32::MAX,
            ..DetectorConfig::default()
        };
        let mut detector = Detector::new(config).unwrap();
        for _ in 0..1_000_000 {
            detector.handle_packet(ONE, Key(3));
        }
        let n_seen = f64::from(contents(&detector)[0].1);
        let expected = 1e6 / f64::from(sample_every);
        assert!(
            (n_seen / expected - 1.0).abs() < 0.03,
            "{sample_every}: {n_seen}"
        );
    }
}

#[test]
fn a_flow_that_ends_gives_way() {
    let config = DetectorConfig {
        n_aggressive: 2,
        n_annex: 8,
        saturation: 256,
        ..DetectorConfig::default()
    };
    let mut detector = Detector::new(config).unwrap();
    for _ in 0..200 {
        detector.handle_packet(ONE, Key(1));
    }
    for _ in 0..600 {
        detector.handle_packet(ONE, Key(2));
        detector.handle_packet(ONE, Key(3));
    }
    assert!(!detector.is_aggressive(Key(1)));
    assert!(detector.is_aggressive(Key(2)) && detector.is_aggressive(Key(3)));
    assert!(detector.n_halvings() > 0);
}

#[test]
fn keys_that_share_a_set_cannot_break_it() {
    let config = DetectorConfig {
        n_aggressive: 4,
        n_annex: 64,
        ..DetectorConfig::default()
    };
    let mut detector = Detector::new(config).unwrap();
    // All in one of the 16 sets.
    let in_one_set = (0..).map(Key).filter(|key| key.spread() % 16 == 5);
    let keys: Vec<_> = in_one_set.take(1_000).collect();
    for round in 0..50 {
        for &key in &keys {
            detector.handle_packet(ONE, key);
        }
        // One that comes twice in a row proves itself all the same.
        detector.handle_packet(ONE, Key(7 + round));
        detector.handle_packet(ONE, Key(7 + round));
    }
    assert!(detector.aggressive().count() <= 4);
    assert!(detector.n_promotions() > 0);
}

#[test]
fn sizes_out_of_range_are_refused() {
    let sound = DetectorConfig::default();
    for (config, named) in [
        (
            DetectorConfig {
                n_aggressive: 0,
                ..sound
            },
            "names tracked is 0",
        ),
        (
            DetectorConfig {
                n_annex: 48,
                ..sound
            },
            "a power of two, is 48",
        ),
        (
            DetectorConfig {
                n_annex: 2,
                ..sound
            },
            "annex cache is 2",
        ),
        (
            DetectorConfig {
                saturation: 1,
                ..sound
            },
            "saturation is 1",
        ),
        (
            DetectorConfig {
                sample_every: 0,
                ..sound
            },
            "sample every is 0",
        ),
    ] {
        let error: LapsError = Detector::new(config).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
}
