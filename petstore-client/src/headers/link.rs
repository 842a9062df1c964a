//! `Link` (RFC 8288, section 3): the targets of one relation.
//!
//! Resolving a target and judging where it leads is left to `page` and `deprecation`.

use http::{HeaderMap, header};

use super::fields::lines;

/// Returns the targets that the `Link` headers give for a relation, in their order.
///
/// Of a link, only its first `rel` counts (section 3.3), relations are compared without regard to
/// case, and a link with an `anchor` speaks of another resource (section 3.2) and is passed over.
/// What is malformed ends its own header line, and nothing more.
pub(crate) fn targets<'h>(headers: &'h HeaderMap, relation: &str) -> Vec<&'h str> {
    let mut found = Vec::new();
    for line in lines(headers, &header::LINK) {
        let mut reader = Reader(line);
        while let Some(link) = reader.link() {
            if !link.anchored && has(&link.relations, relation) {
                found.push(link.target);
            }
        }
    }
    found
}

fn has(relations: &str, wanted: &str) -> bool {
    let mut each = relations.split_ascii_whitespace();
    each.any(|one| one.eq_ignore_ascii_case(wanted))
}

struct Link<'h> {
    target: &'h str,
    relations: String,
    anchored: bool,
}

/// What is left of a header line.
struct Reader<'h>(&'h str);

impl<'h> Reader<'h> {
    fn link(&mut self) -> Option<Link<'h>> {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        let (target, rest) = self.0.strip_prefix('<')?.split_once('>')?;
        self.0 = rest;
        let mut relations = None;
        let mut anchored = false;
        while let Some((name, value)) = self.parameter()? {
            if name.eq_ignore_ascii_case("rel") {
                relations.get_or_insert(value);
            } else if name.eq_ignore_ascii_case("anchor") {
                anchored = true;
            }
        }
        Some(Link { target: target.trim(), relations: relations.unwrap_or_default(), anchored })
    }

    /// Reads one `; name=value`. `Some(None)` is the end of the link, `None` a malformed one.
    fn parameter(&mut self) -> Option<Option<(&'h str, String)>> {
        self.skip_space();
        let Some(rest) = self.0.strip_prefix(';') else {
            let ended = self.0.is_empty() || self.0.starts_with(',');
            return ended.then_some(None);
        };
        self.0 = rest;
        self.skip_space();
        let name = self.token();
        self.skip_space();
        let Some(rest) = self.0.strip_prefix('=') else {
            return Some(Some((name, String::new())));
        };
        self.0 = rest;
        self.skip_space();
        let value = match self.0.strip_prefix('"') {
            Some(rest) => {
                self.0 = rest;
                self.quoted()?
            }
            None => self.token().to_owned(),
        };
        Some(Some((name, value)))
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn token(&mut self) -> &'h str {
        let end = self.0.find([' ', '\t', '=', ';', ',', '"']);
        let (token, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        token
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(chars.next()?.1),
                c => value.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(lines: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::LINK, line.parse().unwrap());
        }
        let found = targets(&headers, "next");
        found.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn finds_the_relation_among_several_links_and_lines() {
        let lines = [r#"</a>; rel="prev", </b>; rel="next""#, r#"</c>; rel=last, </d>; rel=next"#];
        assert_eq!(next(&lines), ["/b", "/d"]);
    }

    #[test]
    fn a_quoted_comma_semicolon_or_quote_does_not_end_a_link() {
        assert_eq!(next(&[r#"</a,b;c>; title="x, <y>; rel=\"prev\""; rel="next""#]), ["/a,b;c"]);
    }

    #[test]
    fn reads_a_list_of_relations_in_any_case() {
        assert_eq!(next(&[r#"</a>; REL="start Next	https://example.com/x""#]), ["/a"]);
        assert_eq!(next(&[r#"</a>; rel="nextish""#]), [""; 0]);
    }

    #[test]
    fn only_the_first_rel_counts() {
        assert_eq!(next(&[r#"</a>; rel="prev"; rel="next""#]), [""; 0]);
    }

    #[test]
    fn passes_over_a_link_with_another_context() {
        assert_eq!(next(&[r##"</a>; anchor="#x"; rel="next", </b>; rel="next""##]), ["/b"]);
    }

    #[test]
    fn takes_space_and_parameters_without_value() {
        assert_eq!(next(&[r#", ,<> ; crossorigin ; rel = "next" , "#]), [""]);
    }

    #[test]
    fn what_is_malformed_ends_its_line_only() {
        for odd in ["/a; rel=next", "</a; rel=next", r#"</a>; rel="next"#, "</a> rel=next", "<"] {
            assert_eq!(next(&[odd, "</b>; rel=next"]), ["/b"], "{odd}");
        }
    }
}
