//! The catalogue and the commands that show it.

use std::process::{Command, Output, Stdio};

use tachonym_bench::catalogue::State;
use tachonym_lab::experiments;

fn lab(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tachonym-lab");
    let output = Command::new(program).args(args).output();
    output.expect("the program is built")
}

fn stdout(args: &[&str]) -> String {
    let output = lab(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn error(args: &[&str]) -> String {
    let output = lab(args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn every_row_has_an_experiment_or_a_reason() {
    let registry = experiments::registry().expect("experiments are well declared");
    let catalogue = experiments::catalogue().expect("the catalogue can be read");
    let faults = catalogue.faults(&registry);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(catalogue.rows.len() > 300, "all that the documents contain");
}

#[test]
fn the_lists_name_every_row_and_every_experiment() {
    let registry = experiments::registry().expect("experiments are well declared");
    let catalogue = experiments::catalogue().expect("the catalogue can be read");
    let (all, missing) = (stdout(&["list"]), stdout(&["list", "--missing"]));
    for row in &catalogue.rows {
        let line = format!("{}: {}", row.id, row.title);
        let is_missing = matches!(row.state(), Some(State::Missing(_)));
        assert!(all.contains(&row.id), "{}", row.id);
        assert_eq!(missing.contains(&line), is_missing, "{}", row.id);
    }
    let experiments = stdout(&["list", "--experiments"]);
    for it in registry.all() {
        assert!(experiments.contains(it.id), "{}", it.id);
    }
    assert!(!stdout(&["list", "yuan"]).contains("takemasa/"));
}

#[test]
fn wrong_names_and_values_are_refused_with_a_remedy() {
    let unknown = error(&["run", "takemasa/figure-4.55"]);
    assert!(
        unknown.contains("nearest: takemasa/figure-4.5"),
        "{unknown}"
    );
    let later = error(&["run", "takemasa/clock-pro"]);
    assert!(later.contains("yet; to be built first: "), "{later}");
    let parameter = error(&["run", "yuan/table-5.1", "--set", "nothing=1"]);
    assert!(parameter.contains("no parameter `nothing`"), "{parameter}");
}

#[test]
fn a_result_names_machine_commit_date_and_command() {
    let text = stdout(&["run", "yuan/table-5.1", "--scale", "tiny", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&text).expect("a line of JSON");
    assert_eq!(result["id"], "yuan/table-5.1");
    assert!(result["machine"]["n_cpus"].as_u64() >= Some(1));
    assert!(
        result["date"]
            .as_str()
            .is_some_and(|date| date.starts_with("20"))
    );
    let command = result["command"].as_str().expect("a command");
    assert_eq!(command, "tachonym-lab run yuan/table-5.1 --scale tiny");
}

#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    let mut list = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("list")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    drop(list.stdout.take());
    let output = list.wait_with_output().expect("it ends by itself");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
