//! An error as an object for programs (`--error-format json`).

use petstore_client::Error as ClientError;
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::time;

/// Returns an error's fields; what does not apply to it is left out.
pub(super) fn object(error: &CliError) -> Value {
    let mut object = json!({
        "level": "error",
        "exit": error.exit.code(),
        "kind": error.exit.name(),
        "message": error.cause.to_string(),
    });
    if let Value::Object(fields) = &mut object {
        fields.extend(error.root().map(|root| ("cause".to_owned(), root.into())));
        if let Some(error) = error.cause.downcast_ref::<ClientError>() {
            fields.extend(of_client(error));
        }
        fields.insert("hints".to_owned(), error.hints.clone().into());
    }
    object
}

fn of_client(error: &ClientError) -> Map<String, Value> {
    let fields = [
        ("operation", error.operation().map(Value::from)),
        ("status", error.status().map(|status| status.as_u16().into())),
        ("code", error.code().map(Value::from)),
        ("serviceMessage", error.message().map(Value::from)),
        ("quota", error.blocked().map(|blocked| blocked.reason.to_string().into())),
        ("retryAt", error.retry_at().map(|at| time::instant(at).into())),
        ("retryAfterSeconds", error.retry_after().map(|wait| time::seconds(wait).into())),
        ("path", error.decode_path().map(Value::from)),
        ("attempts", Some(error.attempts().into())),
        ("waitedSeconds", Some(error.waited().as_secs().into())),
        ("mayHaveBeenProcessed", Some(error.may_have_been_processed().into())),
    ];
    let present = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    fields.into_iter().filter_map(present).collect()
}
