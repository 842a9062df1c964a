//! The exit codes, each with its meaning.

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// Done.
    Done,
    /// A fault of the program's own, or of the machine it runs on.
    Internal,
    /// The command or its input is not right.
    Usage,
    /// No key, a bad key, or a bad configuration.
    Config,
    /// The service refused the request (a 4xx that has no code of its own).
    Refused,
    /// The service failed (5xx), or answered what makes no sense.
    Service,
    /// Network, TLS, or a time limit.
    Network,
    /// Rate limited or banned, and not waited out.
    RateLimited,
    /// Partly done, or less than was asked for: `--fail-if-truncated`, `--deny-deprecated`.
    Partial,
    /// Not found, or gone.
    NotFound,
    /// Stopped by Ctrl-C.
    Interrupted,
    /// What a command that was run, or the mock server, ended with.
    Other(u8),
}

impl Exit {
    /// Returns the number that the process ends with.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Refused => 4,
            Self::Service => 5,
            Self::Network => 6,
            Self::RateLimited => 7,
            Self::Partial => 8,
            Self::NotFound => 9,
            Self::Interrupted => 130,
            Self::Other(code) => code,
        }
    }

    /// Returns the name that programs read (`--error-format json`).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Config => "config",
            Self::Refused => "refused",
            Self::Service => "service",
            Self::Network => "network",
            Self::RateLimited => "rate_limited",
            Self::Partial => "partial",
            Self::NotFound => "not_found",
            Self::Interrupted => "interrupted",
            Self::Other(_) => "other",
        }
    }
}

/// The table of exit codes, for the help.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done
  1    a fault of the program or the machine
  2    usage: the command or its input is not right
  3    no key, a bad key, or a bad configuration
  4    the service refused the request (other 4xx)
  5    the service failed (5xx), or its answer makes no sense
  6    network, TLS, or a time limit
  7    rate limited or banned, and not waited out
  8    partly done, or cut short or deprecated where asked to fail on it
  9    not found, or gone
  130  stopped by Ctrl-C
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_code() {
        for exit in [
            Exit::Done,
            Exit::Internal,
            Exit::Usage,
            Exit::Config,
            Exit::Refused,
            Exit::Service,
            Exit::Network,
            Exit::RateLimited,
            Exit::Partial,
            Exit::NotFound,
            Exit::Interrupted,
        ] {
            let line = format!("\n  {:<5}", exit.code());
            assert!(HELP.contains(&line), "{exit:?}");
        }
    }
}
