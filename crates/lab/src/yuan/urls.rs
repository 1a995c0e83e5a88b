//! Sets of names that come of URLs: read from a file, or made to be like published ones.
//!
//! Yuan 2015, section 4.1, had one, 3.69 and 1.39 million URLs of Alexa, Dmoz and a
//! blacklist, turned into names in three ways (table 4.1). It states how many prefixes of
//! each more than 64 components follow (table 4.2), that one of Alexa's has 3,363 of them
//! and another 208, and that 98.94 % of Alexa's names have one component if that is the
//! host. A set here has as many such prefixes for each way, and Alexa's of those sizes;
//! what the thesis does not state is assumed: fan-outs fall off as a power of their rank,
//! the other hosts are spread over the top-level domains likewise, and paths are short.

use std::io::BufRead;

use anyhow::Context as _;
use tachonym_packet::types::component::GENERIC;
use tachonym_packet::{Name, tlv};

use crate::beds::fib::EncodedNames;
use tachonym_bench::random::Random;

/// Most components and bytes of a name that is read: longer ones are no prefixes.
const MAX_COMPONENTS: usize = 60;
const MAX_BYTES: usize = 4096;
/// The fan-out of the n-th prefix is that of the first by n to this power: with it,
/// Alexa's path prefixes together have fewer names than the thesis says have a path.
const FALL_OFF: f64 = 1.2;

/// How a URL becomes a name (Yuan 2015, table 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Every label of the host, the top-level domain first.
    Tld,
    /// The last two labels together, and then the others backwards.
    Site,
    /// The host as one.
    Host,
}

impl Scheme {
    pub(super) const ALL: [Self; 3] = [Self::Tld, Self::Site, Self::Host];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Tld => "TLD",
            Self::Site => "Site",
            Self::Host => "Host",
        }
    }

    /// Appends the components of a host.
    fn write_host(self, host: &str, out: &mut Vec<u8>) {
        if self == Self::Host {
            return component(host, out);
        }
        let mut labels = host.rsplit('.');
        if self == Self::Site {
            let site = host.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
            component(&host[site..], out);
            labels.nth(1);
        }
        labels.for_each(|label| component(label, out));
    }
}

fn component(text: &str, out: &mut Vec<u8>) {
    tlv::write_tlv(out, u32::from(GENERIC), text.as_bytes());
}

/// A URL without its protocol.
pub(super) struct Url {
    pub(super) host: String,
    pub(super) path: Vec<String>,
}

impl Url {
    /// Appends the components of the name.
    pub(super) fn write(&self, scheme: Scheme, out: &mut Vec<u8>) {
        scheme.write_host(&self.host, out);
        self.path.iter().for_each(|part| component(part, out));
    }
}

/// A published set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub(super) label: &'static str,
    pub(super) n_urls: u64,
    /// Percent of hash lookups that level pulling saves, and prefixes that it pulls, by
    /// scheme.
    pub(super) saved_pct: [f64; 3],
    pub(super) n_pulled: [u64; 3],
    /// Most components that follow one host and path.
    max_fan_out: f64,
    /// URLs with a path, in ten thousand.
    with_path: u64,
}

/// The three sets of table 4.2.
pub(super) const PUBLISHED: [Published; 3] = [
    Published {
        label: "Alexa",
        n_urls: 1_000_000,
        saved_pct: [12.08, 4.43, 0.49],
        n_pulled: [214, 122, 19],
        max_fan_out: 3363.0,
        with_path: 106,
    },
    Published {
        label: "Blacklist",
        n_urls: 1_390_000,
        saved_pct: [9.94, 6.52, 4.77],
        n_pulled: [461, 437, 271],
        max_fan_out: 5000.0,
        with_path: 2000,
    },
    Published {
        label: "Dmoz",
        n_urls: 3_690_000,
        saved_pct: [11.58, 8.13, 8.60],
        n_pulled: [1781, 1742, 1639],
        max_fan_out: 5000.0,
        with_path: 3000,
    },
];

/// How many components follow the prefix of a rank, which are more than `threshold`.
fn fan_out(rank: u64, max: f64, threshold: u64) -> u64 {
    ((max / ((rank + 1) as f64).powf(FALL_OFF)) as u64).max(threshold + 2)
}

/// A rank below `n`, the first more often.
fn some_rank(n: u64, random: &mut Random) -> u64 {
    ((n as f64).powf(random.next_fraction()) as u64 - 1).min(n - 1)
}

