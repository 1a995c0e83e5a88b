//! What it costs to verify Data on their way.
//!
//! Signs Data by keys of every kind and has the router's own `DataVerification` verify
//! them, in rounds in which the kinds take turns: without a memory of good Data, for the
//! first time with one, and again; with wrong signatures, and by an unknown key. Beside it,
//! what a Data costs that no prefix concerns. Every verdict is checked.

use std::hint::black_box;

use anyhow::ensure;
use rustix::time::{ClockId, clock_gettime};
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells, cpu,
};
use tachonym_packet::{Component, Data, DataView, Name};
use tachonym_security::{
    DataVerification, KeyKind, Poison, RequiredSignature, RsaBits, Signer, SigningKey, TrustPolicy,
    Verdict, VerificationRule, VerificationRules, key_name, sha256,
};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/verify",
    title: "CPU time to verify a Data, by kind of signature",
    source: "",
    cost: Cost::minutes(0.1, 1.0),
    needs: &[Need::Cpus(1)],
    params: &[
        Param::new(
            "content-bytes",
            "content of each Data",
            ParamKind::Count { min: 0, max: 8_000 },
            ["1000"; 3],
        ),
        Param::count("data", "Data of each kind in a round", ["3", "200", "400"]),
        Param::rounds(["3", "15", "31"]),
    ],
    run,
}];

/// A day in 2023: certificates are no part of this.
const NOW_MS: u64 = 1_700_000_000_000;
/// Prefixes that concern none of the names asked for.
const N_RULES: [usize; 4] = [0, 1, 16, 256];
/// How often each name is asked for in a round.
const N_ASKED: usize = 64;

fn run(context: &Context) -> anyhow::Result<Record> {
    let (pinned, record) = cpu::on_pinned_thread(|| measure(context));
    let mut record = record?;
    record.note(cpu::note(&[pinned]));
    Ok(record)
}

fn measure(context: &Context) -> anyhow::Result<Record> {
    let keys = [
        ("digest", SigningKey::digest()),
        ("HMAC", SigningKey::generate_hmac()?),
        ("RSA 2048", SigningKey::generate_rsa(RsaBits::Bits2048)?),
        ("RSA 4096", SigningKey::generate_rsa(RsaBits::Bits4096)?),
        ("ECDSA P-256", SigningKey::generate_ecdsa()?),
        ("Ed25519", SigningKey::generate_ed25519()?),
    ];
    let load = Load {
        content_bytes: context.size("content-bytes"),
        n_data: context.count("data"),
    };
    let kinds = keys.map(|(name, key)| Signed::new(name, key, &load));
    let kinds = kinds.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let names = &kinds[0].good;
    let n_cases = kinds.len() + N_RULES.len();
    let times = rotated(n_cases, context.rounds(), |case, _| {
        Ok(match kinds.get(case) {
            Some(kind) => kind.measure()?.to_vec(),
            None => vec![unconcerned_ns(N_RULES[case - kinds.len()], names)?],
        })
    })?;
    let spread = |case: usize, idx: usize| {
        let values: Vec<f64> = times[case].iter().map(|round| round[idx]).collect();
        Spread::of(&values)
    };

    let columns = [
        "signature",
        "Data, bytes",
        "SHA-256 alone, µs",
        "no memory, µs",
        "first time, µs",
        "again, µs",
        "no memory by again",
        "forged, µs",
        "unknown key, µs",
    ];
    let mut by_kind = Table::new("", columns);
    for (case, kind) in kinds.iter().enumerate() {
        let alone = times[case].iter().map(|round| round[1]).collect::<Vec<_>>();
        let again = times[case].iter().map(|round| round[3]).collect::<Vec<_>>();
        let n_bytes: usize = kind.good.iter().map(Vec::len).sum();
        by_kind.row(cells![
            kind.name,
            n_bytes as f64 / kind.good.len() as f64,
            spread(case, 0),
            spread(case, 1),
            spread(case, 2),
            spread(case, 3),
            Spread::of_ratios(&alone, &again),
            spread(case, 4),
            spread(case, 5),
        ]);
    }
    let mut by_prefixes = Table::new("A Data that no prefix concerns", ["prefixes", "ns"]);
    for (idx, n_prefixes) in N_RULES.into_iter().enumerate() {
        by_prefixes.row(cells![n_prefixes, spread(kinds.len() + idx, 0)]);
    }
    let mut record = Record::new(Kind::Measured);
    record.tables.extend([by_kind, by_prefixes]);
    record.note(
        "CPU time of the thread for a Data. Without a memory of good Data every signature is \
         verified; with one, a Data that comes again is compared by its SHA-256. A digest or an \
         HMAC is not remembered. The unknown key of a Data signed by digest is a signature where \
         a digest is required.",
    );
    Ok(record)
}

/// The Data that are verified.
struct Load {
    content_bytes: usize,
    n_data: u64,
}

/// Data with one kind of signature.
struct Signed {
    name: &'static str,
    rules: VerificationRules,
    good: Vec<Vec<u8>>,
    forged: Vec<Vec<u8>>,
    unknown: Vec<Vec<u8>>,
    /// The verdict on the last of these.
    unknown_as: Poison,
    is_remembered: bool,
}

impl Signed {
    fn new(name: &'static str, key: SigningKey, load: &Load) -> anyhow::Result<Self> {
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
        let good = signed(&by("/site")?, load, b"")?;
        let forged = signed(&by("/site")?, load, b"something else")?;
        let (unknown, unknown_as) = match is_digest {
            true => {
                let named = Signer::named(SigningKey::generate_hmac()?, key_of("/site")?);
                (signed(&named, load, b"")?, Poison::WrongType)
            }
            false => (
                signed(&by("/unknown-signer")?, load, b"")?,
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
        })
    }

    /// Microseconds for a Data: its SHA-256, with no memory, for the first time with one,
    /// again, forged, and by an unknown key.
    fn measure(&self) -> anyhow::Result<[f64; 6]> {
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
        Ok(us)
    }
}

/// Data with signatures over themselves and what is `added`: wrong ones, if it is anything.
fn signed(signer: &Signer, load: &Load, added: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    let content = vec![0x5a; load.content_bytes];
    let info = signer.signature_info();
    let sign = |number: u64| {
        let name: Name = "/site/some/object/v=1".parse()?;
        let data = Data {
            content: content.clone(),
            ..Data::new(name.with(&Component::segment(number)))
        };
        Ok(data.encode_signed(&info, |parts| signer.key().sign(&[&parts.concat(), added]))?)
    };
    (0..load.n_data).map(sign).collect()
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

/// Nanoseconds to find that none of `n_prefixes` prefixes concerns a Data.
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
