//! The programs that tests use and that are written in Go.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// Builds the program in `tests/<module>`, beside the tests. `None` where Go is not installed, which is said once; where `CI`
/// is `true` that is a failure.
pub fn build(module: &str) -> Option<PathBuf> {
    if !has_go() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(module);
    // target/<profile>/deps.
    let program = env::current_exe().unwrap().with_file_name(module);
    let built = Command::new("go").current_dir(source).args(["build", "-o"]).arg(&program).status().unwrap();
    assert!(built.success(), "tests/{module} does not build");
    Some(program)
}

fn has_go() -> bool {
    static HAS_GO: OnceLock<bool> = OnceLock::new();
    *HAS_GO.get_or_init(|| {
        let has_go = Command::new("go").arg("version").stdout(Stdio::null()).status().is_ok();
        if !has_go {
            assert!(env::var("CI").as_deref() != Ok("true"), "Go is not installed");
            // Not by a macro: what those print is shown of tests that fail only.
            let _ = writeln!(io::stderr(), "skipped: tests that need Go, because it is not installed");
        }
        has_go
    })
}
