//! Names of strategies: `/localhost/nfd/strategy/<kind>/v=<version>` with
//! parameters behind, each a component `<parameter>~<value>`, as NFD writes
//! them (NFD strategy choice management, "strategy instance name").

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tachonym_packet::types::component::VERSION;
use tachonym_packet::{Component, ComponentView, Name, NameView};

use super::Strategy;
use super::access::Access;
use super::asf::{Asf, AsfOptions};
use super::best_route::BestRoute;
use super::multicast::Multicast;
use super::next_hops::Limits;
use super::random::Random;
use super::self_learning::SelfLearning;
use super::suppression::Suppression;

/// Names before the kind of strategy.
const PREFIX: [&[u8]; 3] = [b"localhost", b"nfd", b"strategy"];

/// Every kind with the version of it that is built here.
const KINDS: [(&str, u64); 6] = [
    ("best-route", 5),
    ("multicast", 5),
    ("random", 1),
    ("asf", 5),
    ("access", 1),
    ("self-learning", 1),
];

/// Routes that one `asf` instance measures.
const MAX_NAMESPACES: usize = 65_536;

/// Why a choice of strategy was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StrategyError {
    /// There is no strategy of this name.
    NotRegistered,
    /// The strategy exists, but not yet in this version.
    UnsupportedVersion,
    /// The strategy does not know a parameter, or its value is out of range.
    BadParameter,
    /// The root must have a strategy.
    RootNeedsStrategy,
    /// The prefix has too many components.
    PrefixTooLong,
    /// As many prefixes have a strategy of their own as may.
    TableFull,
}

impl fmt::Display for StrategyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRegistered => "no such strategy",
            Self::UnsupportedVersion => "the strategy does not exist in this version",
            Self::BadParameter => "unknown strategy parameter, or its value is out of range",
            Self::RootNeedsStrategy => "the root prefix must have a strategy",
            Self::PrefixTooLong => "the prefix has too many components",
            Self::TableFull => "too many prefixes have a strategy of their own",
        })
    }
}

impl std::error::Error for StrategyError {}

/// Full names of every strategy, without parameters.
#[must_use]
pub fn registered_strategies() -> Vec<Name> {
    KINDS
        .iter()
        .map(|&(kind, version)| strategy_name(kind, version))
        .collect()
}

/// The full name under which the strategy called `name` would be chosen: its
/// version is added where it has none.
///
/// # Errors
/// If there is no such strategy, or not with this version or parameters.
pub fn resolve_strategy(name: NameView<'_>) -> Result<Name, StrategyError> {
    parse(name).map(|(_, full_name)| full_name)
}

fn strategy_name(kind: &str, version: u64) -> Name {
    PREFIX
        .into_iter()
        .map(ComponentView::from)
        .collect::<Name>()
        .with(kind)
        .with(&Component::version(version))
}

/// What serves names without a choice: `best-route`, with its full name.
pub(super) fn default_strategy() -> (Strategy, Name) {
    let (kind, version) = KINDS[0];
    (
        Strategy::BestRoute(BestRoute::default()),
        strategy_name(kind, version),
    )
}

/// The strategy that `name` asks for, and its full name: the version is added
/// where `name` has none.
pub(super) fn parse(name: NameView<'_>) -> Result<(Strategy, Name), StrategyError> {
    let is_prefixed = PREFIX
        .iter()
        .enumerate()
        .all(|(i, part)| name.get(i) == Some(ComponentView::generic(part)));
    let kind = name.get(PREFIX.len()).filter(|_| is_prefixed);
    let &(kind, version) = KINDS
        .iter()
        .find(|(known, _)| kind == Some(ComponentView::from(*known)))
        .ok_or(StrategyError::NotRegistered)?;
    let mut rest = name.components().skip(PREFIX.len() + 1);
    match rest.next() {
        None => {}
        Some(component) if component.typ() != VERSION => return Err(StrategyError::NotRegistered),
        // As in NFD, a version stands for itself and those before it.
        Some(component) if component.as_number().is_none_or(|asked| asked > version) => {
            return Err(StrategyError::UnsupportedVersion);
        }
        Some(_) => {}
    }
    let mut parameters = Parameters::parse(rest)?;
    let strategy = match kind {
        "best-route" => Strategy::BestRoute(BestRoute {
            suppression: parameters.take_suppression()?,
        }),
        "multicast" => Strategy::Multicast(Multicast {
            suppression: parameters.take_suppression()?,
        }),
        "random" => Strategy::Random(Random),
        "access" => Strategy::Access(Box::new(Access::new())),
        "self-learning" => Strategy::SelfLearning(SelfLearning::default()),
        _ => Strategy::Asf(Box::new(Asf::new(parameters.take_asf_options()?))),
    };
    parameters.expect_none_left()?;
    let full_name = if name.len() > PREFIX.len() + 1 {
        name.to_name()
    } else {
        strategy_name(kind, version)
    };
    Ok((strategy, full_name))
}

/// Parameters not yet taken.
struct Parameters<'a> {
    items: Vec<(&'a str, &'a str)>,
}

impl<'a> Parameters<'a> {
    fn parse(components: impl Iterator<Item = ComponentView<'a>>) -> Result<Self, StrategyError> {
        let items = components.map(|component| {
            let text = std::str::from_utf8(component.value()).ok()?;
            text.split_once('~')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
        });
        let items = items
            .collect::<Option<Vec<_>>>()
            .ok_or(StrategyError::BadParameter)?;
        Ok(Self { items })
    }

