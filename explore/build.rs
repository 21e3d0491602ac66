//! Chooses the primitives of `sync.rs` that can be explored.

fn main() {
    println!("cargo:rustc-cfg=tenure_explore");
}
