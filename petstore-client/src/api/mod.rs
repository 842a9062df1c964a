//! The operations, as methods: what a caller writes becomes a request for the pipeline.

mod call;
mod list;
mod pets;
mod raw;
mod store;

pub use call::Call;
pub use list::ListPets;
pub use pets::Pets;
pub use raw::RawRequest;
pub use store::Store;
