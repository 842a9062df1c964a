//! The embedded OpenAPI documents of the service and of the administration. They are written in
//! YAML. Tests check that their JSON forms say the same, and that they match the routes and responses.

/// An embedded OpenAPI 3.1 document.
///
/// ```
/// use petstore_mock::OpenApi;
///
/// assert!(OpenApi::Service.yaml().starts_with("openapi: 3.1"));
/// assert!(OpenApi::Service.json().contains("\"operationId\":\"listPets\""));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenApi {
    /// The Pet Store service, from its specification. Marks assumptions. Served as
    /// `/_mock/openapi.yaml` and `.json`.
    Service,
    /// The administration of the mock. Served as `/_mock/admin.yaml` and `.json`.
    Administration,
}

impl OpenApi {
    /// Returns the document as YAML.
    #[must_use]
    pub const fn yaml(self) -> &'static str {
        match self {
            Self::Service => include_str!("../openapi.yaml"),
            Self::Administration => include_str!("../admin.yaml"),
        }
    }

    /// Returns the document as JSON on one line.
    #[must_use]
    pub const fn json(self) -> &'static str {
        match self {
            Self::Service => include_str!("../openapi.json"),
            Self::Administration => include_str!("../admin.json"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde::{Serialize, Serializer};
    use yaml_rust2::{Yaml, YamlLoader};

    use super::*;

    /// A value of a YAML document, as JSON.
    struct Json<'y>(&'y Yaml);

    impl Serialize for Json<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                Yaml::Null => to.serialize_unit(),
                Yaml::Boolean(truth) => to.serialize_bool(*truth),
                Yaml::Integer(number) => to.serialize_i64(*number),
                Yaml::Real(number) => to.serialize_f64(number.parse().unwrap()),
                Yaml::String(text) => to.serialize_str(text),
                Yaml::Array(items) => to.collect_seq(items.iter().map(Json)),
                Yaml::Hash(fields) => {
                    to.collect_map(fields.iter().map(|(name, field)| (Json(name), Json(field))))
                }
                Yaml::Alias(_) | Yaml::BadValue => panic!("a value is no YAML"),
            }
        }
    }

    /// Writes a JSON document anew if its YAML has changed.
    #[test]
    fn the_json_documents_say_what_the_yaml_documents_say() {
        for (name, document) in [
            ("openapi", OpenApi::Service),
            ("admin", OpenApi::Administration),
        ] {
            let yaml = YamlLoader::load_from_str(document.yaml()).unwrap();
            let json = serde_json::to_string(&Json(&yaml[0])).unwrap() + "\n";
            if document.json() != json {
                let path = format!("{}/{name}.json", env!("CARGO_MANIFEST_DIR"));
                fs::write(path, json).unwrap();
                panic!("{name}.json differed from {name}.yaml, and was written anew: commit it");
            }
        }
    }
}
