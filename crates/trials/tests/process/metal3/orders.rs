//! Images that a BMC cannot take.

use std::time::Duration;

use sim::{Effect, Kind, Timing};
use trials::story::ISO;

use super::{Site, live, quiet_world};

/// The time between one try and the next. A try may ask in several ways.
fn pauses(site: &Site) -> Vec<Duration> {
    let mut tries: Vec<_> =
        site.bmc.journal().into_iter().filter(|it| it.kind == Kind::InsertMedia).map(|it| it.at).collect();
    tries.dedup();
    tries.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_bmc_refuses_is_a_provisioning_error_in_its_words_and_is_tried_again() {
    let table = [
        (Effect::RefusesMedia("the URI scheme is not supported".to_owned()), "the URI scheme is not supported"),
        (Effect::RefusesMedia("404 Not Found: the image could not be fetched".to_owned()), "404 Not Found"),
        // Some BMCs fetch it later, and say nothing.
        (Effect::IgnoresMedia, ISO),
    ];
    let world = quiet_world().await;
    for (effect, words) in table {
        let site = Site::beside(&world, Timing::INSTANT).await;
        site.start_operator();
        site.bmc.faults().add(effect.clone().always());
        site.create(live(ISO)).await;
        site.until_error("provisioning error").await;
        let host = site.shown().await;
        let status = &host["status"];
        assert_eq!(
            (&status["provisioning"]["state"], &status["operationalStatus"]),
            (&"provisioning".into(), &"error".into())
        );
        assert!(status["errorMessage"].as_str().unwrap().contains(words), "{words}: {}", status["errorMessage"]);
        assert_eq!(status["errorCount"], 1, "{effect:?}");
        for count in 2..=5 {
            site.until("one more failure", |host| host["status"]["errorCount"] == count).await;
            assert_eq!(site.shown().await["status"]["provisioning"]["state"], "provisioning", "{effect:?}");
        }
        let pauses = pauses(&site);
        assert!(pauses.is_sorted() && pauses.len() >= 4, "{effect:?} is tried with back-off: {pauses:?}");
        assert_eq!(site.bmc.first().boots, 0, "{effect:?}: nothing is started");
        site.bmc.faults().clear();
        site.until_running(ISO).await;
        site.world.stop_operator().await;
    }
}
