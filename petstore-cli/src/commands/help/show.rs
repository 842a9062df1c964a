//! Finds what help was asked for, and shows it.

use super::topics::TOPICS;
use crate::context::Context;
use crate::error::CliError;
use crate::suggest::similar;

/// Shows the help of a command, or on a topic
///
/// The topics are environment, exit-codes, output and rate-limits.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore help pets list
  petstore help environment
  petstore help exit-codes")]
pub(crate) struct Help {
    /// The command, or the topic
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

impl Help {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut tree = context.tree();
        tree.build();
        if let [word] = self.words.as_slice()
            && tree.find_subcommand(word).is_none()
            && let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == word)
        {
            return Ok(context.stdout().write_all(text.as_bytes())?);
        }
        let mut command = &mut tree;
        for word in &self.words {
            if command.find_subcommand(word).is_none() {
                let names = command.get_subcommands().map(clap::Command::get_name);
                let topics = TOPICS.iter().map(|(topic, _)| *topic);
                let error =
                    CliError::usage(format!("there is no help on `{}`", self.words.join(" ")));
                return Err(match similar(word, names.chain(topics)) {
                    Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                    None => error.hint("`petstore --help` lists the commands"),
                });
            }
            command =
                command.find_subcommand_mut(word).ok_or_else(|| CliError::usage("no help"))?;
        }
        let text = command.render_long_help();
        let color = context.look().color;
        let text = if color { text.ansi().to_string() } else { text.to_string() };
        Ok(context.stdout().write_all(text.as_bytes())?)
    }
}
