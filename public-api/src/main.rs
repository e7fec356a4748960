//! Prints what a library offers, from rustdoc's JSON of it: `public-api-listing JSON`. Used by `.ci/public-api`.
#![forbid(unsafe_code)]

use public_api::Builder;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args_os().nth(1).ok_or("usage: public-api-listing JSON")?;
    // Without what follows from the rest: `Send` and the like, `impl<T> From<T>`; and what `derive` writes is named by
    // its trait alone.
    let listing = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    print!("{listing}");
    Ok(())
}
