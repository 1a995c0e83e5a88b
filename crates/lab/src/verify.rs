//! `tachonym-lab verify`: what it costs to verify Data on their way.
//!
//! Signs Data by keys of every kind and has the router's own `DataVerification` verify
//! them, in rounds in which the kinds take turns: without a memory of what was good, for
//! the first time with one, and again; with wrong signatures, and by a key that nobody
//! knows. Beside it, what a Data costs that no prefix concerns. Every verdict is checked.

use std::fmt;
use std::hint::black_box;

use anyhow::{Context as _, ensure};
use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tachonym_packet::{Component, Data, DataView, Name};
use tachonym_security::{
    DataVerification, KeyKind, Poison, RequiredSignature, RsaBits, Signer, SigningKey, TrustPolicy,
    Verdict, VerificationRule, VerificationRules, key_name, sha256,
};

use crate::output;
use crate::stats::Spread;

/// A day in 2023: certificates are no part of this.
const NOW_MS: u64 = 1_700_000_000_000;
/// Prefixes that concern none of the names asked for.
const N_RULES: [usize; 4] = [0, 1, 16, 256];
/// How often each name is asked for in a round.
const N_ASKED: usize = 64;

/// Measures the cost of verifying Data, by kind of signature.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// Bytes of content of each Data
    #[arg(long, default_value_t = 1_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(0..=8_000))]
    pub content_bytes: u64,
    /// Data of each kind to verify in a round
    #[arg(long, default_value_t = 200, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub data: u64,
    /// Rounds, in each of which everything is measured once
    #[arg(long, default_value_t = 15, value_name = "N",
          value_parser = clap::value_parser!(u64).range(3..=1_000))]
    pub rounds: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What one kind of signature costs: microseconds of processor time for a Data.
#[derive(Clone, Debug, Serialize)]
pub struct KindFigures {
    /// The kind.
    pub kind: String,
    /// Bytes of a Data.
    pub data_bytes: f64,
    /// A SHA-256 of the whole Data, for comparison.
    pub hash_us: Spread,
    /// A good Data, with no memory of what was good.
    pub alone_us: Spread,
    /// A good Data that comes for the first time, with a memory.
    pub first_us: Spread,
    /// The same again.
    pub again_us: Spread,
    /// How often what comes again goes into what comes alone, of the medians.
    pub alone_by_again: f64,
    /// A Data whose signature is wrong.
    pub forged_us: Spread,
    /// A Data whose key nobody knows; or, signed by digest, where a key is asked for.
    pub unknown_us: Spread,
}

/// What a Data costs that no prefix concerns.
#[derive(Clone, Debug, Serialize)]
pub struct UnconcernedFigures {
    /// Prefixes that there are.
    pub n_prefixes: usize,
    /// Nanoseconds of processor time for a Data.
    pub ns: Spread,
}

/// All kinds.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyFigures {
    /// Bytes of content.
    pub content_bytes: u64,
    /// By kind of signature.
    pub kinds: Vec<KindFigures>,
    /// By number of prefixes.
    pub unconcerned: Vec<UnconcernedFigures>,
}

