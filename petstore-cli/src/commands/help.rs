//! `petstore help`: the texts of commands and topics.

use clap::Command;
use petstore_client::Pet;

use crate::error::{CliError, Result};
use crate::global::global_options;
use crate::output::Printer;
use crate::settings::{OUTPUT, REQUESTS, SERVICE, Values, variable};
use crate::suggest::{did_you_mean, full_name};

/// The output of `petstore` without arguments.
pub(crate) const START: &str = include_str!("../help/start.txt");

/// The part of each command's help that follows its usage, below a line `=== COMMAND`.
const COMMANDS: &str = include_str!("../help/commands.txt");

/// The topics of `petstore help`, below lines `=== TOPIC: TITLE`.
const TOPICS: &str = include_str!("../help/topics.txt");

/// The placeholders in the help of a command for the fields of a pet, and of a new pet.
const PET_FIELDS: &str = "{pet-fields}";
const NEW_PET_FIELDS: &str = "{new-pet-fields}";

/// The placeholder in a topic for the options of every command.
const OPTIONS: &str = "{options}";

/// Returns the names and the texts of a file.
fn sections(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("=== ")
        .filter_map(|section| section.split_once('\n'))
}

/// Returns the help of a command after its usage, with the fields of a pet filled in.
pub(crate) fn text(command: &str) -> Option<String> {
    let (_, text) = sections(COMMANDS).find(|(name, _)| *name == command)?;
    let text = text.replace(PET_FIELDS, &Pet::FIELDS.join(", "));
    // The service assigns the id.
    Some(text.replace(NEW_PET_FIELDS, &Pet::FIELDS[1..].join(", ")))
}

/// A topic of `petstore help`.
#[derive(Clone, Copy)]
pub(super) struct Topic {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    template: &'static str,
}

/// Returns the topics.
pub(super) fn topics() -> impl Iterator<Item = Topic> {
    sections(TOPICS).map(|(head, template)| {
        let (name, title) = head.split_once(": ").unwrap_or((head, ""));
        Topic {
            name,
            title,
            template,
        }
    })
}

impl Topic {
    /// Returns the text, with the options and the variables of settings filled in.
    pub(super) fn text(self) -> String {
        let mut text = self.template.to_owned();
        if text.contains(OPTIONS) {
            let options = global_options().render_help().to_string();
            text = text.replace(OPTIONS, options.trim_end());
        }
        for heading in [SERVICE, OUTPUT, REQUESTS] {
            text = text.replace(&format!("{{{heading}}}\n"), &variables(heading));
        }
        text
    }
}

/// Returns the variables of the settings below a heading.
fn variables(heading: &str) -> String {
    let options = global_options();
    let mut text = String::new();
    for name in Values::NAMES {
        let mut args = options.get_arguments();
        let Some(arg) = args.find(|arg| arg.get_id() == name) else {
            continue;
        };
        if arg.get_help_heading() != Some(heading) {
            continue;
        }
        let help = arg.get_help();
        let help = help.map(ToString::to_string).unwrap_or_default();
        let variable = variable(name);
        // The line need not repeat the variable's name.
        let help = help
            .replace(&format!("; {variable}]"), "]")
            .replace(&format!(" [{variable}]"), "");
        text += &format!("  {variable:<28}  {help}\n");
    }
    text
}

/// Show the help of a command, or a topic.
#[derive(Debug, clap::Args)]
pub(crate) struct Help {
    /// the command, or the topic
    words: Vec<String>,
}

impl Help {
    pub(crate) fn run(self, printer: &Printer, mut tree: Command) -> Result<()> {
        let name = self.words.join(" ");
        if let Some(topic) = topics().find(|topic| topic.name == name) {
            return printer.print_help(&topic.text());
        }
        tree.build();
        let mut command = &tree;
        for word in &self.words {
            match command.find_subcommand(word) {
                Some(inner) => command = inner,
                None => {
                    let problem = format!("no help on `{name}`");
                    let hint = hint(&tree, &name, command, word);
                    return Err(CliError::usage(problem).hint(hint));
                }
            }
        }
        let help = command.clone().render_help();
        printer.print_help(&help.to_string())
    }
}

/// Returns what the user may have meant by a word that is neither a command in `parent` nor a topic.
fn hint(tree: &Command, name: &str, parent: &Command, word: &str) -> String {
    if let Some(full) = full_name(tree, name) {
        return format!("did you mean `petstore help {full}`?");
    }
    let mut names = Vec::new();
    for inner in parent.get_subcommands() {
        names.push(inner.get_name());
    }
    for topic in topics() {
        names.push(topic.name);
    }
    match did_you_mean(word, names) {
        Some(hint) => hint,
        None => "`petstore --help` lists the commands".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::ValueEnum as _;

    use super::*;
    use crate::error::Kind;
    use crate::output::OutputFormat;
    use crate::settings::flag;

    fn topic(name: &str) -> String {
        topics().find(|topic| topic.name == name).unwrap().text()
    }

    #[test]
    fn every_setting_is_named_where_all_are_listed() {
        for name in Values::NAMES {
            assert!(
                topic("environment").contains(&format!("\n  {} ", variable(name))),
                "{name}"
            );
            assert!(topic("options").contains(&flag(name)), "{name}");
        }
    }

    #[test]
    fn every_output_format_is_named_where_it_can_be_used() {
        let export = text("petstore pets export").unwrap();
        for format in OutputFormat::value_variants() {
            let name = format.name();
            let line = format!("\n  {name} ");
            assert!(topic("output").contains(&line), "{name}");
            let is_file = OutputFormat::of_file(Path::new(&format!("pets.{name}"))).is_some();
            if is_file && format.can_continue() {
                assert!(export.contains(&format!(".{name}")), "{name}");
            }
        }
    }

    #[test]
    fn every_text_fits_a_terminal() {
        for (name, text) in sections(COMMANDS)
            .chain(sections(TOPICS))
            .chain([("start", START)])
        {
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{name}"
            );
            assert!(text.ends_with('\n') && text.lines().count() <= 45, "{name}");
        }
    }

    #[test]
    fn the_topic_lists_every_exit_code() {
        let codes = [
            Kind::Internal,
            Kind::Usage,
            Kind::Config,
            Kind::Refused,
            Kind::Service,
            Kind::Network,
            Kind::RateLimited,
            Kind::Partial,
            Kind::NotFound,
        ];
        for kind in codes {
            assert!(
                topic("exit-codes").contains(&format!("{:>3}  ", kind.code())),
                "{kind:?}"
            );
        }
        for kind in [Kind::Interrupted, Kind::Terminated] {
            assert!(
                topic("exit-codes").contains(&kind.code().to_string()),
                "{kind:?}"
            );
        }
    }
}
