//! Where the next page is, for `--paginate` (RFC 8288, `rel="next"`).

use http::HeaderMap;
use petstore_client::Url;

use crate::error::CliError;
use crate::exit::Exit;

/// Returns the path of the next page, relative to the base URL; `None` after the last.
///
/// # Errors
///
/// Where the link leads elsewhere: the key must not go there.
pub(super) fn next(
    headers: &HeaderMap,
    base: &Url,
    asked: &str,
) -> Result<Option<String>, CliError> {
    let Some(target) = target(headers) else { return Ok(None) };
    let refused = || {
        let problem = "the link to the next page leads elsewhere than below the base URL";
        CliError::new(Exit::Service, format!("{problem}: {target}"))
    };
    let base_path = base.path().trim_end_matches('/');
    // A link may be relative to what was asked for.
    let asked = format!("{base_path}/{}", asked.trim_start_matches('/'));
    let url = base.join(&asked).and_then(|asked| asked.join(&target)).map_err(|_| refused())?;
    let below = url.path().strip_prefix(base_path).filter(|rest| rest.starts_with('/'));
    match below {
        Some(path) if url.origin() == base.origin() && url.username().is_empty() => {
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            Ok(Some(format!("{path}{query}")))
        }
        _ => Err(refused()),
    }
}

/// Returns the target of the first link whose relations include `next`.
fn target(headers: &HeaderMap) -> Option<String> {
    for value in headers.get_all(http::header::LINK) {
        let mut rest = value.to_str().unwrap_or_default();
        while let Some((target, after)) = rest.split_once('<').and_then(|(_, r)| r.split_once('>'))
        {
            let parameters = after.split('<').next().unwrap_or_default();
            if parameters.split([';', ',']).any(is_next) {
                return Some(target.to_owned());
            }
            rest = after;
        }
    }
    None
}

fn is_next(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
    name.trim().eq_ignore_ascii_case("rel") && relations.any(|r| r.eq_ignore_ascii_case("next"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(link: &str) -> Result<Option<String>, CliError> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::LINK, link.parse().unwrap());
        next(&headers, &Url::parse("https://petstore.example/v1").unwrap(), "/pets?limit=2")
    }

    #[test]
    fn follows_next_below_the_base_url() {
        for link in [
            "</v1/pets?cursor=x>; rel=\"next\"",
            "<?cursor=x>; rel=next",
            "<https://petstore.example/v1/pets>; rel=\"prev\", <?cursor=x>; title=\"a\"; rel=\"last next\"",
        ] {
            assert_eq!(after(link).unwrap().as_deref(), Some("/pets?cursor=x"), "{link}");
        }
        assert_eq!(after("</v1/pets>; rel=\"prev\"").unwrap(), None);
    }

    #[test]
    fn follows_to_nowhere_else() {
        for target in
            ["https://evil.example/v1/pets", "/v2/pets", "/v10", "http://petstore.example/v1/pets"]
        {
            assert!(after(&format!("<{target}>; rel=next")).is_err(), "{target}");
        }
    }
}