impl fmt::Display for VerifyFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} bytes of content; microseconds of processor time for a Data, median (p10–p90)\n",
            self.content_bytes
        )?;
        writeln!(
            f,
            "| signature | SHA-256 alone | verified, no memory | first time | again | times \
             faster | forged | unknown key |\n|---|---|---|---|---|---|---|---|"
        )?;
        for kind in &self.kinds {
            let spread = |us: &Spread| format!("{:.2} ({:.2}–{:.2})", us.median, us.p10, us.p90);
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {:.1} | {} | {} |",
                kind.kind,
                spread(&kind.hash_us),
                spread(&kind.alone_us),
                spread(&kind.first_us),
                spread(&kind.again_us),
                kind.alone_by_again,
                spread(&kind.forged_us),
                spread(&kind.unknown_us),
            )?;
        }
        writeln!(f, "\n| prefixes | a Data of none, ns |\n|---|---|")?;
        for row in &self.unconcerned {
            let Spread {
                median, p10, p90, ..
            } = row.ns;
            writeln!(
                f,
                "| {} | {median:.1} ({p10:.1}–{p90:.1}) |",
                row.n_prefixes
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If there is no randomness for keys, or a verdict is not what it has to be.
pub fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let keys = [
        ("digest", SigningKey::digest()),
        ("HMAC", SigningKey::generate_hmac()?),
        ("RSA 2048", SigningKey::generate_rsa(RsaBits::Bits2048)?),
        ("RSA 4096", SigningKey::generate_rsa(RsaBits::Bits4096)?),
        ("ECDSA P-256", SigningKey::generate_ecdsa()?),
        ("Ed25519", SigningKey::generate_ed25519()?),
    ];
    let kinds = keys.map(|(kind, key)| Kind::new(kind, key, args));
    let mut kinds = kinds.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let mut unconcerned = N_RULES.map(|n_prefixes| (n_prefixes, Vec::new()));
    for _ in 0..args.rounds {
        for kind in &mut kinds {
            kind.measure()?;
        }
        let names = &kinds[0].good;
        for (n_prefixes, ns) in &mut unconcerned {
            ns.push(unconcerned_ns(*n_prefixes, names)?);
        }
    }
    let spread = |values: &[f64]| Spread::of(values).context("no round");
    let kinds: anyhow::Result<Vec<_>> = kinds.iter().map(Kind::figures).collect();
    let unconcerned: anyhow::Result<Vec<_>> = unconcerned
        .iter()
        .map(|(n_prefixes, ns)| {
            Ok(UnconcernedFigures {
                n_prefixes: *n_prefixes,
                ns: spread(ns)?,
            })
        })
        .collect();
    let figures = VerifyFigures {
        content_bytes: args.content_bytes,
        kinds: kinds?,
        unconcerned: unconcerned?,
    };
    output::print(&figures, args.json)
}

/// Data of one kind of signature, and what was measured with them.
struct Kind {
    name: &'static str,
    rules: VerificationRules,
    good: Vec<Vec<u8>>,
    forged: Vec<Vec<u8>>,
    unknown: Vec<Vec<u8>>,
    /// The verdict on the last of these.
    unknown_as: Poison,
    is_remembered: bool,
    /// In the order of the fields of [`KindFigures`].
    us: [Vec<f64>; 6],
}

impl Kind {
    fn new(name: &'static str, key: SigningKey, args: &VerifyArgs) -> anyhow::Result<Self> {
        let key_of = |identity: &str| -> anyhow::Result<Name> {
            Ok(key_name(&identity.parse()?, &Component::generic("1")))
        };
        let is_digest = key.kind() == KeyKind::Digest;
        let is_remembered = !matches!(key.kind(), KeyKind::Digest | KeyKind::Hmac);
        let signature = if is_digest {
            RequiredSignature::Digest
        } else {
            let mut policy = TrustPolicy::new();
            policy.add_anchor_key(key_of("/site")?, key.verifying_key()?)?;
            RequiredSignature::Key(policy.into())
        };
        let rule = VerificationRule {
            prefix: "/site".parse()?,
            signature,
        };
        let by = |identity: &str| -> anyhow::Result<Signer> {
            Ok(match is_digest {
                true => Signer::digest(),
                false => Signer::named(key.clone(), key_of(identity)?),
            })
        };
        let good = signed(&by("/site")?, args, b"")?;
        let forged = signed(&by("/site")?, args, b"something else")?;
        let (unknown, unknown_as) = match is_digest {
            true => {
                let named = Signer::named(SigningKey::generate_hmac()?, key_of("/site")?);
                (signed(&named, args, b"")?, Poison::WrongType)
            }
            false => (
                signed(&by("/unknown-signer")?, args, b"")?,
                Poison::UnknownKey,
            ),
        };
        Ok(Self {
            name,
            rules: VerificationRules::new(vec![rule]),
            good,
            forged,
            unknown,
            unknown_as,
            is_remembered,
            us: Default::default(),
        })
    }

    /// One round.
    fn measure(&mut self) -> anyhow::Result<()> {
        let new = |n_remembered| DataVerification::new(self.rules.clone(), n_remembered, [1; 32]);
        // Sets have eight places: with as much room none fills up.
        let (mut alone, mut with) = (new(0), new(8 * self.good.len()));
        let (good, forged) = (Verdict::Good, Verdict::Poisoned(Poison::BadSignature));
        let unknown = Verdict::Poisoned(self.unknown_as);
        let us = [
            us_each(&self.good, |data| {
                black_box(sha256(&[data.wire()]));
                Ok(())
            })?,
            verify_us(&mut alone, &self.good, good)?,
            verify_us(&mut with, &self.good, good)?,
            verify_us(&mut with, &self.good, good)?,
            verify_us(&mut alone, &self.forged, forged)?,
            verify_us(&mut alone, &self.unknown, unknown)?,
        ];
        let n_expected = if self.is_remembered {
            self.good.len() as u64
        } else {
            0
        };
        ensure!(
            with.counters().n_remembered == n_expected,
            "{}: {} Data were remembered, not {n_expected}",
            self.name,
            with.counters().n_remembered
        );
        for (all, us) in self.us.iter_mut().zip(us) {
            all.push(us);
        }
        Ok(())
    }

    fn figures(&self) -> anyhow::Result<KindFigures> {
        let spread = |idx: usize| Spread::of(&self.us[idx]).context("no round");
        let n_bytes: usize = self.good.iter().map(Vec::len).sum();
        let (alone_us, again_us) = (spread(1)?, spread(3)?);
        Ok(KindFigures {
            kind: self.name.to_owned(),
            data_bytes: n_bytes as f64 / self.good.len() as f64,
            hash_us: spread(0)?,
            first_us: spread(2)?,
            alone_by_again: alone_us.median / again_us.median,
            alone_us,
            again_us,
            forged_us: spread(4)?,
            unknown_us: spread(5)?,
        })
    }
}

/// Data with signatures over themselves and what is `added`: wrong ones, if it is anything.
fn signed(signer: &Signer, args: &VerifyArgs, added: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    let content = vec![0x5a; usize::try_from(args.content_bytes)?];
    let info = signer.signature_info();
    let sign = |number: u64| {
        let name: Name = "/site/some/object/v=1".parse()?;
        let data = Data {
            content: content.clone(),
            ..Data::new(name.with(&Component::segment(number)))
        };
        Ok(data.encode_signed(&info, |parts| signer.key().sign(&[&parts.concat(), added]))?)
    };
    (0..args.data).map(sign).collect()
}

/// Microseconds to verify one of `wires`, each of which must be what is `expected`.
fn verify_us(
    verification: &mut DataVerification,
    wires: &[Vec<u8>],
    expected: Verdict,
) -> anyhow::Result<f64> {
    us_each(wires, |data| {
        let verdict = verification.verify(data, NOW_MS);
        ensure!(verdict == expected, "{verdict:?}, not {expected:?}");
        Ok(())
    })
}

/// Microseconds of this thread's processor time that `step` takes for one of `wires`.
fn us_each(
    wires: &[Vec<u8>],
    mut step: impl FnMut(&DataView<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let data = views(wires)?;
    let begun_ns = thread_cpu_ns();
    for data in &data {
        step(data)?;
    }
    Ok((thread_cpu_ns() - begun_ns) as f64 / 1e3 / data.len() as f64)
}

/// Nanoseconds to find that none of so many prefixes concerns a Data.
fn unconcerned_ns(n_prefixes: usize, wires: &[Vec<u8>]) -> anyhow::Result<f64> {
    let rule = |number| -> anyhow::Result<_> {
        Ok(VerificationRule {
            // Like the names in all but the last byte, so that it is compared.
            prefix: format!("/site/some/object/{number:03}").parse()?,
            signature: RequiredSignature::Digest,
        })
    };
    let rules: anyhow::Result<Vec<_>> = (0..n_prefixes).map(rule).collect();
    let verification = DataVerification::new(VerificationRules::new(rules?), 0, [1; 32]);
    let data = views(wires)?;
    let begun_ns = thread_cpu_ns();
    let mut n_concerned = 0;
    for _ in 0..N_ASKED {
        for data in &data {
            n_concerned += usize::from(verification.is_concerned(black_box(data.name())));
        }
    }
    let ns = thread_cpu_ns() - begun_ns;
    ensure!(n_concerned == 0, "{n_concerned} Data were concerned");
    Ok(ns as f64 / (N_ASKED * data.len()) as f64)
}

fn views(wires: &[Vec<u8>]) -> anyhow::Result<Vec<DataView<'_>>> {
    let views = wires.iter().map(|wire| Ok(DataView::parse(wire)?));
    views.collect()
}

fn thread_cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
