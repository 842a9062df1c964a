//! The page on which the documents are read: Swagger UI, from a registry package that carries it, so
//! that nothing is loaded from elsewhere. What the page says is left to the documents.

mod serve;

pub(super) use self::serve::{bundle, page, script, style, ui_style};
