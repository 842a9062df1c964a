//! Writes the report as JUnit XML.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::{
    finding::Finding,
    rule::{Rule, Severity},
    verdict::{Report, UNREACHED},
};

impl Report {
    /// Returns the report as JUnit XML, with a test case for each key and rule. Violations and warnings
    /// are failures, and so is a report without a request that reached the service with a valid key.
    #[must_use]
    pub fn to_junit(&self) -> String {
        let mut suite = TestSuite::new("petstore-mock compliance");
        for key in self.keys() {
            suite.add_test_cases(self.rules().map(|rule| self.test_case(rule, key)));
        }
        if !self.has_reached_the_service() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(UNREACHED);
            suite.add_test_case(case("reach the service", status));
        }
        suite.set_system_out(self.summary_line());
        let mut document = Document::new("petstore-mock compliance");
        document.add_test_suite(suite);
        // This cannot fail, because all names are valid text.
        document.to_string().unwrap_or_default()
    }

    fn test_case(&self, rule: Rule, key: &str) -> TestCase {
        let found: Vec<_> = self
            .findings()
            .filter(|finding| finding.rule == rule && finding.key == key)
            .collect();
        let text: String = found.iter().map(ToString::to_string).collect();
        let failed: Option<&&Finding> = found.iter().find(|it| it.severity > Severity::Notice);
        let mut status = TestCaseStatus::success();
        if let Some(finding) = failed {
            status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status
                .set_type(finding.severity.to_string())
                .set_message(finding.text.clone())
                .set_description(text.clone());
        }
        let mut case = case(&format!("{rule}, {key}"), status);
        if failed.is_none() && !text.is_empty() {
            case.set_system_out(text);
        }
        case
    }
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname("compliance");
    case
}
