//! What a person at a terminal sees: progress that fits, and words that the
//! shell completes.

mod bed;

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use bed::{Bed, noise};

/// A terminal of so many columns: the end that a program writes to, and the
/// end that shows it.
fn terminal(n_columns: u16) -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&screen).expect("it is ours");
    unlockpt(&screen).expect("it is ours");
    let name = ptsname(&screen, Vec::new()).expect("it has a name");
    let path = PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes()));
    // Not with `File::options`: it must not become this test's own terminal.
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let program = rustix::fs::open(path, flags, Mode::empty());
    let program = File::from(program.expect("it is unlocked"));
    let size = Winsize {
        ws_row: 24,
        ws_col: n_columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&program, size).expect("it is a terminal");
    assert_eq!(tcgetwinsize(&program).expect("a size").ws_col, n_columns);
    (program, File::from(screen))
}

/// All that is shown until the last program has closed the terminal.
fn shown(mut screen: File) -> String {
    let mut bytes = Vec::new();
    // Linux reports the end as an input/output error.
    let _ = screen.read_to_end(&mut bytes);
    String::from_utf8(bytes).expect("text")
}

/// Lines as they stand on the screen: without escape sequences, and what is
/// written over a line counts as a line of its own.
fn lines(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let end = after.find(|c: char| ('@'..='~').contains(&c));
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain.push_str(rest);
    let lines = plain.split(['\r', '\n']).map(str::trim_end);
    lines
        .filter(|l| !l.is_empty())
        .map(str::to_string)
        .collect()
}

#[test]
fn progress_fits_a_terminal_of_sixty_columns() {
    let bed = Bed::new();
    let content = noise(30_000_000);
    let put = bed.serve(&["put", "/an/object", "-", "--json"], &content);
    let copy = bed.path("copy");
    let (program, screen) = terminal(60);
    let path = copy.to_str().expect("text");
    let mut get = bed
        .command(&["get", "/an/object", "-o", path])
        .env("TERM", "xterm")
        .stderr(program)
        .spawn()
        .expect("it runs");
    let text = shown(screen);
    assert!(get.wait().expect("it ends").success(), "{text}");
    let lines = lines(&text);
    let bars: Vec<_> = lines.iter().filter(|l| l.contains(" %  ")).collect();
    assert!(!bars.is_empty(), "no progress: {text:?}");
    for line in &lines {
        assert!(line.chars().count() <= 60, "{line:?}");
    }
    for bar in bars {
        assert!(bar.contains("B/s"), "the rate is cut off: {bar:?}");
    }
    assert_eq!(fs::read(&copy).expect("fetched"), content);
    put.stop();
}

#[test]
fn quiet_shows_nothing_even_on_a_terminal() {
    let bed = Bed::new();
    let put = bed.serve(&["put", "/an/object", "-", "--json"], &noise(1_000_000));
    let copy = bed.path("copy");
    let (program, screen) = terminal(80);
    let path = copy.to_str().expect("text");
    let mut get = bed
        .command(&["get", "/an/object", "--quiet", "-o", path])
        .env("TERM", "xterm")
        .stderr(program)
        .spawn()
        .expect("it runs");
    assert_eq!(shown(screen), "");
    assert!(get.wait().expect("it ends").success());
    put.stop();
}

/// What bash offers when a tab follows these words, and whether it completes
/// file names where the script offers nothing.
fn offered(bed: &Bed, words: &[&str]) -> (Vec<String>, bool) {
    let script = bed.path("completions.bash");
    fs::write(&script, bed.text(&["completions", "bash"])).expect("the folder is ours");
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-c"])
        .arg(
            "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))\n\
             complete -p \"$1\"\n\
             _tachonym \"$1\" \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"\n\
             printf '%s\\n' \"${COMPREPLY[@]}\"",
        )
        .arg("bash")
        .arg(&script)
        .args(words)
        .output()
        .expect("bash is there");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.is_empty(), "{message}");
    let text = String::from_utf8(output.stdout).expect("text");
    let (how, offers) = text.split_once('\n').expect("how it completes");
    let offers = offers.lines().filter(|l| !l.is_empty());
    (
        offers.map(str::to_string).collect(),
        how.contains("-o default"),
    )
}

#[test]
fn bash_completes_subcommands_options_strategies_and_files() {
    let bed = Bed::new();
    let offers = |words: &[&str]| offered(&bed, words).0;
    assert_eq!(offers(&["tachonym", "pings"]), ["pingserver"]);
    assert_eq!(offers(&["tachonym", "get", "--disc"]), ["--discover"]);
    assert_eq!(
        offers(&["tachonym", "get", "--discover", "meta"]),
        ["metadata"]
    );
    assert_eq!(offers(&["tachonym", "worke"]), ["workers"]);
    assert_eq!(offers(&["tachonym", "workers", "unp"]), ["unpin"]);
    assert_eq!(
        offers(&["tachonym", "strategy", "set", "/x", "self"]),
        ["self-learning"]
    );
    let file = bed.path("a-file.toml");
    fs::write(&file, "").expect("the folder is ours");
    let begun = bed.path("a-fi");
    let begun = begun.to_str().expect("text");
    let whole = file.to_str().expect("text");
    assert_eq!(offers(&["tachonym", "run", "--config", begun]), [whole]);
    // An argument in its place is left to bash, which completes files.
    let (offers, completes_files) = offered(&bed, &["tachonym", "put", "/x", begun]);
    assert!(offers.is_empty() && completes_files, "{offers:?}");
}

#[test]
fn other_shells_complete_every_subcommand() {
    let bed = Bed::new();
    for shell in ["zsh", "fish"] {
        let script = bed.text(&["completions", shell]);
        for word in ["pingserver", "self-learning"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}
