//! `tachonym strategy`: the strategy of each prefix.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_client::CommandError;
use tachonym_packet::Name;
use tachonym_protocol::{ControlParameters, StrategyChoice, status_code};

use super::name::NameArgumentError;
use super::{Management, name, text};
use crate::strategies;

/// Prefix of a strategy's short name.
pub(super) const STRATEGY_PREFIX: &str = "/localhost/nfd/strategy";

const EXAMPLES: &str = "\
Examples:
  tachonym strategy list
  tachonym strategy set /example multicast
  tachonym strategy unset /example";

/// List, set and unset strategies.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the prefixes that have a strategy of their own.
    List,
    /// Show the strategy that applies to a name.
    Show {
        /// The name.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Set the strategy of a prefix.
    Set {
        /// The prefix.
        #[arg(value_parser = name::parse)]
        prefix: Name,
        /// The strategy: a short name such as multicast, or a whole one.
        #[arg(value_parser = StrategyParser, hide_possible_values = true)]
        strategy: Name,
    },
    /// Let a prefix inherit its strategy again.
    Unset {
        /// The prefix; not the root, which must have a strategy.
        #[arg(value_parser = parse_unset)]
        prefix: Name,
    },
}

/// Accepts any strategy, since the router may be another forwarder; shells complete the
/// short names of this router's.
#[derive(Clone)]
struct StrategyParser;

impl TypedValueParser for StrategyParser {
    type Value = Name;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Name, clap::Error> {
        parse_strategy.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = strategies::short_names().into_iter();
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

fn parse_strategy(text: &str) -> Result<Name, NameArgumentError> {
    match text.is_empty() || text.starts_with('/') || text.starts_with("ndn:") {
        true => name::parse(text),
        false => name::parse(&format!("{STRATEGY_PREFIX}/{text}")),
    }
}

fn parse_unset(text: &str) -> Result<Name, String> {
    let prefix = name::parse(text).map_err(|error| error.to_string())?;
    match prefix.is_empty() {
        true => Err("the root must have a strategy; set another one: \
                     tachonym strategy set / best-route"
            .into()),
        false => Ok(prefix),
    }
}

/// Runs it.
///
/// # Errors
/// If the router refuses or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let management = &arguments.management;
    management.with(|controller| match &arguments.command {
        Command::List => {
            let choices = controller.strategies()?;
            let value = Value::Array(choices.iter().map(to_json).collect());
            management.print(&value, || list(&choices))
        }
        Command::Show { name } => {
            let mut choices = controller.strategies()?;
            choices.retain(|choice| name.starts_with(choice.name.view()));
            choices.sort_by_key(|choice| std::cmp::Reverse(choice.name.len()));
            choices.truncate(1);
            let Some(choice) = choices.first() else {
                anyhow::bail!("the router names no strategy for {name}");
            };
            management.print(&to_json(choice), || list(&choices))
        }
        Command::Set { prefix, strategy } => {
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                strategy: Some(strategy.clone()),
                ..ControlParameters::default()
            };
            let set = controller.command("strategy-choice", "set", &parameters);
            let set = set.map_err(|error| explain(error, strategy))?;
            let choice = StrategyChoice {
                name: prefix.clone(),
                strategy: set.strategy.unwrap_or_default(),
            };
            management.print(&to_json(&choice), || list(std::slice::from_ref(&choice)))
        }
        Command::Unset { prefix } => {
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                ..ControlParameters::default()
            };
            controller.command("strategy-choice", "unset", &parameters)?;
            let value = json!({ "prefix": prefix.to_string() });
            management.print(&value, || {
                format!("{prefix} inherits the strategy of a shorter prefix\n")
            })
        }
    })
}

/// A refusal, with the known strategies if the strategy is unknown.
fn explain(error: CommandError, strategy: &Name) -> anyhow::Error {
    let is_unknown = matches!(
        error,
        CommandError::Refused {
            code: status_code::NOT_FOUND,
            ..
        }
    );
    let error = anyhow::Error::new(error);
    match is_unknown {
        true => error.context(format!(
            "no strategy {strategy} (Tachonym has {})",
            strategies::short_names().join(", ")
        )),
        false => error,
    }
}

fn list(choices: &[StrategyChoice]) -> String {
    let mut rows = vec![["PREFIX", "STRATEGY"].map(String::from).to_vec()];
    for choice in choices {
        rows.push(vec![choice.name.to_string(), choice.strategy.to_string()]);
    }
    text::columns(&rows)
}

fn to_json(choice: &StrategyChoice) -> Value {
    json!({ "prefix": choice.name.to_string(), "strategy": choice.strategy.to_string() })
}
