//! Converts the OpenAPI documents from YAML to JSON, so that the two cannot differ.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

use yaml_rust2::{Yaml, YamlLoader};

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes the output folder in a variable"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let out = Path::new(&out);
    for name in ["openapi", "admin"] {
        let source = format!("{name}.yaml");
        println!("cargo::rerun-if-changed={source}");
        let documents = YamlLoader::load_from_str(&fs::read_to_string(&source)?)?;
        let [document] = &documents[..] else {
            return Err(format!("{source} holds {} documents", documents.len()).into());
        };
        let mut json = String::new();
        write_json(document, &mut json)?;
        fs::write(out.join(format!("{name}.json")), json)?;
    }
    // Cargo resets `strip` for a package whose `opt-level` the profile overrides. `-s` would have no
    // effect: the compiler driver moves it before rustc's `--strip-debug`, and the last one counts.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
    Ok(())
}

fn write_json(value: &Yaml, out: &mut String) -> Result<(), Box<dyn Error>> {
    match value {
        Yaml::Null => out.push_str("null"),
        Yaml::Boolean(truth) => write!(out, "{truth}")?,
        Yaml::Integer(number) => write!(out, "{number}")?,
        Yaml::String(text) => write_text(text, out)?,
        Yaml::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_json(item, out)?;
            }
            out.push(']');
        }
        Yaml::Hash(fields) => {
            out.push('{');
            for (place, (name, field)) in fields.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_text(
                    name.as_str().ok_or("a field's name is no text: quote it")?,
                    out,
                )?;
                out.push(':');
                write_json(field, out)?;
            }
            out.push('}');
        }
        Yaml::Real(number) => write!(out, "{}", number.parse::<f64>()?)?,
        Yaml::Alias(_) | Yaml::BadValue => return Err("a value is no YAML".into()),
    }
    Ok(())
}

fn write_text(text: &str, out: &mut String) -> std::fmt::Result {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            other => out.push(other),
        }
    }
    out.push('"');
    Ok(())
}
