//! The address that all paths are relative to, checked once.

use url::{Host, Url};

/// A base address such as `https://petstore.example/v1` (specification, section 1).
#[derive(Debug, Clone)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    /// Checks a base address. Plain http is for this machine only, unless `insecure` allows it
    /// elsewhere: each request carries the key.
    pub(crate) fn parse(text: &str, insecure: bool) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("it is empty; give one such as `https://HOST/v1`".to_owned());
        }
        let mut url = Url::parse(text).map_err(|problem| match problem {
            url::ParseError::RelativeUrlWithoutBase => {
                "it does not begin with `https://`".to_owned()
            }
            problem => format!("{problem}; give one such as `https://HOST/v1`"),
        })?;
        let problem = if !matches!(url.scheme(), "http" | "https") {
            "its scheme is neither http nor https; begin it with `https://`"
        } else if !url.username().is_empty() || url.password().is_some() {
            "it holds a user name or a password; the API key is set apart"
        } else if url.query().is_some() || url.fragment().is_some() {
            "it has a query (`?`) or a fragment (`#`); leave them out"
        } else if url.scheme() == "http" && !insecure && !is_loopback(&url) {
            "it is plain http to another machine, which would show the API key to everyone on the \
             way; use https, or allow it with `allow_insecure_http`"
        } else {
            let path = url.path().trim_end_matches('/').to_owned();
            url.set_path(&path);
            return Ok(Self(url));
        };
        Err(problem.to_owned())
    }

    pub(crate) fn as_url(&self) -> &Url {
        &self.0
    }

    /// Returns whether requests can do without TLS, and without a proxy.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Returns the address of a path below the base, whose parts need no encoding.
    pub(crate) fn at(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let base = self.0.path().trim_end_matches('/');
        url.set_path(&[base, path].concat());
        url
    }

    /// Returns the address of a path that a person wrote: relative to the base, with or without a
    /// leading slash, and perhaps with a query.
    pub(crate) fn relative(&self, path: &str) -> Result<Url, String> {
        let wrong = |problem: &str| Err(format!("the path {problem}"));
        let (path, query) =
            path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        if path.contains("://") || path.starts_with("//") {
            return wrong("is a whole URL; give it relative to the base URL, such as `/pets`");
        }
        if path.contains(['#', '\\']) || path.contains(char::is_control) {
            return wrong("holds `#`, `\\` or a control character; write them percent-encoded");
        }
        let is_dots = |part: &str| {
            let part = part.to_ascii_lowercase().replace("%2e", ".");
            part == "." || part == ".."
        };
        if path.split('/').any(is_dots) {
            return wrong("holds `.` or `..`; write it as it is below the base URL, as in `/pets`");
        }
        let mut url = self.at(&["/", path.trim_start_matches('/')].concat());
        url.set_query(query);
        Ok(url)
    }
}

/// Returns whether two URLs have the same scheme, host and port, and the first no credentials.
pub(crate) fn same_origin(url: &Url, base: &Url) -> bool {
    url.scheme() == base.scheme()
        && url.host() == base.host()
        && url.port_or_known_default() == base.port_or_known_default()
        && url.username().is_empty()
        && url.password().is_none()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        BaseUrl::parse(text, false).unwrap_err()
    }

    #[test]
    fn says_what_is_wrong_with_a_base_url() {
        for (text, expected) in [
            ("", "empty"),
            ("petstore", "does not begin with `https://`"),
            ("ftp://a/v1", "neither http nor https"),
            ("https://me:pw@a/v1", "a password"),
            ("https://a/v1?key=1", "a query"),
            ("https://a/v1#x", "a fragment"),
            ("http://a/v1", "plain http to another machine"),
            ("http://localhost.evil.example/v1", "plain http to another machine"),
            ("http://a.localhost/v1", "plain http to another machine"),
            ("https:///", "empty host"),
        ] {
            let problem = problem(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn allows_plain_http_to_this_machine() {
        for text in
            ["http://127.0.0.1:1/v1", "http://[::1]/v1", "http://LOCALHOST", "http://127.8.8.8/"]
        {
            BaseUrl::parse(text, false).unwrap();
        }
        BaseUrl::parse("http://petstore.example/v1", true).unwrap();
    }

    #[test]
    fn joins_paths_whether_or_not_there_are_slashes() {
        for base in ["http://localhost/v1", "http://localhost/v1/"] {
            let base = BaseUrl::parse(base, false).unwrap();
            assert_eq!(base.at("/pets").as_str(), "http://localhost/v1/pets");
            for path in ["pets?a=b&c", "/pets?a=b&c"] {
                let url = base.relative(path).unwrap();
                assert_eq!(url.as_str(), "http://localhost/v1/pets?a=b&c");
            }
        }
        let bare = BaseUrl::parse("http://localhost", false).unwrap();
        assert_eq!(bare.at("/pets").as_str(), "http://localhost/pets");
    }

    #[test]
    fn keeps_a_written_path_below_the_base() {
        let base = BaseUrl::parse("http://localhost/v1", false).unwrap();
        for path in ["../x", "/a/%2E./b", "http://evil.example/", "//evil.example/", "/a#b", "a\\b"]
        {
            assert!(base.relative(path).is_err(), "{path}");
        }
    }
}
