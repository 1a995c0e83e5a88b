//! `tachonym strategy`: which strategy forwards which prefix.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_packet::{Name, NameUriError};
use tachonym_protocol::{ControlParameters, StrategyChoice};

use super::{Management, text};

/// What a strategy's short name stands behind.
const STRATEGY_PREFIX: &str = "/localhost/nfd/strategy";

/// List, set and unset strategies.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the strategies and the prefixes they are set for.
    List,
    /// Show the strategy that forwards a name.
    Show {
        /// The name.
        name: Name,
    },
    /// Set the strategy of a prefix.
    Set {
        /// The prefix.
        prefix: Name,
        /// The strategy: a short name such as multicast, or a whole one.
        #[arg(value_parser = parse_strategy)]
        strategy: Name,
    },
    /// Let a prefix inherit its strategy again.
    Unset {
        /// The prefix.
        prefix: Name,
    },
}

fn parse_strategy(text: &str) -> Result<Name, NameUriError> {
    match text.starts_with('/') {
        true => text.parse(),
        false => format!("{STRATEGY_PREFIX}/{text}").parse(),
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
            let set = controller.command("strategy-choice", "set", &parameters)?;
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
            management.print(&value, || format!("{prefix} inherits its strategy\n"))
        }
    })
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
