//! Makes what the mock embeds: the OpenAPI documents as JSON, and the files of Swagger UI, which a
//! registry package carries. The documents are written in YAML only, so that the two can't differ.

use std::{borrow::Cow, env, error::Error, fmt::Write as _, fs, io::Cursor, path::Path};

use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use yaml_rust2::{Yaml, YamlLoader};
use zip::{CompressionMethod, ZipArchive};

#[expect(clippy::disallowed_methods, reason = "it is how cargo says where the files go")]
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
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    for name in ["swagger-ui.css", "swagger-ui-bundle.js"] {
        fs::write(out.join(format!("{name}.gz")), gzipped(&mut archive, name)?)?;
    }
    // The profile's `strip` does not reach a package whose `opt-level` it sets.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-s");
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
                write_text(name.as_str().ok_or("a field's name is no text: quote it")?, out)?;
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

/// Returns a file of the archive as a browser takes it: compressed, as it is in there, in the frame of
/// gzip (RFC 1952) instead of that of zip.
fn gzipped(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let end = format!("/dist/{name}");
    let is_it = |path: &Result<Cow<'_, str>, _>| path.as_ref().is_ok_and(|it| it.ends_with(&end));
    let place = archive.file_names().position(|path| is_it(&path));
    let place = place.ok_or_else(|| format!("Swagger UI has no {name}"))?;
    let mut file = archive.by_index_raw(place)?;
    if file.compression() != CompressionMethod::DEFLATE {
        return Err(format!("{name} is not deflated").into());
    }
    let mut gz = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    std::io::copy(&mut file, &mut gz)?;
    gz.extend(file.crc32().to_le_bytes());
    // RFC 1952 wants the length modulo 2^32; no file of a page comes near.
    gz.extend(u32::try_from(file.size())?.to_le_bytes());
    Ok(gz)
}
