//! `petstore config …`: settings and profiles.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::files;
use crate::output::{ANY, Shape};
use crate::settings::config_file::{self, ConfigFile, Profile, profile_table};
use crate::settings::secrets::without_password;
use crate::settings::{Source, Values, checked_url, credentials, variable};

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the settings in force, with the source of each value.
    #[command(alias = "ls", after_long_help = examples!(
        "petstore config list",
        "petstore config list -o json";
        "Fields: setting, value, from. The API key itself is not shown."
    ))]
    List,
    /// Show the value of a setting.
    #[command(after_long_help = examples!(
        "petstore config get max_wait",
        "petstore config get base_url --profile staging";
        "Exits with 9 if the setting has no value."
    ))]
    Get(Setting),
    /// Set a value in the profile, which is created if missing.
    #[command(after_long_help = examples!(
        "petstore config set base_url https://petstore.example/v1",
        "petstore config set output json --profile staging";
        "Comments and the layout of the file stay as they are. A program that prints the key is set \
         in the file, below its profile: key_command = [\"pass\", \"show\", \"petstore\"]"
    ))]
    Set {
        #[command(flatten)]
        setting: Setting,
        /// Its value
        value: String,
    },
    /// Remove a value from the profile.
    #[command(after_long_help = examples!("petstore config unset output"))]
    Unset(Setting),
    /// Choose the default profile.
    #[command(after_long_help = examples!("petstore config use staging"))]
    Use(Named),
    /// Remove a profile and its API key.
    #[command(after_long_help = examples!("petstore config delete staging"))]
    Delete(Named),
    /// List the profiles.
    #[command(after_long_help = examples!("petstore config profiles"))]
    Profiles,
    /// Show the path of the configuration file.
    #[command(after_long_help = examples!("petstore config path"))]
    Path,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Setting {
    /// The setting
    #[arg(value_parser = PossibleValuesParser::new(Values::NAMES))]
    setting: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The profile
    name: Profile,
}

const SETTINGS: Shape = Shape {
    noun: "settings",
    fields: &["setting", "value", "from"],
    dropped: &["from"],
    ..ANY
};
const PROFILES: Shape = Shape {
    noun: "profiles",
    fields: &["profile", "baseUrl", "key", "inUse"],
    dropped: &["inUse", "key"],
    ..ANY
};

impl Config {
    pub(crate) fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::List => list(context),
            Self::Get(Setting { setting }) => get(context, &setting),
            Self::Set { setting, value } => set(context, &setting.setting, &value),
            Self::Unset(Setting { setting }) => unset(context, &setting),
            Self::Use(Named { name }) => choose(context, name.as_str()),
            Self::Delete(Named { name }) => delete(context, name.as_str()),
            Self::Profiles => profiles(context),
            Self::Path => {
                let path = ConfigFile::path(context.system().dirs());
                let path = path.ok_or_else(config_file::no_folder)?;
                let output = context.printer().start(ANY)?;
                output.document(&path.display().to_string())
            }
        }
    }
}

fn list(context: &Context) -> Result<()> {
    let settings = context.settings();
    let profile_source = settings.source_name("profile", settings.profile_source());
    let mut rows = vec![row("profile", Some(settings.profile()), &profile_source)];
    for setting in Values::NAMES {
        let (value, source) = settings.shown(setting).unzip();
        let source = source.unwrap_or(Source::Default);
        let value = value.as_deref().map(without_password);
        let from = settings.source_name(setting, source);
        rows.push(row(setting, value.as_deref(), &from));
    }
    // `doctor` reports an invalid key; here it counts as missing.
    let key = credentials::find(settings, context.system()).ok().flatten();
    let key = match &key {
        Some((_, source)) => row("api_key", Some("set"), &source.shown()),
        None => row("api_key", None, "default"),
    };
    rows.insert(2, key);
    context.printer().start(SETTINGS)?.document(&rows)
}

fn row(setting: &str, value: Option<&str>, from: &str) -> Value {
    json!({ "setting": setting, "value": value, "from": from })
}

fn get(context: &Context, setting: &str) -> Result<()> {
    let settings = context.settings();
    settings.require_profile()?;
    match settings.shown(setting) {
        Some((value, _)) => {
            let output = context.printer().start(ANY)?;
            output.document(&without_password(&value))
        }
        None => {
            let problem = format!("{setting} is not set");
            Err(CliError::new(Kind::NotFound, problem))
        }
    }
}

