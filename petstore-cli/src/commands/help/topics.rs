//! What there is to know besides the commands.

use crate::exit;

/// The topics, each with its text.
pub(in crate::commands) const TOPICS: [(&str, &str); 4] = [
    ("environment", ENVIRONMENT),
    ("exit-codes", exit::HELP),
    ("output", OUTPUT),
    ("rate-limits", RATE_LIMITS),
];

const ENVIRONMENT: &str = "\
A flag goes before a variable, a variable before the profile, the profile before
the default. `petstore config list` shows what holds, and where it comes from.

What is sent, and where to:
  PETSTORE_BASE_URL             the service's base URL, such as https://HOST/v1
  PETSTORE_ALLOW_INSECURE_HTTP  true: plain http to another machine is allowed
  PETSTORE_CA_FILE              a PEM file of authorities to trust as well
  PETSTORE_API_KEY              the API key
  PETSTORE_API_KEY_FILE         a file with the API key, open to nobody else
  PETSTORE_PROFILE              the profile of the configuration to use
  PETSTORE_MAX_WAIT             seconds that rate limits may hold a call back
  PETSTORE_LIMITS_STORE         file, redis://HOST or off, as --limits-store
  HTTPS_PROXY, NO_PROXY, …      the proxy, as everywhere

What results look like:
  PETSTORE_OUTPUT               the format, as with --output
  PETSTORE_COLOR                auto, always or never, as with --color
  NO_COLOR                      set to anything: no colour
  CLICOLOR_FORCE                set to anything but 0: colour in a pipe too
  CLICOLOR=0, TERM=dumb         no colour

Where files are kept:
  XDG_CONFIG_HOME               config.toml and keys, in petstore/ below it;
                                .config in HOME without it
  XDG_STATE_HOME                what is remembered, in petstore/ below it;
                                .local/state in HOME without it
  APPDATA, LOCALAPPDATA         the same on Windows
";

const OUTPUT: &str = "\
Results go to standard output, all else to standard error. Without --output a
terminal gets a table that fits it, and a pipe gets tab-separated values without
a header.

  table   aligned columns; what is too wide is cut, identifiers never
  json    one document
  ndjson  a document on each line
  yaml    one document
  csv     comma-separated values with a header (RFC 4180)
  tsv     tab-separated values; a tab, a line break or a backslash in a value
          is written \\t, \\n, \\\\
  id      the identifiers alone

json, yaml and table are written when all of a result is there, or not at all.
The others are written as it comes.

--fields chooses fields and their order, and --jq runs an expression over the
whole result; what that returns is written as JSON, one document for each value,
or in the format that --output names.

Control characters, and what could reorder or hide text, are escaped: in JSON,
YAML and tab-separated values in a way that reads back as what was there. In CSV
they are escaped on a terminal only; in a pipe a value is just what it was.

Examples:
  petstore --mock pets list --fields id,name -o csv
  petstore --mock pets list --all --jq 'map(.name) | sort'
  petstore --mock pets list -o id | head -n 3
";

const RATE_LIMITS: &str = "\
The service allows so many requests a minute and a day, and answers 429 beyond.
Asking on while it says to wait may get the key banned.

petstore holds requests back before they are refused, and sends none while it is
told to wait, but for `petstore limits --refresh`. --max-wait says how many
seconds a command may be held back in all (120 unless set): a terminal sees them
counted down, a script gets one line. Where it would take longer, the command
ends at once with exit code 7 and says from when on requests are taken again.
--max-wait 0 never waits.

All processes that use a key on this machine share its quotas fairly through a
file. With --limits-store redis://HOST those of several machines do. If that
fails, a warning says so, and the process goes on alone, more carefully.
`petstore limits --forget` removes what is known.

Examples:
  petstore --mock limits
  petstore --mock pets list --max-wait 0
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting;

    #[test]
    fn every_variable_of_a_setting_is_named() {
        for setting in Setting::ALL {
            assert!(ENVIRONMENT.contains(&format!("\n  {} ", setting.variable())), "{setting:?}");
        }
    }

    #[test]
    fn every_topic_fits_a_narrow_terminal_and_ends_with_a_line_break() {
        for (topic, text) in TOPICS {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{topic}");
            assert!(text.ends_with('\n'), "{topic}");
        }
    }
}
