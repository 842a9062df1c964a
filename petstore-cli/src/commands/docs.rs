//! `petstore docs`: the tree of commands, for programs and for pages.

use std::fmt::Write as _;

use clap::{Arg, Command};
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::output::OutputFormat;

/// Writes the tree of commands: each with its arguments and examples
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore docs --format md
  petstore docs --format json --jq '.commands[].name'")]
pub(crate) struct Docs {
    /// How it is written
    #[arg(long, default_value = "md")]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// One JSON document
    Json,
    /// Markdown
    Md,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    arguments: Vec<Argument>,
    examples: Vec<String>,
    commands: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Argument {
    /// As it is typed, such as `-o, --output <FORMAT>`.
    usage: String,
    help: String,
    required: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

impl Docs {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut tree = context.tree();
        tree.build();
        let root = entry(&tree, "petstore", true);
        if self.format == Form::Json || context.look().jq.is_some() {
            return context.output_or(OutputFormat::Json, None)?.document(&root).await;
        }
        let mut text = String::new();
        markdown(&root, &mut text);
        Ok(context.stdout().write_all(text.as_bytes())?)
    }
}

fn entry(command: &Command, name: &str, is_root: bool) -> Entry {
    let text = |styled: Option<&clap::builder::StyledStr>| styled.map(ToString::to_string);
    let about = text(command.get_about()).unwrap_or_default();
    let long = text(command.get_long_about()).filter(|long| *long != about);
    let after = text(command.get_after_help()).unwrap_or_default();
    let shown = |arg: &&Arg| !arg.is_hide_set() && (is_root || !arg.is_global_set());
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    Entry {
        name: name.to_owned(),
        about,
        description: long,
        arguments: command
            .get_arguments()
            .filter(shown)
            .filter(|arg| arg.get_id() != "help" && (is_root || arg.get_id() != "version"))
            .map(argument)
            .collect(),
        examples: examples(&after),
        commands: inner
            .map(|inner| entry(inner, &format!("{name} {}", inner.get_name()), false))
            .collect(),
    }
}

fn argument(arg: &Arg) -> Argument {
    let values = arg.get_possible_values();
    let takes_value = arg.get_num_args().is_some_and(|range| range.takes_values());
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    Argument {
        usage: match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(_)) => format!("-{short}, {arg}"),
            _ => arg.to_string(),
        },
        help: arg
            .get_long_help()
            .or_else(|| arg.get_help())
            .map(ToString::to_string)
            .unwrap_or_default(),
        required: arg.is_required_set(),
        values: values.iter().filter(|_| takes_value).map(|v| v.get_name().to_owned()).collect(),
        default: takes_value
            .then(|| defaults.collect::<Vec<_>>().join(" "))
            .filter(|d| !d.is_empty()),
    }
}

/// Returns the lines below `Examples:`.
fn examples(after_help: &str) -> Vec<String> {
    let lines = after_help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().to_owned()).collect()
}

fn markdown(entry: &Entry, out: &mut String) {
    let level = "#".repeat(entry.name.split(' ').count());
    let about = entry.description.as_ref().unwrap_or(&entry.about);
    let _ = write!(out, "{level} {}\n\n{}\n\n", entry.name, about.trim_end());
    for argument in &entry.arguments {
        let help = argument.help.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(out, "- `{}`: {help}", argument.usage);
        if !argument.values.is_empty() {
            let _ = write!(out, " ({})", argument.values.join(", "));
        }
        out.push('\n');
    }
    if !entry.arguments.is_empty() {
        out.push('\n');
    }
    if !entry.examples.is_empty() {
        let _ = write!(out, "```sh\n{}\n```\n\n", entry.examples.join("\n"));
    }
    for inner in &entry.commands {
        markdown(inner, out);
    }
}
