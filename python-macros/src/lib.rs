//! The attribute `guarded`: a panic of a native function becomes a Python exception.
//!
//! It stands before `#[pyfunction]` or `#[pymethods]` and wraps the body of every function in
//! `crate::panics::guard`, which returns a `PyResult`. A function that returns something else
//! returns a `PyResult` of it afterwards.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Block, ImplItem, Item, ReturnType, Signature, Type, parse_macro_input, parse_quote};

/// Guards a function, or every function of an `impl` block.
#[proc_macro_attribute]
pub fn guarded(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as Item);
    match &mut item {
        Item::Fn(function) => guard(&mut function.sig, &mut function.block),
        Item::Impl(methods) => {
            for item in &mut methods.items {
                if let ImplItem::Fn(method) = item {
                    guard(&mut method.sig, &mut method.block);
                }
            }
        }
        other => {
            let wrong = syn::Error::new_spanned(other, "a function or an impl block is guarded");
            return wrong.to_compile_error().into();
        }
    }
    quote!(#item).into()
}

fn guard(signature: &mut Signature, block: &mut Block) {
    let guarded: Block = match &signature.output {
        ReturnType::Type(_, returned) if is_result(returned) => {
            parse_quote!({ crate::panics::guard(move || #block) })
        }
        output => {
            let returned: Type = match output {
                ReturnType::Default => parse_quote!(()),
                ReturnType::Type(_, returned) => (**returned).clone(),
            };
            let guarded = parse_quote!({
                crate::panics::guard(move || {
                    let body = move || -> #returned { #block };
                    Ok(body())
                })
            });
            signature.output = parse_quote!(-> ::pyo3::PyResult<#returned>);
            guarded
        }
    };
    *block = guarded;
}

fn is_result(returned: &Type) -> bool {
    let Type::Path(path) = returned else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "PyResult")
}
