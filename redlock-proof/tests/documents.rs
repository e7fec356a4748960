//! What the documents name is there: the files and headings that they link, the tests that a claim stands on, the packages and
//! examples of their commands, and the errors that they quote.

extern crate alloc;

use alloc::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files below the root, with their paths from there; without what is built or hidden, but with `.ci`.
fn files() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "target" || name == "artifacts" || (name.starts_with('.') && name != ".ci") {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if let Ok(path) = entry.path().strip_prefix(root()) {
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// All of `files` with this ending, with their texts.
fn texts<'a>(files: &'a [String], ending: &str) -> Vec<(&'a str, String)> {
    files.iter().filter(|path| path.ends_with(ending)).map(|path| (path.as_str(), read(path))).collect()
}

/// A document, parted.
struct Document<'a> {
    path: &'a str,
    prose: String,
    commands: Vec<String>,
}

fn documents(files: &[String]) -> Vec<Document<'_>> {
    let parted = |(path, text): (_, String)| {
        let (prose, commands) = parted(&text);
        Document { path, prose, commands }
    };
    texts(files, ".md").into_iter().map(parted).collect()
}

/// The text without its blocks of code, and the lines of those that are for a shell.
fn parted(text: &str) -> (String, Vec<String>) {
    let (mut prose, mut commands, mut fence) = (String::new(), Vec::new(), None);
    for line in text.lines() {
        match (fence, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => fence = Some(language == "sh"),
            (Some(_), Some(_)) => fence = None,
            (Some(true), None) => commands.push(line.to_owned()),
            (Some(false), None) => {}
            (None, None) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    (prose, commands)
}

/// What stands between `open` and `close`, wherever.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(inner, _)| inner).collect()
}

/// What stands in backticks.
fn spans(prose: &str) -> Vec<&str> {
    prose.split('`').skip(1).step_by(2).filter(|span| !span.contains('\n')).collect()
}

/// As GitHub makes the anchor of a heading.
fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = parted(text);
    let heading = |line: &str| {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect::<String>()
    };
    prose.lines().filter(|line| line.starts_with('#')).map(heading).collect()
}

