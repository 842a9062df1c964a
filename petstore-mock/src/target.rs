//! The target of a request in its plain form. What lies at it is left to `router`.

use std::borrow::Cow;

use http::{Uri, uri::PathAndQuery};

/// Decodes in the path what never needed encoding, so that `/v1/%70ets` is `/v1/pets`, as RFC 3986,
/// section 6.2.2.2, has it. What does need it stays: an encoded slash separates nothing.
pub(crate) fn make_plain(target: &mut Uri) {
    if !target.path().contains('%') {
        return;
    }
    let Cow::Owned(mut plain) = plain(target.path()) else {
        return;
    };
    if let Some(query) = target.query() {
        plain.push('?');
        plain.push_str(query);
    }
    // Decoding makes no target invalid; if it did, the target would stay as it was sent.
    let Ok(plain) = PathAndQuery::try_from(plain) else {
        return;
    };
    let mut parts = target.clone().into_parts();
    parts.path_and_query = Some(plain);
    if let Ok(plain) = Uri::from_parts(parts) {
        *target = plain;
    }
}

fn plain(path: &str) -> Cow<'_, str> {
    let mut pieces = path.split('%');
    let mut out = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        let code = piece.get(..2).and_then(hexadecimal);
        match code.map(char::from).filter(|character| is_unreserved(*character)) {
            Some(character) => {
                out.push(character);
                out.push_str(&piece[2..]);
            }
            None => {
                out.push('%');
                out.push_str(piece);
            }
        }
    }
    if out == path { Cow::Borrowed(path) } else { Cow::Owned(out) }
}

fn hexadecimal(digits: &str) -> Option<u8> {
    // The parser takes a plus sign too.
    let all_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if all_digits { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// RFC 3986, section 2.3.
fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_plain(target: &str) -> String {
        let mut uri = target.parse().unwrap();
        make_plain(&mut uri);
        uri.to_string()
    }

    #[test]
    fn decodes_what_needs_no_encoding_and_nothing_else() {
        for (sent, plain) in [
            ("/v1/%70ets", "/v1/pets"),
            ("/%76%31/p%65t%73/%31?a=%70", "/v1/pets/1?a=%70"),
            ("/%2D%2e%5F%7e", "/-._~"),
            ("/a%2fb%3Fc%25%2570", "/a%2fb%3Fc%25%2570"),
            ("/%ff%c3%a9%00%20", "/%ff%c3%a9%00%20"),
            ("/%", "/%"),
            ("/%7", "/%7"),
            ("/%+1%zz", "/%+1%zz"),
            ("http://x:1/%70?%70", "http://x:1/p?%70"),
            ("*", "*"),
        ] {
            assert_eq!(made_plain(sent), plain);
        }
    }
}