/// Calls `f` with URLs like those of a published set, as many as `scale` of them.
pub(super) fn synthetic(
    set: &Published,
    scale: f64,
    threshold: u32,
    seed: u64,
    mut f: impl FnMut(&Url),
) {
    let mut random = Random::new(seed);
    let threshold = u64::from(threshold);
    let scaled = |n: u64| ((n as f64 * scale).round() as u64).max(1);
    let [by_tld, by_site, by_host] = set.n_pulled;
    let (n_tlds, n_sites, n_hosts) = (
        scaled(by_tld - by_site),
        scaled(by_site - by_host),
        scaled(by_host),
    );
    let mut n_left = scaled(set.n_urls);
    let mut n_paths_left = n_left * set.with_path / 10_000;
    let mut emit = |host: String, path: Vec<String>| {
        n_left = n_left.saturating_sub(1);
        n_paths_left = n_paths_left.saturating_sub(u64::from(!path.is_empty()));
        f(&Url { host, path });
        (n_left, n_paths_left)
    };
    let tld = |random: &mut Random| some_rank(n_tlds, random);
    for rank in 0..n_hosts {
        let host = format!("www.h{rank}.t{}", tld(&mut random));
        // Alexa's second has 208.
        let n = match (set.label, rank) {
            ("Alexa", 1) => 208,
            _ => fan_out(rank, set.max_fan_out * scale.min(1.0), threshold),
        };
        for child in 0..n {
            emit(host.clone(), vec![format!("user{child}")]);
        }
    }
    for rank in 0..n_sites {
        let domain = format!("s{rank}.t{}", tld(&mut random));
        for child in 0..fan_out(rank, set.max_fan_out * scale.min(1.0), threshold) {
            emit(format!("b{child}.{domain}"), Vec::new());
        }
    }
    // Each top-level domain has enough hosts to be one of those that are counted.
    for tld in 0..n_tlds {
        for child in 0..threshold + 2 {
            emit(format!("f{child}.t{tld}"), Vec::new());
        }
    }
    let (mut n_left, mut n_paths_left) = (n_left, n_paths_left);
    let mut number = 0;
    while n_left > 0 {
        let host = format!("n{number}.t{}", tld(&mut random));
        number += 1;
        let mut path = Vec::new();
        if n_paths_left > 0 {
            for _ in 0..=random.next_u64() % 3 {
                path.push(format!("p{}", random.next_u64() % 1000));
            }
            n_paths_left -= 1;
        }
        f(&Url { host, path });
        n_left -= 1;
    }
}

/// Reads names and URLs, one a line, as names of a scheme; how many lines are neither.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read(
    path: &std::path::Path,
    scheme: Scheme,
    names: &mut EncodedNames,
) -> anyhow::Result<u64> {
    let file =
        std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut n_refused = 0;
    for line in std::io::BufReader::new(file).split(b'\n') {
        let line = line.with_context(|| format!("cannot read {}", path.display()))?;
        match std::str::from_utf8(&line).ok().map(str::trim) {
            Some("") => {}
            Some(text) => match name_of(text, scheme) {
                Some(value) => names.push(|out| out.extend_from_slice(&value)),
                None => n_refused += 1,
            },
            None => n_refused += 1,
        }
    }
    Ok(n_refused)
}

/// The components of a name or URL.
fn name_of(text: &str, scheme: Scheme) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    if text.starts_with('/') {
        let name: Name = text.parse().ok()?;
        if name.len() > MAX_COMPONENTS {
            return None;
        }
        value.extend_from_slice(name.view().value_bytes());
    } else {
        let address = text.split_once("://").map_or(text, |(_, rest)| rest);
        let address = address.split(['?', '#']).next()?;
        let mut parts = address.split('/');
        let host = parts.next()?.rsplit('@').next()?;
        let host = host.split(':').next()?.trim_matches('.');
        let path = parts.filter(|part| !part.is_empty()).map(str::to_owned);
        let url = Url {
            host: host.to_ascii_lowercase(),
            path: path.collect(),
        };
        if host.is_empty() || url.path.len() + host.split('.').count() > MAX_COMPONENTS {
            return None;
        }
        url.write(scheme, &mut value);
    }
    (value.len() <= MAX_BYTES).then_some(value)
}

#[cfg(test)]
mod tests {
    use tachonym_packet::NameView;

    use super::*;

    #[test]
    fn urls_become_names_as_published() {
        let name = |url: &str, scheme| {
            let value = name_of(url, scheme).expect("a URL");
            let view = NameView::parse_value(&value).expect("a name");
            view.to_name().to_string()
        };
        let url = "http://www.named-data.net/project/";
        assert_eq!(name(url, Scheme::Tld), "/net/named-data/www/project");
        assert_eq!(name(url, Scheme::Site), "/named-data.net/www/project");
        assert_eq!(name(url, Scheme::Host), "/www.named-data.net/project");
        assert_eq!(name("example", Scheme::Site), "/example");
        assert_eq!(name("a.example:80/?q", Scheme::Tld), "/example/a");
        assert_eq!(name("/as/it/is", Scheme::Tld), "/as/it/is");
        assert_eq!(name_of("", Scheme::Tld), None);
        assert_eq!(name_of(&"/a".repeat(100), Scheme::Tld), None);
    }
}