/// `folder/../file` as `file`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_lead_somewhere() -> io::Result<()> {
    let files = files()?;
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for Document { path: document, prose, .. } in documents(&files) {
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in between(&prose, "](", ")") {
            // Paths of Rust are rustdoc's to check.
            if target.contains("://") || target.contains("::") {
                continue;
            }
            checked += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path =
                if path.is_empty() { document.to_owned() } else { normal(&format!("{folder}/{path}")) };
            if !root().join(&path).exists() {
                wrong.push(format!("{document}: {target}"));
            } else if !anchor.is_empty() && !anchors(&read(&path)).contains(anchor) {
                wrong.push(format!("{document}: {target} has no such heading"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 20, "{checked} links are not all of them");
    Ok(())
}

/// A path in backticks, from the root, from the document, or from a crate.
#[test]
fn files_that_are_named_exist() -> io::Result<()> {
    let files = files()?;
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for Document { path: document, prose, .. } in documents(&files) {
        for span in spans(&prose) {
            let is_path = span.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
            let is_file = [".rs", ".md", ".toml", ".txt", ".json", ".yml", ".svg"]
                .iter()
                .any(|ending| span.strip_suffix(ending).is_some_and(|stem| !stem.is_empty()));
            if !is_path || !(is_file || span.ends_with('/')) {
                continue;
            }
            checked += 1;
            let whole = |path: &&String| format!("/{path}").ends_with(&format!("/{span}"));
            let below =
                |path: &&String| span.ends_with('/') && format!("/{path}").contains(&format!("/{span}"));
            if !files.iter().any(|path| whole(&path) || below(&path)) {
                wrong.push(format!("{document}: {span}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 40, "{checked} paths are not all of them");
    Ok(())
}

/// `r6…` stands for the tests whose names begin so; "`r6…` in `PATH`" for those there.
#[test]
fn tests_that_are_named_exist() -> io::Result<()> {
    let files = files()?;
    let sources = texts(&files, ".rs");
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for Document { path: document, prose, .. } in documents(&files) {
        let pieces: Vec<&str> = prose.split('`').collect();
        for (index, piece) in pieces.iter().enumerate().skip(1).step_by(2) {
            let Some(prefix) = piece.strip_suffix('…') else { continue };
            let mut letters = prefix.chars();
            let is_test = letters.next().is_some_and(|c| c == 'r' || c == 'b')
                && letters.next().is_some_and(|c| c.is_ascii_digit());
            // Of the template of names, not of a test.
            if !is_test || document.ends_with("TESTING.md") {
                continue;
            }
            checked += 1;
            let path = match (pieces.get(index + 1), pieces.get(index + 2)) {
                (Some(&" in "), Some(path)) => path,
                _ => "",
            };
            let wanted = format!("fn {}", prefix.trim_end_matches('_'));
            let mut there = sources.iter().filter(|(source, _)| source.ends_with(path));
            if !there.any(|(_, code)| code.contains(&wanted)) {
                wrong.push(format!("{document}: {piece} {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked >= 2, "{checked} tests are not all of them");
    Ok(())
}

/// What a command of the documents names: an alias, a package, an example, a test, a manifest.
#[test]
fn commands_name_what_is_there() -> io::Result<()> {
    let files = files()?;
    let manifests: String = texts(&files, "Cargo.toml").into_iter().map(|(_, text)| text).collect();
    let named = |name: &str| manifests.contains(&format!("name = \"{name}\"\n"));
    let aliases = read(".cargo/config.toml");
    let known = [
        "add",
        "bench",
        "build",
        "clippy",
        "deny",
        "doc",
        "fmt",
        "fuzz",
        "install",
        "mutants",
        "publish",
        "run",
        "semver-checks",
        "test",
    ];
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for Document { path: document, prose, mut commands } in documents(&files) {
        commands.extend(spans(&prose).into_iter().map(str::to_owned));
        for command in commands {
            let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != "#").collect();
            let Some(cargo) = words.iter().position(|word| *word == "cargo") else { continue };
            let words = words.get(cargo + 1..).unwrap_or_default();
            let Some(verb) = words.first() else { continue };
            checked += 1;
            if !known.contains(verb) && !aliases.contains(&format!("\n{verb} = ")) {
                wrong.push(format!("{document}: cargo {verb}"));
            }
            for (flag, name) in words.iter().zip(words.iter().skip(1)).take_while(|(flag, _)| **flag != "--")
            {
                let has = |path: String| files.contains(&path);
                let anywhere = |path: String| files.iter().any(|file| file.ends_with(&path));
                let is_there = match *flag {
                    // To be filled in.
                    _ if name.starts_with(|c: char| c.is_ascii_uppercase()) => true,
                    "-p" => named(name),
                    "--example" => named(name) || anywhere(format!("/examples/{name}.rs")),
                    "--test" => {
                        anywhere(format!("/tests/{name}.rs")) || anywhere(format!("/tests/{name}/main.rs"))
                    }
                    "--manifest-path" => has((*name).to_owned()),
                    "--path" => has(format!("{name}/Cargo.toml")),
                    _ => true,
                };
                if !is_there {
                    wrong.push(format!("{document}: {flag} {name}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 30, "{checked} commands are not all of them");
    Ok(())
}

#[test]
fn errors_that_the_guide_quotes_are_said() -> io::Result<()> {
    let files = files()?;
    let sources: String = texts(&files, ".rs")
        .into_iter()
        .filter(|(path, _)| path.starts_with("redlock-core/src/") && !path.contains("/sim/"))
        .map(|(_, text)| text)
        .collect();
    let guide = read("redlock-core/GUIDE.md");
    let table = guide.split_once("# Errors, and what to do").map_or("", |(_, table)| table);
    let quoted: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| *")?.split_once("* |"))
        .map(|(it, _)| it)
        .collect();
    assert!(quoted.len() >= 7, "{quoted:?}");
    for quote in quoted {
        for piece in quote.split('…').map(str::trim).filter(|piece| !piece.is_empty()) {
            assert!(sources.contains(piece), "{piece:?} is said nowhere");
        }
    }
    Ok(())
}
