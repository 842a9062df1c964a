//! `petstore man`: the manual pages.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::roff::{Roff, roman};

use super::help::text;
use crate::error::{CliError, Kind};
use crate::output::Printer;

/// Write the manual pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// write a page for each command into this folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, printer: &Printer, mut tree: Command) -> Result<(), CliError> {
        tree.build();
        let Some(folder) = self.folder else {
            return Ok(write_page(&tree, "petstore", &mut printer.stdout())?);
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
