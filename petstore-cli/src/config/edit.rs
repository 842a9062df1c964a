//! Changes the file, and leaves comments, order and layout as they are.

use std::path::PathBuf;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::file::Config;
use super::setting::Setting;
use crate::env::Dirs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files;

/// A file that is being changed.
pub(crate) struct Edit {
    path: PathBuf,
    document: DocumentMut,
}

impl Edit {
    /// Opens the file; one that does not make sense is not changed.
    pub(crate) fn open(dirs: &Dirs) -> Result<Self, CliError> {
        Config::load(dirs)?;
        let path = Config::path(dirs).ok_or_else(no_home)?;
        let failed =
            |problem| CliError::new(Exit::Internal, format!("{}: {problem}", path.display()));
        let text = files::read(&path).map_err(|problem| failed(problem.to_string()))?;
        let document = text.unwrap_or_default().parse::<DocumentMut>();
        let document = document.map_err(|problem| failed(problem.to_string()))?;
        Ok(Self { path, document })
    }

    /// Chooses the profile that is used where none is named.
    pub(crate) fn choose(&mut self, profile: &str) {
        put(self.document.as_table_mut(), "profile", profile.into());
    }

    /// Sets a value that was checked.
    pub(crate) fn set(&mut self, profile: &str, setting: Setting, text: &str) {
        let value = match setting {
            Setting::AllowInsecureHttp => Value::from(text == "true"),
            Setting::MaxWait => Value::from(text.parse::<i64>().unwrap_or_default()),
            _ => Value::from(text),
        };
        if let Some(settings) = self.profile(profile) {
            put(settings, setting.name(), value);
        }
    }

    /// Removes a setting; says whether it was there.
    pub(crate) fn unset(&mut self, profile: &str, setting: Setting) -> bool {
        let inside = |table: &mut dyn TableLike| table.remove(setting.name()).is_some();
        self.profile(profile).is_some_and(inside)
    }

    /// Writes the file.
    pub(crate) fn save(self) -> Result<(), CliError> {
        let text = self.document.to_string();
        Config::parse(&self.path, &text)?;
        files::write(&self.path, &text).map_err(|problem| {
            let path = self.path.display();
            CliError::new(Exit::Internal, format!("could not write {path}: {problem}"))
        })
    }

    /// Returns a profile's table, made where there is none.
    fn profile(&mut self, name: &str) -> Option<&mut dyn TableLike> {
        let mut unnamed = Table::new();
        unnamed.set_implicit(true);
        let profiles = self.document.as_table_mut().entry("profiles").or_insert(unnamed.into());
        let profiles = profiles.as_table_like_mut()?;
        profiles.entry(name).or_insert(Item::Table(Table::new())).as_table_like_mut()
    }
}

/// Puts a value where another may stand, whose comments stay.
fn put(table: &mut dyn TableLike, name: &str, mut value: Value) {
    match table.get_mut(name) {
        Some(item) => {
            if let Some(old) = item.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(value);
        }
        None => {
            table.insert(name, Item::Value(value));
        }
    }
}

fn no_home() -> CliError {
    CliError::new(Exit::Config, "there is no folder for the configuration")
        .hint("set HOME or XDG_CONFIG_HOME; variables such as PETSTORE_BASE_URL need no folder")
}
