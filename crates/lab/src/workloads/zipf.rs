//! Draws from a Zipf distribution, exactly and from little memory.
//!
//! Ranks are grouped: the first ones alone, then groups that grow by a hundredth. A
//! group is drawn by Walker's alias method, and a rank in it by rejection, which rarely
//! has to compute a power since the ranks of a group are almost equally likely. The
//! tables stay in the processor's nearer caches however many ranks there are.

use tachonym_bench::random::Random;

/// Ranks that are a group each.
const N_ALONE: u64 = 1_024;

/// The distribution over ranks `0..n` in which rank r has a weight of (r+1)^-alpha.
#[derive(Clone, Debug)]
pub struct Zipf {
    alpha: f64,
    groups: Vec<Group>,
    norm: f64,
}

/// Ranks that lie next to each other, and what the alias method needs.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    first: u32,
    len: u32,
    /// The last rank's weight by the first one's.
    least: f32,
    alias: u32,
    /// Probability, in 2^-32, that the group itself is taken and not its alias.
    own: u32,
}

impl Zipf {
    /// Over `n` ranks, at least one and less than 2^32; `alpha` from 0 on.
    #[must_use]
    pub fn new(n: u32, alpha: f64) -> Self {
        let n = u64::from(n.max(1));
        let mut groups = Vec::new();
        let mut envelopes = Vec::new();
        let mut norm = 0.0;
        let mut first = 0;
        while first < n {
            let len = if first < N_ALONE { 1 } else { first / 100 };
            let len = len.min(n - first);
            let weight = |rank: u64| (rank as f64 + 1.0).powf(-alpha);
            norm += (first..first + len).map(weight).sum::<f64>();
            // Rejected draws begin anew, so that the envelope is what is drawn from.
            envelopes.push(weight(first) * len as f64);
            groups.push(Group {
                first: first as u32,
                len: len as u32,
                least: (weight(first + len - 1) / weight(first)) as f32,
                ..Group::default()
            });
            first += len;
        }
        alias(&mut groups, &envelopes);
        Self {
            alpha,
            groups,
            norm,
        }
    }

    /// The next rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let bits = random.next_u64();
            let wide = (bits >> 32) * self.groups.len() as u64;
            let idx = (wide >> 32) as usize;
            let group = &self.groups[idx];
            // Which of the two no processor foresees: it is to choose and not to branch.
            let alias = group.alias as usize;
            let idx = std::hint::select_unpredictable((bits as u32) < group.own, idx, alias);
            let group = &self.groups[idx];
            if group.len == 1 {
                return group.first;
            }
            let bits = random.next_u64();
            let rank = group.first + (((bits >> 32) * u64::from(group.len)) >> 32) as u32;
            let height = (bits as u32) as f32 / 4_294_967_296.0;
            if height < group.least {
                return rank;
            }
            let ratio = (f64::from(rank) + 1.0) / (f64::from(group.first) + 1.0);
            if f64::from(height) < ratio.powf(-self.alpha) {
                return rank;
            }
        }
    }

    /// The probability of a rank.
    #[must_use]
    pub fn probability(&self, rank: u32) -> f64 {
        (f64::from(rank) + 1.0).powf(-self.alpha) / self.norm
    }
}

/// Walker's tables by Vose's method.
fn alias(groups: &mut [Group], weights: &[f64]) {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let mut left: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
    let (mut small, mut large): (Vec<_>, Vec<_>) =
        (0..left.len()).partition(|&group| left[group] < 1.0);
    for (idx, group) in groups.iter_mut().enumerate() {
        (group.alias, group.own) = (idx as u32, u32::MAX);
    }
    while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
        groups[to].own = (left[to] * 4_294_967_296.0) as u32;
        groups[to].alias = from as u32;
        left[from] -= 1.0 - left[to];
        if left[from] < 1.0 {
            large.pop();
            small.push(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_as_often_as_they_should() {
        for (n, alpha) in [(1, 0.8), (50, 0.0), (5_000, 0.8), (200_000, 1.1)] {
            let zipf = Zipf::new(n, alpha);
            let mut random = Random::new(5);
            let n_draws = 400_000;
            let mut counts = vec![0_u32; n as usize];
            for _ in 0..n_draws {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            // In ranges of ranks, since single ones come too seldom.
            let mut from = 0;
            while from < n {
                let to = (from * 2).clamp(from + 1, n);
                let expected: f64 = (from..to).map(|rank| zipf.probability(rank)).sum();
                let expected = expected * f64::from(n_draws);
                let got: u32 = counts[from as usize..to as usize].iter().sum();
                let off = (f64::from(got) - expected).abs();
                assert!(
                    off < 5.0 * expected.sqrt() + 1.0,
                    "{n} {alpha} {from}: {got} {expected}"
                );
                from = to;
            }
            let all: f64 = (0..n).map(|rank| zipf.probability(rank)).sum();
            assert!((all - 1.0).abs() < 1e-9);
        }
    }
}
