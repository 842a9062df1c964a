//! `petstore man`: the manual pages.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::roff::Roff;

use super::help::{text, topics};
use crate::error::{CliError, Kind, Result};
use crate::global::global_options;
use crate::output::Printer;
use crate::output::text::manual;

/// Write the manual pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// write a page for each command and topic into this folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, printer: &Printer, mut tree: Command) -> Result<()> {
        tree.build();
        let Some(folder) = self.folder else {
            write_page(&tree, "petstore", &mut printer.stdout())?;
            return Ok(());
        };
        match write_all(&tree, &folder) {
            Ok(()) => Ok(()),
            Err(problem) => {
                let action = format!("cannot write to {}", folder.display());
                Err(CliError::io(Kind::Internal, action, &problem))
            }
        }
    }
}

fn write_all(tree: &Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    write_pages(tree, "petstore", folder)?;
    write_topics(folder)
}

/// The topics that are sections of the first page, with their titles there.
const SECTIONS: [(&str, &str); 3] = [
    ("environment", "ENVIRONMENT"),
    ("exit-codes", "EXIT STATUS"),
    ("files", "FILES"),
];

/// Writes the pages of the topics.
fn write_topics(folder: &Path) -> io::Result<()> {
    for topic in topics() {
        let name = format!("petstore-help-{}", topic.name);
        let command = Command::new("petstore").display_name(&name);
        let page = clap_mangen::Man::new(command.about(topic.title));
        let mut file = File::create(folder.join(format!("{name}.1")))?;
        write_title(&name, &mut file)?;
        page.render_name_section(&mut file)?;
        write_section("DESCRIPTION", &topic.text(), &mut file)?;
        write_section("SEE ALSO", "petstore(1)", &mut file)?;
    }
    Ok(())
}

/// Writes the title, without a date. Turns hyphenation off, because names of variables would be
/// broken. clap's own title would have the version in place of the date.
fn write_title(name: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = name.to_uppercase();
    let version = env!("CARGO_PKG_VERSION");
    writeln!(out, ".TH {name} 1 \"\" \"petstore {version}\"\n.nh\n.ad l")
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &Command, path: &str, folder: &Path) -> io::Result<()> {
    let name = path.replace(' ', "-");
    let mut file = File::create(folder.join(format!("{name}.1")))?;
    write_page(command, path, &mut file)?;
    for inner in command.get_subcommands() {
        if !inner.is_hide_set() {
            let path = format!("{path} {}", inner.get_name());
            write_pages(inner, &path, folder)?;
        }
    }
    Ok(())
}

/// Writes the page of a command, with the examples and notes of its help. The first page also has
/// the options of every command.
fn write_page(command: &Command, path: &str, out: &mut dyn Write) -> io::Result<()> {
    let is_first = path == "petstore";
    let page = clap_mangen::Man::new(match is_first {
        true => with_global_options(command),
        false => command.clone(),
    });
    write_title(&path.replace(' ', "-"), out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    if command.get_long_about().is_some() {
        page.render_description_section(out)?;
    }
    let text = text(path).unwrap_or_default();
    let (examples, rest) = text.split_once("\n\n").unwrap_or_default();
    // A command without options has a list of commands here.
    let (before, after) = rest.split_once("{all-args}").unwrap_or_default();
    let notes = [before, after.trim_start_matches('\n')].concat();
    write_section("EXAMPLES", examples.trim_start_matches("Examples:"), out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    write_section("NOTES", &notes, out)?;
    if !is_first {
        let see = "petstore(1), petstore-help-options(1), petstore-help-exit-codes(1)";
        return write_section("SEE ALSO", see, out);
    }
    write_first_end(out)
}

/// Writes the end of the first page: some of the topics, and the names of all.
fn write_first_end(out: &mut dyn Write) -> io::Result<()> {
    let mut see = Vec::new();
    for topic in topics() {
        for (name, title) in SECTIONS {
            if name == topic.name {
                write_section(title, &topic.text(), out)?;
            }
        }
        see.push(format!("petstore-help-{}(1)", topic.name));
    }
    write_section("SEE ALSO", &see.join(", "), out)
}

/// Returns the command with the options of every command, in one list.
fn with_global_options(command: &Command) -> Command {
    let mut options = global_options();
    // This sets what a page shows of each option.
    options.build();
    let mut globals = Vec::new();
    for option in options.get_arguments() {
        if option.get_id() != "help" {
            globals.push(option.clone().help_heading(None));
        }
    }
    command.clone().mut_args(|arg| {
        for global in &globals {
            if global.get_id() == arg.get_id() {
                return global.clone();
            }
        }
        arg
    })
}

fn write_section(title: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Roff::new();
    manual(title, text, &mut page);
    page.to_writer(out)
}
