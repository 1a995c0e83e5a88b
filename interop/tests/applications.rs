//! The sample programs of `docs/applications.md`, run as its readers run them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tachonym_interop::{Router, Running, home, installed, node, output_of};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// A router, and a folder with the samples and the packages that they import.
struct Bench {
    router: Router,
    samples: PathBuf,
}

impl Bench {
    /// Starts a router with `extra` at the end of its table `[faces]`.
    fn new(extra: &str) -> Self {
        let router = Router::start_with(extra);
        let samples = router.folder().join("samples");
        fs::create_dir(&samples).expect("a new folder");
        for file in fs::read_dir(docs().join("samples")).expect("the samples") {
            let file = file.expect("a file").path();
            let copy = samples.join(file.file_name().expect("a name"));
            fs::copy(&file, copy).expect("a copy");
        }
        let packages = installed("node/node_modules");
        symlink(packages, samples.join("node_modules")).expect("a link");
        Self { router, samples }
    }

    /// The command that runs the sample `file`.
    fn sample(&self, file: &str) -> Command {
        let mut command = match file.ends_with(".py") {
            true => Command::new(installed("python/bin/python")),
            false => Command::new(node()),
        };
        command.arg(self.samples.join(file));
        command.env("NDN_CLIENT_TRANSPORT", self.router.uri("unix"));
        command.env("HOME", home());
        command
    }

    /// Starts the producer `file` and returns it once its prefix has a route.
    fn serve(&self, file: &str, prefix: &str) -> Running {
        let mut producer = Running::start(&mut self.sample(file));
        assert_eq!(producer.line(), format!("serving {prefix}"));
        // NDNts registers in the background; a test that fails here does not end.
        while !self.router.tool(&["route", "list"]).contains(prefix) {}
        producer
    }
}

#[test]
fn the_page_shows_each_sample_as_it_is_run() {
    let page = fs::read_to_string(docs().join("applications.md")).expect("the page");
    let mut n_samples = 0;
    for file in fs::read_dir(docs().join("samples")).expect("the samples") {
        let file = file.expect("a file").path();
        let language = match file.extension().and_then(|extension| extension.to_str()) {
            Some("py") => "python",
            Some("mjs") => "js",
            Some("html") => "html",
            other => panic!("{other:?}: no language"),
        };
        let text = fs::read_to_string(&file).expect("text");
        let block = format!("```{language}\n{text}```\n");
        assert!(page.contains(&block), "{}", file.display());
        n_samples += 1;
    }
    let n_blocks = ["```python\n", "```js\n", "```html\n"].map(|fence| page.matches(fence).count());
    assert_eq!(n_blocks.iter().sum::<usize>(), n_samples, "only samples");
}

#[test]
fn the_page_installs_the_versions_that_are_tested() {
    let page = fs::read_to_string(docs().join("applications.md")).expect("the page");
    let after = |text: &str, start: &str| {
        let (_, rest) = text.split_once(start).expect(start);
        let is_version = |c: char| c.is_ascii_digit() || c == '.';
        rest.split(|c| !is_version(c)).next().map(str::to_owned)
    };
    let interop = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pinned = fs::read_to_string(interop.join("python/requirements.txt")).expect("pins");
    assert_eq!(
        after(&page, "python-ndn=="),
        after(&pinned, "\npython-ndn==")
    );
    let pinned = fs::read_to_string(interop.join("node/package.json")).expect("pins");
    assert_eq!(
        after(&page, "ws-transport}@"),
        after(&pinned, "ws-transport\": \"")
    );
}

#[test]
fn producers_in_both_languages_answer_both_consumers_and_peek() {
    let bench = Bench::new("");
    let _python = bench.serve("producer.py", "/example/python");
    let _node = bench.serve("producer.mjs", "/example/node");
    for (prefix, language) in [("/example/python", "Python"), ("/example/node", "Node.js")] {
        // Each consumer requests a name of its own, which no cache has.
        for consumer in ["consumer.py", "consumer.mjs"] {
            let name = format!("{prefix}/{consumer}");
            let text = output_of(bench.sample(consumer).arg(&name));
            assert_eq!(text, format!("Hello from {language}: {name}\n"));
        }
        let name = format!("{prefix}/peek");
        let text = bench.router.tool(&["peek", &name]);
        assert_eq!(text, format!("Hello from {language}: {name}\n"));
    }
}

#[test]
fn the_sample_consumers_report_a_name_without_a_route() {
    let bench = Bench::new("");
    for (consumer, message) in [
        ("consumer.py", "/nowhere: Nack, reason 150\n"),
        (
            "consumer.mjs",
            "Interest rejected: expire @consume(/8=nowhere)\n",
        ),
    ] {
        let output = bench.sample(consumer).arg("/nowhere").output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{consumer}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), message);
    }
}

#[test]
fn a_page_fetches_over_websocket_from_a_listed_origin_only() {
    let bench = Bench::new("websocket.origins = [\"http://127.0.0.1:8080\"]\n");
    let _producer = bench.serve("producer.py", "/example/python");
    // What the browser does for a page, by Node.js: it sends the page's origin.
    let page = "import WebSocket from 'ws';\n\
        import { fetchText } from './fetch-text.mjs';\n\
        const [router, name, origin] = process.argv.slice(2);\n\
        const socket = new WebSocket(router, { origin });\n\
        process.stdout.write(await fetchText(socket, name));\n";
    fs::write(bench.samples.join("page.mjs"), page).expect("a file");
    let fetch = |name: &str, origin: &str| {
        let mut command = bench.sample("page.mjs");
        command.args([bench.router.uri("ws"), name, origin]);
        command
    };
    let name = "/example/python/page";
    let text = output_of(&mut fetch(name, "http://127.0.0.1:8080"));
    assert_eq!(text, format!("Hello from Python: {name}\n"));
    let refused = fetch(name, "http://127.0.0.1:8081").output();
    let refused = refused.expect("it runs");
    assert!(!refused.status.success(), "{refused:?}");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("403"), "{message}");
}
