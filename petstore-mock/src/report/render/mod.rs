//! How the report is written.

pub(super) mod junit;
pub(super) mod markdown;
pub(super) mod text;

#[cfg(test)]
mod tests {
    use crate::report::{Report, corpus::judge};

    /// A `POST` repeated after a lost answer, a wait that was ignored, and a scope without a finding.
    const RECORDING: &str = r#"
42.9+0.003 3<0.001 GET /v1/pets?limit=5 200 scope=tests::adds_rex
43.112+0.004 3 POST /v1/pets - scope=tests::adds_rex added=27 body={"name":"Rex","categoryId":7}
43.415+0.004 4<0.001 POST /v1/pets 201 scope=tests::adds_rex added=28 body={"categoryId":7,"name":"Rex"}
43.5+0.004 4 GET /v1/pets 200 scope=tests::adds_rex
44+0.001 5<0.001 GET /v1/pets 429 scope=tests::is_limited wait=16 remaining=0 reset=60
45+0.001 5 GET /v1/pets 429 scope=tests::is_limited wait=15 remaining=0 reset=60
46+0.001 5 GET /v1/pets/1 429 scope=tests::is_limited wait=14 remaining=0 reset=60
50+0.001 6<0.001 GET /v1/pets 200 scope=tests::lists
"#;

    fn report() -> Report {
        judge(RECORDING.lines().filter(|line| !line.is_empty()))
    }

    #[test]
    fn a_finding_stands_alone_as_text() {
        insta::assert_snapshot!(report().to_text());
    }

    #[test]
    fn a_finding_stands_alone_as_json() {
        let mut json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        assert_eq!(json["rules"].as_object_mut().unwrap().len(), 12);
        json["rules"] = serde_json::Value::Null;
        // Another crate of the same build may keep their order.
        json.sort_all_objects();
        insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
    }

    #[test]
    fn a_finding_stands_alone_as_junit() {
        insta::assert_snapshot!(report().to_junit());
    }

    #[test]
    fn a_finding_stands_alone_as_markdown() {
        insta::assert_snapshot!(report().to_markdown());
    }
}
