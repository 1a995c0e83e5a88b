//! Experiments that are a command of the program and print Markdown.

use std::fs;
use std::path::PathBuf;
use std::process;

use anyhow::{Context as _, bail};

use crate::experiment::Context;
use crate::markdown;
use crate::params::Scale;
use crate::record::{Kind, Record};

/// A command with its arguments at each scale.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// How its numbers come about.
    pub kind: Kind,
    /// Arguments at all scales, the command first.
    pub args: &'static [&'static str],
    /// Further arguments at the scales tiny, quick and full.
    pub at_scale: [&'static [&'static str]; 3],
}

/// A file of its own in the temporary folder, removed in the end.
struct Drawing(PathBuf);

impl Drawing {
    fn new() -> Self {
        let name = format!("tachonym-lab-{}.svg", process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        // It is there only if the command drew.
        let _ = fs::remove_file(&self.0);
    }
}

impl Command {
    /// Runs the command and reads the tables that it prints.
    pub(crate) fn run(&self, context: &Context) -> anyhow::Result<Record> {
        let at = match context.scale {
            Scale::Tiny => 0,
            Scale::Quick => 1,
            Scale::Full => 2,
        };
        let drawing = Drawing::new();
        let mut args = Vec::new();
        for arg in self.args.iter().chain(self.at_scale[at]) {
            args.push(match *arg {
                "{svg}" => drawing.0.display().to_string(),
                "{tachonym}" => {
                    let router = context.router.as_ref().context("the router is missing")?;
                    router.display().to_string()
                }
                arg => arg.to_owned(),
            });
        }
        let output = process::Command::new(&context.program)
            .args(&args)
            .output()
            .with_context(|| format!("cannot run {}", context.program.display()))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            bail!(
                "`{}` failed: {}",
                args.join(" "),
                last.unwrap_or("no message")
            );
        }
        let mut record = Record::new(self.kind);
        // The first two lines name the machine and the command.
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<_> = text.lines().skip(2).collect();
        (record.tables, record.notes) = markdown::parse(&lines.join("\n"));
        record.drawings.extend(fs::read_to_string(&drawing.0));
        record.note(format!("command: tachonym-lab {}", self.args.join(" ")));
        Ok(record)
    }
}
