//! `hack/report`: what a run of the tests says at its end.

use tokio::process::Command;

use crate::workspace;

const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="beskar7-trials::it">
    <testcase name="well" classname="beskar7-trials::it" time="0.5"/>
    <testcase name="broken" classname="beskar7-trials::it" time="2"><failure type="test failure"/></testcase>
    <testcase name="late" classname="beskar7-trials::it" time="121">
      <flakyFailure type="test failure" message="thread panicked">
        <system-out>running 1 test
test late ... FAILED</system-out>
        <system-err>INFO something was logged before
thread 'late' (7) panicked at crates/testkit/src/wait.rs:16:29:
waited 120s for the session to be closed
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/library/std/src/panicking.rs:689:5
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.</system-err>
      </flakyFailure>
    </testcase>
    <testcase name="silent" classname="beskar7-trials::it" time="1">
      <flakyFailure type="test timeout"><system-err>it hung</system-err></flakyFailure>
    </testcase>
  </testsuite>
</testsuites>"#;

#[tokio::test]
async fn a_flaky_test_is_shown_with_the_first_lines_of_its_panic() {
    let dir = tempfile::tempdir().unwrap();
    let (junit, flaky) = (dir.path().join("junit.xml"), dir.path().join("flaky"));
    std::fs::write(&junit, JUNIT).unwrap();
    let output = Command::new(workspace().join("hack/report")).args([&junit, &flaky]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().next(), Some("3 1"));
    assert!(said.lines().nth(2).is_some_and(|line| line.contains("121.0 s  beskar7-trials::it late")), "{said}");
    let flaky = std::fs::read_to_string(flaky).unwrap();
    let wanted = "FLAKY beskar7-trials::it late
      thread 'late' (7) panicked at crates/testkit/src/wait.rs:16:29:
      waited 120s for the session to be closed
FLAKY beskar7-trials::it silent
      it hung
";
    assert_eq!(flaky, wanted);
}
