//! `petstore help`, `completions` and `man`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use clap_mangen::roff::{Roff, roman};

use super::data::PETS;
use crate::context::Context;
use crate::env::Env;
use crate::error::{CliError, ErrorFormat, Kind};
use crate::output::OutputFormat;
use crate::screen::Color;
use crate::settings::config_file::ConfigFile;
use crate::settings::value_names;
use crate::suggest::{did_you_mean, full_name};

/// The completion scripts set this variable to the name of the shell.
pub(crate) const COMPLETE: &str = "PETSTORE_COMPLETE";

/// The output of `petstore` without arguments.
pub(crate) const START: &str = include_str!("../help/start.txt");

/// The help of each command after its usage, below a line `=== COMMAND`.
const COMMANDS: &str = include_str!("../help/commands.txt");

/// The topics of `petstore help`, in the same format.
const TOPICS: &str = include_str!("../help/topics.txt");

/// Returns the names and the texts of a file.
fn sections(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("=== ")
        .filter_map(|section| section.split_once('\n'))
}

/// Returns the help of a command after its usage.
pub(crate) fn text(command: &str) -> Option<&'static str> {
    sections(COMMANDS)
        .find(|(name, _)| *name == command)
        .map(|(_, text)| text)
}

/// Show the help of a command, or a topic.
#[derive(Debug, clap::Args)]
pub(crate) struct Help {
    /// the command, or the topic
    words: Vec<String>,
}

impl Help {
    pub(crate) fn run(self, context: &mut Context, mut tree: Command) -> Result<(), CliError> {
        let name = self.words.join(" ");
        if let Some((_, text)) = sections(TOPICS).find(|(topic, _)| *topic == name) {
            return context.print_help(text);
        }
        tree.build();
        let mut command = &tree;
        for word in &self.words {
            let topics = sections(TOPICS).map(|(topic, _)| topic);
            let names = command
                .get_subcommands()
                .map(Command::get_name)
                .chain(topics);
            command = command.find_subcommand(word).ok_or_else(|| {
                let full = full_name(&tree, &name);
                let hint = full.map(|full| format!("did you mean `petstore help {full}`?"));
                let hint = hint
                    .or_else(|| did_you_mean(word, names))
                    .unwrap_or_else(|| "`petstore --help` lists the commands".to_owned());
                CliError::usage(format!("no help on `{name}`")).hint(hint)
            })?;
        }
        let text = context
            .options
            .screen
            .styled(&command.clone().render_help());
        context.print_help(&text)
    }
}

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        const NAME: &str = "petstore";

        let shells = Shells::builtins();
        let completer = shells.completer(&self.shell.to_string());
        let completer = completer.ok_or_else(|| CliError::usage("no such shell"))?;
        completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut context.stdout)?;
        let place = match self.shell {
            Shell::Bash => "~/.local/share/bash-completion/completions/petstore",
            Shell::Zsh => "a folder of $fpath, as _petstore",
            Shell::Fish => "~/.config/fish/completions/petstore.fish",
            Shell::Elvish => "~/.config/elvish/rc.elv",
            _ => "your $PROFILE",
        };
        context.ui.note(&format!("put it into {place}"));
        Ok(())
    }
}

/// Writes the completions of an incomplete line. Reads the names of profiles, and sends no
/// requests.
pub(crate) fn complete(mut env: Env, tree: Command) -> Result<(), CliError> {
    let shells = Shells::builtins();
    let shell = env.var(COMPLETE).and_then(|name| shells.completer(name));
    // The line follows `--`.
    let line: Vec<_> = env
        .args
        .iter()
        .skip_while(|arg| *arg != "--")
        .skip(1)
        .cloned()
        .collect();
    if let (Some(shell), false) = (shell, line.is_empty()) {
        let types_option = line
            .last()
            .is_some_and(|word| word.to_string_lossy().starts_with('-'));
        let tree = if types_option {
            tree.mut_args(|arg| arg.hide(false))
        } else {
            tree
        };
        let mut tree = with_values(tree, &env);
        let folder = Some(Path::new("."));
        shell.write_complete(&mut tree, line, folder, &mut env.stdout.writer)?;
        env.stdout.writer.flush()?;
    }
    Ok(())
}