fn set(context: &Context, setting: &str, text: &str) -> Result<()> {
    let settings = context.settings();
    settings.refuse_mock("config set")?;
    if let Err(problem) = Values::default().set(setting, text) {
        return Err(CliError::usage(format!("{setting}: {problem}")));
    }
    if setting == "base_url" {
        checked_url(text, setting, "", true)?;
    }
    let profile = settings.profile();
    let stored = stored_text(setting, text)?;
    ConfigFile::edit(context.system(), |document| {
        if let Some(table) = profile_table(document, profile) {
            config_file::put(table, setting, &stored);
        }
    })?;
    let variable = variable(setting);
    if context.system().var(&variable).is_some() {
        let text = format!("{variable} is set and overrides the profile");
        context.ui().warning(&text, None);
    }
    Ok(())
}

/// Returns a value as it is stored in the file. Makes a path absolute, so that it does not depend
/// on the current folder.
fn stored_text(setting: &str, text: &str) -> Result<String> {
    if setting != "ca_file" || text.starts_with("~/") {
        return Ok(text.to_owned());
    }
    let path = std::path::absolute(text)
        .map_err(|problem| CliError::io(Kind::Usage, format!("cannot find {text}"), &problem))?;
    Ok(path.to_string_lossy().into_owned())
}

fn unset(context: &Context, setting: &str) -> Result<()> {
    let settings = context.settings();
    settings.refuse_mock("config unset")?;
    settings.require_profile()?;
    let profile = settings.profile();
    let values = settings.profile_values();
    if values.and_then(|values| values.text(setting)).is_none() {
        let text = format!("profile {profile} has no {setting}");
        context.ui().note(&text);
        return Ok(());
    }
    ConfigFile::edit(context.system(), |document| {
        if let Some(table) = profile_table(document, profile) {
            table.remove(setting);
        }
    })
}

fn choose(context: &Context, name: &str) -> Result<()> {
    let settings = context.settings();
    settings.refuse_mock("config use")?;
    if name != "default" && !settings.config().has(name) {
        return Err(settings.no_profile(name));
    }
    ConfigFile::edit(context.system(), |document| {
        config_file::put(document.as_table_mut(), "profile", name);
    })
}

/// Removes a profile, its key, and its choice as the default profile.
fn delete(context: &Context, name: &str) -> Result<()> {
    let settings = context.settings();
    let system = context.system();
    settings.refuse_mock("config delete")?;
    let key = credentials::path(system.dirs(), name)?;
    let has_profile = settings.config().has(name);
    if !has_profile && !key.exists() {
        let error = settings.no_profile(name);
        return Err(match settings.config().profile_names().next() {
            Some(_) => error,
            // The hint would create it.
            None => error.hint_if(None),
        });
    }
    let was_chosen = settings.config().profile() == Some(name);
    if has_profile || was_chosen {
        ConfigFile::edit(context.system(), |document| {
            if let Some(profiles) = document.get_mut("profiles")
                && let Some(profiles) = profiles.as_table_like_mut()
            {
                profiles.remove(name);
            }
            if was_chosen {
                document.remove("profile");
            }
        })?;
    }
    let with_key = match files::remove(&key, system)? {
        true => " and its API key",
        false => "",
    };
    let ui = context.ui();
    ui.note(&format!("removed profile {name}{with_key}"));
    if was_chosen {
        ui.note("the default profile is used from now on");
    }
    Ok(())
}

fn profiles(context: &Context) -> Result<()> {
    let settings = context.settings();
    let mut rows = Vec::new();
    for (name, values) in settings.config().profiles() {
        let is_stored =
            credentials::path(context.system().dirs(), name).is_ok_and(|path| path.exists());
        let key = match values.key_command() {
            Some(_) => Some("key_command"),
            None if is_stored => Some("stored"),
            None => None,
        };
        rows.push(json!({
            "profile": name,
            "baseUrl": values.base_url().map(without_password),
            "key": key,
            "inUse": name == settings.profile(),
        }));
    }
    context.printer().start(PROFILES)?.document(&rows)?;
    if rows.is_empty() {
        let hint = "`petstore auth login --profile NAME --base-url https://HOST/v1` creates one";
        context.ui().note_with_hint("no profiles", Some(hint));
    }
    Ok(())
}
