//! `petstore help`, `completions` and `man`: what there is to know about the commands.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Command, ValueEnum as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use super::data::PETS;
use crate::context::Context;
use crate::env::Env;
use crate::error::{CliError, Kind, os_text};
use crate::output::OutputFormat;
use crate::screen::Color;
use crate::settings::config_file::ConfigFile;
use crate::suggest::similar;

/// Is set by the completion scripts to the shell that asks.
pub(crate) const COMPLETE: &str = "PETSTORE_COMPLETE";

/// What `petstore` alone prints.
pub(crate) const START: &str = include_str!("../help/start.txt");

/// The help of each command below its usage.
const COMMANDS: &[(&str, &str)] = &[
    ("", include_str!("../help/petstore.txt")),
    ("pets list", include_str!("../help/pets-list.txt")),
    ("pets create", include_str!("../help/pets-create.txt")),
    ("pets get", include_str!("../help/pets-get.txt")),
    ("pets export", include_str!("../help/pets-export.txt")),
    ("pets import", include_str!("../help/pets-import.txt")),
    ("store orders", include_str!("../help/store-orders.txt")),
    ("api", include_str!("../help/api.txt")),
    ("limits", include_str!("../help/limits.txt")),
    ("auth login", include_str!("../help/auth-login.txt")),
    ("auth status", include_str!("../help/auth-status.txt")),
    ("auth logout", include_str!("../help/auth-logout.txt")),
    ("config list", include_str!("../help/config-list.txt")),
    ("config get", include_str!("../help/config-get.txt")),
    ("config set", include_str!("../help/config-set.txt")),
    ("config unset", include_str!("../help/config-unset.txt")),
    ("config use", include_str!("../help/config-use.txt")),
    ("config profiles", include_str!("../help/config-profiles.txt")),
    ("config path", include_str!("../help/config-path.txt")),
    ("doctor", include_str!("../help/doctor.txt")),
    ("completions", include_str!("../help/completions.txt")),
    ("man", include_str!("../help/man.txt")),
    ("help", include_str!("../help/help.txt")),
    ("mock", include_str!("../help/mock.txt")),
];

const TOPICS: &[(&str, &str)] = &[
    ("options", include_str!("../help/topic-options.txt")),
    ("rate-limits", include_str!("../help/topic-rate-limits.txt")),
    ("exit-codes", include_str!("../help/topic-exit-codes.txt")),
    ("environment", include_str!("../help/topic-environment.txt")),
    ("output", include_str!("../help/topic-output.txt")),
];

/// Returns the help of a command below its usage.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}

/// Show the help of a command, or a topic.
#[derive(Debug, clap::Args)]
pub(crate) struct Help {
    /// the command, or the topic
    words: Vec<String>,
}

impl Help {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut tree = context.tree();
        tree.build();
        if let [word] = self.words.as_slice()
            && let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == word)
        {
            return context.print(text);
        }
        let mut command = &mut tree;
        for word in &self.words {
            if command.find_subcommand(word).is_none() {
                let names = command.get_subcommands().map(Command::get_name);
                let topics = TOPICS.iter().map(|(topic, _)| *topic);
                let error = CliError::usage(format!("no help on `{}`", self.words.join(" ")));
                return Err(match similar(word, names.chain(topics)) {
                    Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                    None => error.hint("`petstore --help` lists the commands"),
                });
            }
            command =
                command.find_subcommand_mut(word).ok_or_else(|| CliError::usage("no help"))?;
        }
        let text = command.render_help();
        let text = match context.options.screen.color {
            true => text.ansi().to_string(),
            false => text.to_string(),
        };
        context.print(&format!("{}\n", text.trim_end()))
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

        let value = self.shell.to_possible_value();
        let name = value.as_ref().map_or("", |value| value.get_name());
        let shells = Shells::builtins();
        let shell = shells.completer(name).ok_or_else(|| CliError::usage("no such shell"))?;
        let mut script = Vec::new();
        shell.write_registration(COMPLETE, NAME, NAME, NAME, &mut script)?;
        context.write(&script)?;
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

/// Writes what can follow in a line that is being typed. Reads the names of profiles, and sends
/// nothing.
pub(crate) fn complete(mut env: Env, tree: Command) -> Result<(), CliError> {
    let shells = Shells::builtins();
    let shell = env.var(COMPLETE).and_then(|name| shells.completer(name));
    // The line stands after `--`.
    let line: Vec<_> = env.args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect();
    if let (Some(shell), false) = (shell, line.is_empty()) {
        let mut text = Vec::new();
        let folder = Some(Path::new("."));
        shell.write_complete(&mut with_values(tree, &env), line, folder, &mut text)?;
        env.stdout.writer.write_all(&text)?;
        env.stdout.writer.flush()?;
    }
    Ok(())
}