/// Adds values that the command tree does not have (profiles, fields, topics), and shows all
/// options.
fn with_values(tree: Command, env: &Env) -> Command {
    let profiles = ConfigFile::load(env).unwrap_or_default().profiles;
    let profiles = one_of(profiles.into_keys().collect());
    let chosen = profiles.clone();
    let commands = tree.get_subcommands().map(Command::get_name);
    let words = commands
        .chain(sections(TOPICS).map(|(topic, _)| topic))
        .map(str::to_owned);
    let words = one_of(words.collect());
    let fields = ArgValueCompleter::new(complete_fields);
    tree.mut_arg("profile", |arg| arg.add(profiles))
        .mut_arg("output", |arg| {
            arg.add(one_of(value_names::<OutputFormat>()))
        })
        .mut_arg("color", |arg| arg.add(one_of(value_names::<Color>())))
        .mut_arg("error_format", |arg| {
            arg.add(one_of(value_names::<ErrorFormat>()))
        })
        .mut_arg("fields", |arg| arg.add(fields).value_delimiter(None))
        .mut_subcommand("config", |config| {
            config.mut_subcommand("use", |choice| {
                choice.mut_arg("name", |arg| arg.add(chosen))
            })
        })
        .mut_subcommand("pets", |pets| {
            pets.mut_subcommand("import", |import| {
                import.mut_arg("file", |arg| arg.hide(false))
            })
        })
        .mut_subcommand("help", |help| help.mut_arg("words", |arg| arg.add(words)))
}

fn one_of(names: Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |word: &OsStr| {
        let word = word.to_string_lossy();
        let fits = names.iter().filter(|name| name.starts_with(&*word));
        fits.map(CompletionCandidate::new).collect()
    })
}

/// Completes the last field of a list: `id,na` becomes `id,name`.
fn complete_fields(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let (before, last) = word
        .rfind(',')
        .map_or(("", &*word), |comma| word.split_at(comma + 1));
    let fits = PETS.fields.iter().filter(|field| field.starts_with(last));
    fits.map(|field| CompletionCandidate::new(format!("{before}{field}")))
        .collect()
}

/// Write the manual pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// write a page for each command into this folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, context: &mut Context, mut tree: Command) -> Result<(), CliError> {
        tree.build();
        let Some(folder) = self.folder else {
            return Ok(write_page(&tree, "petstore", &mut context.stdout)?);
        };
        let made = std::fs::create_dir_all(&folder);
        made.and_then(|()| write_pages(&tree, "petstore", &folder))
            .map_err(|problem| {
                let action = format!("cannot write to {}", folder.display());
                CliError::io(Kind::Internal, action, &problem)
            })
    }
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &Command, path: &str, folder: &Path) -> io::Result<()> {
    let mut file = File::create(folder.join(format!("{}.1", path.replace(' ', "-"))))?;
    write_page(command, path, &mut file)?;
    let mut inner = command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set());
    inner.try_for_each(|inner| write_pages(inner, &format!("{path} {}", inner.get_name()), folder))
}

/// Writes the page of a command, with the examples and notes of its help.
fn write_page(command: &Command, path: &str, out: &mut dyn Write) -> io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let page = page.source(concat!("petstore ", env!("CARGO_PKG_VERSION")));
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    if command.get_long_about().is_some() {
        page.render_description_section(out)?;
    }
    let (examples, rest) = text(path)
        .and_then(|text| text.split_once("\n\n"))
        .unwrap_or_default();
    // Without options, the rest is a list of commands.
    let (before, after) = rest.split_once("{all-args}").unwrap_or_default();
    let notes = [before, after.trim_start_matches('\n')].concat();
    write_section("EXAMPLES", examples.trim_start_matches("Examples:"), out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    write_section("NOTES", &notes, out)
}

fn write_section(title: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let text = text.trim_matches('\n');
    if text.is_empty() {
        return Ok(());
    }
    let mut page = Roff::new();
    page.control("SH", [title]);
    let mut is_indented = true;
    for line in text.lines() {
        // A page fills its lines, but for those that are indented.
        let follows = std::mem::replace(&mut is_indented, line.starts_with(' '));
        match line {
            "" => page.control("PP", []),
            line if follows || is_indented => page.control("br", []).text([roman(line)]),
            line => page.text([roman(line)]),
        };
    }
    page.to_writer(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Values, flag, variable};

    fn topic(name: &str) -> &'static str {
        sections(TOPICS)
            .find(|(topic, _)| *topic == name)
            .unwrap()
            .1
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
