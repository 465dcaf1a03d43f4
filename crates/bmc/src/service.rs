//! The service root: what is where, and what the service can do.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::error::Error;
use crate::resource::View;

/// A summary of the service root; the body is not kept.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) vendor: Option<String>,
    pub(crate) product: Option<String>,
    pub(crate) redfish_version: Option<String>,
    pub(crate) oem: Vec<String>,
    pub(crate) systems: String,
    /// Whether it announces systems. Enclosures do not; a root without any links says nothing about that.
    pub(crate) announces_systems: bool,
    pub(crate) managers: String,
    pub(crate) chassis: String,
    pub(crate) sessions: Option<String>,
    pub(crate) update: Option<String>,
    /// The query that expands one level, where it is announced.
    expand: Option<&'static str>,
    /// Whether links inside a resource are expanded as well, as opposed to members of collections only (iLO).
    expands_links: AtomicBool,
    expand_is_broken: AtomicBool,
    expand_has_failed: AtomicBool,
}

pub(crate) const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

impl Service {
    /// Reads the root, if it is one.
    pub(crate) fn read(origin: &str, body: &Value) -> Result<Self, Error> {
        let root = View(body);
        let is_root = root.text("/RedfishVersion").is_some()
            || root.link("/Systems").is_some()
            || root.text("/@odata.type").is_some_and(|kind| kind.contains("ServiceRoot"));
        if !is_root {
            let why = "what it answers at /redfish/v1/ is not a Redfish service root; check host and port".into();
            return Err(Error::NotRedfish { url: origin.to_owned(), why });
        }
        let announced =
            |what: &str| root.flag(&format!("/ProtocolFeaturesSupported/ExpandQuery/{what}")).unwrap_or(false);
        let expand = match (announced("NoLinks"), announced("Levels")) {
            (true, true) => Some("$expand=.($levels=1)"),
            (true, false) => Some("$expand=."),
            _ => None,
        };
        // AMI's Viking may answer a root without any links until it is reset: the paths of the standard then.
        let link = |name: &str| root.link(&format!("/{name}")).unwrap_or_else(|| format!("/redfish/v1/{name}"));
        // A root with links but none to sessions has none (sushy-tools); asking there would look like a wrong password.
        let may_have_sessions = root.has("/SessionService") || root.link("/Systems").is_none();
        Ok(Self {
            vendor: root.text("/Vendor"),
            product: root.text("/Product"),
            redfish_version: root.text("/RedfishVersion"),
            oem: root.keys("/Oem"),
            systems: link("Systems"),
            announces_systems: root.link("/Systems").is_some()
                || (root.link("/Managers").is_none() && root.link("/Chassis").is_none()),
            managers: link("Managers"),
            chassis: link("Chassis"),
            sessions: root.link("/Links/Sessions").or_else(|| may_have_sessions.then(|| SESSIONS.to_owned())),
            update: root.link("/UpdateService"),
            expand,
            expands_links: AtomicBool::new(announced("ExpandAll") || announced("Links")),
            expand_is_broken: AtomicBool::new(false),
            expand_has_failed: AtomicBool::new(false),
        })
    }

    /// The query that expands a collection, unless it proved not to work.
    pub(crate) fn expand(&self) -> Option<&'static str> {
        self.expand.filter(|_| !self.expand_is_broken.load(Ordering::Relaxed))
    }

    /// Whether links inside a resource can be expanded as well.
    pub(crate) fn expands_links(&self) -> bool {
        self.expand().is_some() && self.expands_links.load(Ordering::Relaxed)
    }

    /// Members of collections are expanded, other links are not.
    pub(crate) fn links_do_not_expand(&self) {
        self.expands_links.store(false, Ordering::Relaxed);
    }

    /// It failed as anything may fail once; the second time it does not work.
    pub(crate) fn expand_failed(&self) {
        if self.expand_has_failed.swap(true, Ordering::Relaxed) {
            self.expand_does_not_work();
        }
    }

    /// Announced, but members come back without bodies, or the request fails.
    pub(crate) fn expand_does_not_work(&self) {
        self.expand_is_broken.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_a_root_is_not_redfish() {
        for body in [json!({}), json!({"status": "ok"}), json!([])] {
            assert_eq!(Service::read("https://x", &body).unwrap_err().kind(), engine::failure::Kind::NotRedfish);
        }
    }

    #[test]
    fn ami_root_without_links_falls_back_to_the_paths_of_the_standard() {
        let service = Service::read("https://x", &json!({"RedfishVersion": "1.11.0"})).unwrap();
        assert_eq!(service.systems, "/redfish/v1/Systems");
        assert!(service.announces_systems, "it has some, and does not show them");
        assert_eq!(service.sessions.as_deref(), Some(SESSIONS));
        assert_eq!(service.expand(), None);
    }

    #[test]
    fn an_enclosure_announces_managers_and_chassis_only() {
        let root = json!({"RedfishVersion": "1.6.0", "Managers": {"@odata.id": "/redfish/v1/Managers"}});
        assert!(!Service::read("https://x", &root).unwrap().announces_systems);
    }

    #[test]
    fn sushy_tools_has_no_sessions_and_says_so_by_leaving_out_the_link() {
        let root = json!({"RedfishVersion": "1.0.2", "Systems": {"@odata.id": "/redfish/v1/Systems"}});
        assert_eq!(Service::read("https://x", &root).unwrap().sessions, None);
    }

    #[test]
    fn openbmc_announces_that_it_does_not_expand() {
        let root = json!({"RedfishVersion": "1.17.0", "ProtocolFeaturesSupported": {"ExpandQuery": {"ExpandAll": false, "Levels": false, "NoLinks": false}}});
        assert_eq!(Service::read("https://x", &root).unwrap().expand(), None);
    }
}
