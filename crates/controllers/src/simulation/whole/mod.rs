//! The whole process under paused time: operators with kube's controllers, leader election and watches, the API server that
//! `beskar7 standalone` embeds, and simulated BMCs. People claim PhysicalHosts by hand, and by machines that the operators place,
//! order images on BareMetalHosts, and claim Servers; a history has hosts of one of these kinds, or of several.
//! What befalls them follows from a seed; how kube's controllers order what is due at once does not, because their hash maps
//! are random. So a seed that failed once may need several tries to fail again.

mod judge;
mod metal_judge;
mod metals;
mod owners;
mod probes;
mod rack_judge;
mod racks;
mod stage;
mod turns;
mod users;
pub(super) mod wire;

/// As many as fit into half a minute of a build machine; `make soak` plays the rest.
const SEEDS: u64 = 20;

#[test]
fn whole_histories_hurt_nobody_and_converge() {
    super::play_all("whole_histories", SEEDS, stage::play);
}
