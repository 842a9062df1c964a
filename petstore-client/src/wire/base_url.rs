//! The base URL, checked once.

use url::{Host, Url};

/// A base URL such as `https://petstore.example/v1` (specification, section 1), and the URLs of most calls.
#[derive(Debug, Clone)]
pub(crate) struct BaseUrl {
    base: Url,
    pets: Url,
    orders: Url,
}

impl BaseUrl {
    /// Checks a base URL. Plain http is limited to this machine unless `insecure` is set, because
    /// each request carries the key.
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
            "it has a user name or a password; remove it, and pass the API key with `api_key`"
        } else if url.query().is_some() || url.fragment().is_some() {
            "it has a query (`?`) or a fragment (`#`); leave them out"
        } else if url.scheme() == "http" && !insecure && !is_loopback(&url) {
            "it is plain http to another machine, which would expose the API key to anyone on the \
             network; use https, or allow it with `allow_insecure_http`"
        } else {
            let path = url.path().trim_end_matches('/').to_owned();
            url.set_path(&path);
            return Ok(Self {
                pets: below(&url, "/pets"),
                orders: below(&url, "/store/orders"),
                base: url,
            });
        };
        Err(problem.to_owned())
    }

    pub(crate) fn as_url(&self) -> &Url {
        &self.base
    }

    pub(crate) fn pets(&self) -> Url {
        self.pets.clone()
    }

    pub(crate) fn orders(&self) -> Url {
        self.orders.clone()
    }

    /// Returns whether requests need neither TLS nor a proxy.
    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Returns the URL of a path below the base. The path must need no encoding.
    pub(crate) fn at(&self, path: &str) -> Url {
        below(&self.base, path)
    }

    /// Returns the URL of a path from user input: relative to the base, with or without a leading
    /// slash, optionally with a query.
    pub(crate) fn relative(&self, path: &str) -> Result<Url, String> {
        let wrong = |problem: &str| Err(format!("the path {problem}"));
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
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
            return wrong("has `.` or `..`; give a path relative to the base URL, such as `/pets`");
        }
        let mut url = self.at(&["/", path.trim_start_matches('/')].concat());
        url.set_query(query);
        Ok(url)
    }
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&[base.path().trim_end_matches('/'), path].concat());
    url
}

/// Returns whether two URLs have the same scheme, host and port, and the first has no credentials.
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
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::cases::cases;

    /// Generates text that is sometimes a URL.
    fn address() -> impl Strategy<Value = String> {
        let part = select(vec![
            "http",
            "https",
            "://",
            ":",
            "/",
            "//",
            "127.0.0.1",
            "[::1]",
            "localhost",
            "a.example",
            ":80",
            "/v1",
            "..",
            ".",
            "%2e",
            "%2F",
            "?a=b",
            "#",
            "@",
            "\\",
            " ",
            "é",
            "\n",
            "pets",
            "foo.localhost",
        ]);
        prop_oneof![
            vec(part, 0..9).prop_map(|parts| parts.concat()),
            any::<String>()
        ]
    }

    proptest! {
        #![proptest_config(cases(4_000))]

        #[test]
        fn an_accepted_base_url_keeps_paths_and_protects_the_key(
            text in address(),
            path in address(),
        ) {
            let Ok(base) = BaseUrl::parse(&text, false) else {
                return Ok(());
            };
            let url = base.as_url();
            let again = BaseUrl::parse(url.as_str(), false);
            prop_assert_eq!(again.as_ref().map(BaseUrl::as_url).ok(), Some(url));
            prop_assert!(url.scheme() == "https" || base.is_loopback(), "{}", url);
            prop_assert!(url.query().is_none() && url.fragment().is_none(), "{}", url);
            if let Ok(below) = base.relative(&path) {
                let root = format!("{}/", url.path().trim_end_matches('/'));
                let is_below = same_origin(&below, url) && below.path().starts_with(&root);
                prop_assert!(is_below, "{}", below);
                prop_assert_eq!(below.fragment(), None);
                let mut parts = below.path()[root.len()..].split('/');
                prop_assert!(parts.all(|part| part != "." && part != ".."), "{}", below);
            }
        }
    }
}
