//! Reports over a program that stands for the lab: it writes results, and fails where a
//! file says so.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tachonym_bench::report::Report;
use tachonym_bench::{
    Catalogue, Cost, Experiment, Kind, Need, Record, Registry, ResultFile, Scale, Table, Values,
    cells,
};

const fn experiment(id: &'static str, needs: &'static [Need]) -> Experiment {
    Experiment {
        id,
        title: "what <b>it</b> shows",
        source: "a document",
        cost: Cost::minutes(0.1, 1.0),
        needs,
        params: &[],
        run: |_| Ok(Record::new(Kind::Computed)),
    }
}

/// A folder with a program that counts its runs.
struct Lab {
    folder: tempfile::TempDir,
    program: PathBuf,
    registry: Registry,
}

impl Lab {
    fn new(experiments: &[Experiment]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for it in experiments {
            let mut record = Record::new(Kind::Computed);
            let mut table = Table::new("", ["what", "value"]);
            table.row(cells![it.id, 0.25]);
            record.tables.push(table);
            let result = ResultFile::new(it, Scale::Tiny, &Values::default(), 1.0, record);
            let path = ResultFile::path_in(&folder.path().join("prepared"), it.id);
            let result = result.expect("a date");
            result.write(&path).expect("the folder is writable");
        }
        let program = folder.path().join("lab");
        let root = folder.path().display();
        // run ID --scale S --out FILE
        let script = format!(
            "#!/bin/sh\necho $2 >> {root}/runs\n\
             if [ -e {root}/fails/$2 ]; then echo 'no such luck' >&2; exit 1; fi\n\
             mkdir -p $(dirname $6) && cp {root}/prepared/$2.json $6\n"
        );
        fs::write(&program, script).expect("the folder is writable");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let registry = Registry::new(experiments.to_vec()).expect("different ids");
        Self {
            folder,
            program,
            registry,
        }
    }

    fn fail(&self, id: &str, is_failing: bool) {
        let path = self.folder.path().join("fails").join(id);
        if is_failing {
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, "").expect("writable");
        } else {
            fs::remove_file(path).expect("it is there");
        }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// How many failed, the page, and what ran.
    fn report(&self, is_again: bool) -> (usize, String, Vec<String>) {
        let runs = self.folder.path().join("runs");
        let _ = fs::remove_file(&runs);
        let experiments: Vec<_> = self.registry.all().iter().collect();
        let catalogue = "[[row]]\nid = 'x/figure-1'\ntitle = 'a drawing'\nwhere = 'there'\n\
                         missing = 'a part'\n";
        let catalogue = Catalogue::parse(catalogue).expect("a row");
        let mut report = Report::new(&self.out(), Scale::Tiny, is_again);
        let n_failed = report.run(&experiments, &catalogue, &self.program);
        let ran = fs::read_to_string(&runs).unwrap_or_default();
        (
            n_failed.expect("the folder is writable"),
            fs::read_to_string(self.out().join("index.html")).expect("a page"),
            ran.lines().map(str::to_owned).collect(),
        )
    }
}

#[test]
fn a_failure_is_named_and_the_rest_is_done() {
    let lab = Lab::new(&[
        experiment("own/first", &[]),
        experiment("own/second", &[]),
        experiment("own/third", &[]),
    ]);
    lab.fail("own/second", true);
    let (n_failed, page, ran) = lab.report(false);
    assert_eq!(n_failed, 1);
    assert_eq!(ran, ["own/first", "own/second", "own/third"]);
    assert!(page.contains("2 of 3 done, 1 failed"), "{page}");
    assert!(page.contains("failed: no such luck"), "{page}");
    assert!(
        page.contains("<td>own/third</td>"),
        "tables are HTML: {page}"
    );
    assert!(page.contains("what &lt;b&gt;it&lt;/b&gt; shows"));
    assert!(page.contains("not yet: a part"), "{page}");
}

#[test]
fn an_interrupted_report_continues_with_what_is_missing() {
    let lab = Lab::new(&[experiment("own/first", &[]), experiment("own/second", &[])]);
    lab.fail("own/second", true);
    lab.report(false);
    lab.fail("own/second", false);
    let (n_failed, page, ran) = lab.report(false);
    assert_eq!((n_failed, &*ran), (0, &["own/second".to_owned()][..]));
    assert!(page.contains("2 of 2 done"));
    // A result that was cut off counts as none.
    let cut = ResultFile::path_in(&lab.out().join("results"), "own/first");
    fs::write(&cut, "{\"id\": \"own/fir").expect("writable");
    assert_eq!(lab.report(false).2, ["own/first"]);
    assert_eq!(lab.report(true).2, ["own/first", "own/second"]);
}

#[test]
fn what_cannot_run_here_is_named_before_anything_runs() {
    let lab = Lab::new(&[
        experiment("own/first", &[]),
        experiment("own/router", &[Need::Router]),
    ]);
    let (n_failed, page, ran) = lab.report(false);
    assert_eq!((n_failed, &*ran), (1, &["own/first".to_owned()][..]));
    assert!(page.contains("needs the program tachonym beside"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let lab = Lab::new(&[experiment("own/first", &[])]);
    fs::write(lab.out(), "a file is in the way").expect("writable");
    let experiments: Vec<_> = lab.registry.all().iter().collect();
    let catalogue = Catalogue {
        rows: Vec::new(),
        contradictions: Vec::new(),
    };
    let mut report = Report::new(&lab.out(), Scale::Tiny, false);
    let error = report.run(&experiments, &catalogue, Path::new("/nowhere"));
    let error = format!("{:#}", error.expect_err("no page can be written"));
    assert!(error.contains("cannot write"), "{error}");
}
