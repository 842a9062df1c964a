//! Two reports for the tests of the forms.

use crate::report::{Report, audit::Audit, rules::Client};

/// Of one request with nothing to find.
pub(super) fn clean() -> Report {
    let mut client = Client::of("told-to-wait");
    let mut audit = Audit::default();
    audit.ended(&client.sends_ok());
    audit.report()
}

/// Of 23 requests: 21 sent while told to wait, and one without a User-Agent.
pub(super) fn dirty() -> Report {
    let mut client = Client::of("told-to-wait");
    let mut audit = Audit::default();
    audit.ended(&client.sends_ok());
    for _ in 0..21 {
        audit.ended(&client.is_refused(50));
    }
    audit.ended(&client.without("user-agent").is_refused(50));
    audit.report()
}
