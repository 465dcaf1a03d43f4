//! The two servers, and how a case is told to both.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;

use apiserver::auth::StaticTokens;
use apiserver::clock::Clock;
use apiserver::server::{Config, Server};
use apiserver::store::Store;
use apiserver::tls::{self, Pki};
use conformance::{Story, Target, differences, normalise, verdict};
use futures::FutureExt as _;
use tempfile::TempDir;
use testkit::Cluster;
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, oneshot};

use crate::known_differences::KNOWN_DIFFERENCES;
use crate::samples;

/// One `#[test]` for each case.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        mod judged {
            $(
                #[test]
                fn $case() {
                    crate::court::judge(stringify!($case), super::$case);
                }
            )*
        }
    };
}
pub(crate) use cases;

/// Tells a case to both servers and compares.
pub(crate) fn judge(case: &str, tell: impl AsyncFn(&mut Story)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (real, ours) = tokio::join!(real(), ours());
        let mut told_real = Story::new(case, real.clone());
        let mut told_ours = Story::new(case, ours.clone());
        let (real_ended, ours_ended) = tokio::join!(tell_one(&mut told_real, &tell), tell_one(&mut told_ours, &tell));
        show(&told_real);
        if let Err(panic) = real_ended {
            resume_unwind(panic);
        }
        let (mut real, mut ours) = (told_real.into_steps(), told_ours.into_steps());
        normalise(&mut real);
        normalise(&mut ours);
        if let Err(panic) = &ours_ended {
            // What the case could not go on with shows in the answers before.
            let why = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
            eprintln!("told to ours, the case broke off after step {}: {why}", ours.len());
        }
        if let Err(report) = verdict(case, &differences(&real, &ours), KNOWN_DIFFERENCES) {
            panic!("{report}");
        }
        if let Err(panic) = ours_ended {
            resume_unwind(panic);
        }
    });
}

async fn tell_one(story: &mut Story, tell: &impl AsyncFn(&mut Story)) -> std::thread::Result<()> {
    AssertUnwindSafe(async {
        story.make_namespace().await;
        tell(story).await;
    })
    .catch_unwind()
    .await
}

fn show(story: &Story) {
    if std::env::var_os("BESKAR7_SHOW").is_some() {
        for step in story.steps() {
            println!("--- {} {}\n{:#}", story.target().name(), step.title, step.answer);
        }
    }
}

async fn real() -> &'static Target {
    static REAL: OnceCell<Target> = OnceCell::const_new();
    REAL.get_or_init(async || {
        let target = Target::judge(Cluster::shared().await.admin_kubeconfig()).with_tools(tools());
        samples::define(&target).await;
        target
    })
    .await
}

/// Where kubectl and the clients are.
fn tools() -> Vec<PathBuf> {
    ["kube", "clients"].map(|part| testkit::part(part).join("bin")).into()
}

async fn ours() -> &'static Target {
    static OURS: OnceCell<Target> = OnceCell::const_new();
    OURS.get_or_init(async || {
        let (ready, started) = oneshot::channel();
        // It outlives the runtimes of the tests.
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(serve(ready));
        };
        std::thread::Builder::new().name("ours".to_owned()).spawn(serve).unwrap();
        let folder = started.await.expect("our server starts");
        let target = Target::ours(&folder.path().join("kubeconfig")).with_tools(tools());
        samples::define(&target).await;
        target
    })
    .await
}

/// Our server, on a socket of its own, until the process ends.
async fn serve(ready: oneshot::Sender<TempDir>) {
    #[expect(clippy::disallowed_methods, reason = "this is the edge")]
    let clock = Clock::new(jiff::Timestamp::now);
    let pki = Pki::in_memory(&clock, &[]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = tls::server_url(listener.local_addr().unwrap());
    pki.write_kubeconfig(&folder.path().join("kubeconfig"), "ours", &url).unwrap();
    let config = Config {
        store: Store::memory(),
        clock,
        seed: 7,
        pki: Some(pki),
        tokens: StaticTokens::default(),
        build: "suite".to_owned(),
    };
    let server = Server::start(config).await.unwrap();
    ready.send(folder).unwrap();
    server.serve(listener).await.unwrap();
}