/// Adds values that are not in the tree itself: profiles, fields, topics; and shows all options.
fn with_values(tree: Command, env: &Env) -> Command {
    let config = ConfigFile::load(env).unwrap_or_default();
    let profiles = one_of(config.profiles.into_keys().collect());
    let commands = tree.get_subcommands().map(|command| command.get_name().to_owned());
    let topics = TOPICS.iter().map(|(topic, _)| (*topic).to_owned());
    let helped = one_of(commands.chain(topics).collect());
    let (chosen, fields) = (profiles.clone(), ArgValueCompleter::new(complete_fields));
    tree.mut_args(|arg| arg.hide(false))
        .mut_arg("profile", |arg| arg.add(profiles))
        .mut_arg("output", |arg| arg.add(values_of::<OutputFormat>()))
        .mut_arg("color", |arg| arg.add(values_of::<Color>()))
        .mut_arg("fields", |arg| arg.add(fields).value_delimiter(None))
        .mut_subcommand("config", |config| {
            config.mut_subcommand("use", |choice| choice.mut_arg("name", |arg| arg.add(chosen)))
        })
        .mut_subcommand("pets", |pets| {
            pets.mut_subcommand("import", |import| import.mut_arg("file", |arg| arg.hide(false)))
        })
        .mut_subcommand("help", |help| help.mut_arg("words", |arg| arg.add(helped)))
}

fn values_of<T: clap::ValueEnum>() -> ArgValueCompleter {
    let values = T::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
    one_of(values.map(|value| value.get_name().to_owned()).collect())
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
    let (before, last) = word.rfind(',').map_or(("", &*word), |comma| word.split_at(comma + 1));
    let fits = PETS.fields.iter().filter(|field| field.starts_with(last));
    fits.map(|field| CompletionCandidate::new(format!("{before}{field}"))).collect()
}

/// Write the manual pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// write a page for each command into this folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut tree = with_notes(context.tree(), "");
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            clap_mangen::Man::new(tree).render(&mut page)?;
            return context.write(&page);
        };
        tree.build();
        let write = || {
            std::fs::create_dir_all(&folder)?;
            clap_mangen::generate_to(tree, &folder)
        };
        write().map_err(|problem| {
            let folder = folder.display();
            CliError::new(
                Kind::Internal,
                format!("cannot write to {folder}: {}", os_text(&problem)),
            )
        })
    }
}

/// Gives each command its examples and notes as the end of its page.
fn with_notes(command: Command, path: &str) -> Command {
    let notes = text(path).filter(|_| !path.is_empty()).unwrap_or_default();
    let notes = notes.replace("{all-args}", "").replace("Options:\n{options}", "");
    let command = command.after_help(notes.replace("{after-help}", "").replace("\n\n\n", "\n\n"));
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_notes(inner, path.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Values, flag, variable};

    #[test]
    fn every_setting_is_named_where_all_are_listed() {
        let topic = |name| TOPICS.iter().find(|(topic, _)| *topic == name).unwrap().1;
        for name in Values::NAMES {
            assert!(topic("environment").contains(&format!("\n  {} ", variable(name))), "{name}");
            assert!(topic("options").contains(&flag(name)), "{name}");
        }
    }

    #[test]
    fn every_text_fits_a_terminal() {
        for (name, text) in COMMANDS.iter().chain(TOPICS).chain(&[("start", START)]) {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}");
            assert!(text.ends_with('\n') && text.lines().count() <= 45, "{name}");
        }
    }

    #[test]
    fn the_topic_lists_every_exit_code() {
        let topic = TOPICS.iter().find(|(topic, _)| *topic == "exit-codes").unwrap().1;
        for kind in [Kind::Internal, Kind::Usage, Kind::Config, Kind::Refused, Kind::Service] {
            assert!(topic.contains(&format!("{:>3}  ", kind.code())), "{kind:?}");
        }
        for kind in [Kind::Network, Kind::RateLimited, Kind::Partial, Kind::NotFound] {
            assert!(topic.contains(&format!("{:>3}  ", kind.code())), "{kind:?}");
        }
        for kind in [Kind::Interrupted, Kind::Terminated] {
            assert!(topic.contains(&kind.code().to_string()), "{kind:?}");
        }
    }
}