    /// The last value given for `key`, or `default`.
    fn take<T: FromStr>(&mut self, key: &str, default: T) -> Result<T, StrategyError> {
        let given = self.items.iter().rev().find(|(known, _)| *known == key);
        let value = given.map_or(Ok(default), |(_, value)| {
            value.parse().map_err(|_| StrategyError::BadParameter)
        });
        self.items.retain(|(known, _)| *known != key);
        value
    }

    fn take_suppression(&mut self) -> Result<Suppression, StrategyError> {
        let default = Suppression::default();
        let suppression = Suppression {
            initial_ms: self.take("retx-suppression-initial", default.initial_ms)?,
            max_ms: self.take("retx-suppression-max", default.max_ms)?,
            multiplier: self.take("retx-suppression-multiplier", default.multiplier)?,
        };
        let is_sound = suppression.initial_ms > 0
            && suppression.max_ms >= suppression.initial_ms
            && suppression.multiplier >= 1.0;
        is_sound
            .then_some(suppression)
            .ok_or(StrategyError::BadParameter)
    }

    fn take_asf_options(&mut self) -> Result<AsfOptions, StrategyError> {
        let probing_interval_ms = self.take("probing-interval", 60_000_u64)?;
        let lifetime_ms = self.take("measurements-lifetime", 300_000_u64)?;
        let max_timeouts = self.take("max-timeouts", 3_u32)?;
        if probing_interval_ms < 1_000 || lifetime_ms <= probing_interval_ms {
            return Err(StrategyError::BadParameter);
        }
        Ok(AsfOptions {
            suppression: self.take_suppression()?,
            probing_interval: Duration::from_millis(probing_interval_ms),
            limits: Limits {
                max_namespaces: MAX_NAMESPACES,
                max_timeouts,
                lifetime: Duration::from_millis(lifetime_ms),
            },
        })
    }

    fn expect_none_left(&self) -> Result<(), StrategyError> {
        if self.items.is_empty() {
            Ok(())
        } else {
            Err(StrategyError::BadParameter)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_uri(uri: &str) -> Result<(Strategy, String), StrategyError> {
        let name: Name = uri.parse().unwrap();
        parse(name.view()).map(|(strategy, name)| (strategy, name.to_string()))
    }

    fn refusal(uri: &str) -> StrategyError {
        parse_uri(uri).unwrap_err()
    }

    #[test]
    fn version_is_added_to_a_strategy_name_without_one() {
        for name in registered_strategies() {
            let short = name.prefix(name.len() - 1).to_string();
            assert_eq!(parse_uri(&short).unwrap().1, name.to_string());
            assert_eq!(parse_uri(&name.to_string()).unwrap().1, name.to_string());
        }
    }

    #[test]
    fn unknown_strategy_or_version_is_refused() {
        use StrategyError::{NotRegistered, UnsupportedVersion};
        for uri in [
            "/",
            "/localhost/nfd/strategy",
            "/localhost/nfd/strategy/best",
            "/localhost/nfd/strategies/best-route",
            "/localhost/nfd/strategy/best-route/x",
            "/localhost/nfd/strategy/v=5",
        ] {
            assert_eq!(refusal(uri), NotRegistered, "{uri}");
        }
        assert_eq!(
            refusal("/localhost/nfd/strategy/best-route/v=6"),
            UnsupportedVersion
        );
        assert_eq!(
            refusal("/localhost/nfd/strategy/random/v=5"),
            UnsupportedVersion
        );
    }

    #[test]
    fn an_earlier_version_is_served_by_this_one() {
        let uri = "/localhost/nfd/strategy/multicast/v=1";
        let (strategy, name) = parse_uri(uri).unwrap();
        assert!(matches!(strategy, Strategy::Multicast(_)));
        assert_eq!(name, uri);
    }

    #[test]
    fn parameters_change_the_suppression() {
        let (strategy, name) = parse_uri(
            "/localhost/nfd/strategy/best-route/v=5/retx-suppression-initial~20\
             /retx-suppression-max~500/retx-suppression-multiplier~1.5",
        )
        .unwrap();
        assert!(name.ends_with("/retx-suppression-multiplier~1.5"));
        let Strategy::BestRoute(best_route) = strategy else {
            panic!("{strategy:?}");
        };
        let expected = Suppression {
            initial_ms: 20,
            max_ms: 500,
            multiplier: 1.5,
        };
        assert_eq!(best_route.suppression, expected);
    }

    #[test]
    fn senseless_parameters_are_refused() {
        for parameters in [
            "best-route/v=5/retx-suppression-initial",
            "best-route/v=5/retx-suppression-initial~",
            "best-route/v=5/~3",
            "best-route/v=5/retx-suppression-initial~0",
            "best-route/v=5/retx-suppression-initial~-1",
            "best-route/v=5/retx-suppression-initial~251",
            "best-route/v=5/retx-suppression-multiplier~0.5",
            "best-route/v=5/retx-suppression-multiplier~NaN",
            "multicast/v=5/no-such-parameter~1",
            "random/v=1/retx-suppression-initial~10",
            "access/v=1/retx-suppression-initial~10",
            "asf/v=5/probing-interval~999",
            "asf/v=5/measurements-lifetime~60000",
            "asf/v=5/max-timeouts~x",
        ] {
            let uri = format!("/localhost/nfd/strategy/{parameters}");
            assert_eq!(refusal(&uri), StrategyError::BadParameter, "{uri}");
        }
    }
}
