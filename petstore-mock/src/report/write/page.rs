//! The report as a page: one HTML document without scripts and without requests of its own.

use std::fmt::{self, Write as _};

use super::{
    text::summary,
    units::{instant, not_shown, numbers, times},
};
use crate::report::{Finding, Report};

const HEAD: &str = include_str!("page.html");

/// Writes the report as one HTML document.
pub(in crate::report) fn page(report: &Report) -> String {
    let mut out = HEAD.to_owned();
    // Writing to a string does not fail.
    let _ = body(&mut out, report);
    out
}

fn body(out: &mut String, report: &Report) -> fmt::Result {
    let summary = escaped(&summary(report));
    writeln!(out, "<h1>Compliance report</h1>\n<p class=\"soft\">{summary}</p>")?;
    for finding in report.findings() {
        article(out, finding)?;
    }
    let mut kept = report.rules().iter().filter(|rule| rule.count() == 0).peekable();
    if kept.peek().is_some() {
        writeln!(out, "<h2>Kept</h2>\n<ul class=\"kept\">")?;
        for rule in kept {
            writeln!(out, "<li>{}: not found</li>", escaped(rule.title()))?;
        }
        writeln!(out, "</ul>")?;
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

fn article(out: &mut String, finding: &Finding) -> fmt::Result {
    let severity = finding.severity();
    let title = escaped(finding.title());
    writeln!(out, "<article class=\"{severity}\" id=\"{}\">", finding.rule())?;
    writeln!(out, "<h2><b>{severity}</b>: {title}, {}</h2>", times(finding))?;
    writeln!(out, "<p>{}</p>", escaped(finding.paragraph()))?;
    let columns = "<tr><th>when</th><th>requests</th><th>what</th></tr>";
    writeln!(out, "<div class=\"wide\"><table><thead>{columns}</thead><tbody>")?;
    for evidence in finding.evidence() {
        let (when, text) = (instant(evidence), escaped(evidence.text()));
        writeln!(out, "<tr><td>{when}</td><td>{}</td><td>{text}</td></tr>", numbers(evidence))?;
    }
    writeln!(out, "</tbody></table></div>")?;
    if let more @ 1.. = not_shown(finding) {
        writeln!(out, "<p class=\"soft\">and {more} more</p>")?;
    }
    writeln!(out, "</article>")
}

/// Writes a text so that it is nothing else in HTML and XML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{super::sample, *};

    #[test]
    fn each_finding_is_an_article_and_each_other_rule_is_named() {
        let html = page(&sample::dirty());
        assert_eq!(html.matches("<article ").count(), 2);
        assert_eq!(html.matches("<li>").count(), sample::dirty().rules().len() - 2);
        assert!(html.contains("<td>sent 50 s too early</td>"), "{html}");
        assert!(html.contains("and 1 more"), "{html}");
        for forbidden in ["<script", "src=", "href=", "url("] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn a_text_stays_a_text() {
        assert_eq!(escaped("<a b=\"&\">é"), "&lt;a b=&quot;&amp;&quot;&gt;é");
    }
}
