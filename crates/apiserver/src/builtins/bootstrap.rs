//! Objects that are there before anybody makes one.

use futures::FutureExt as _;
use futures::future::select_all;
use http::StatusCode;
use schema::object;
use serde_json::{Value, json};
use store::Event;
use tokio::time::Duration;

use crate::resource::Part;
use crate::status::Failure;
use crate::verbs::{Api, WriteOptions};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The account that programs have which ask for none.
const ACCOUNT: &str = "default";

/// By which programs inside of a cluster know the API server.
const AUTHORITY: &str = "kube-root-ca.crt";

/// Who makes these, in the eyes of field owners.
const SERVER: &str = "kube-apiserver";
const CONTROLLER: &str = "kube-controller-manager";

/// How long to wait before trying again after the store has failed.
const RETRY: Duration = Duration::from_secs(1);

/// Makes the namespaces that every cluster has, where they are not there yet.
pub async fn make_namespaces(api: &Api) -> Result<(), Failure> {
    let served = api.served("", "v1", "namespaces")?;
    for name in NAMESPACES {
        match api.get(&served, "", name) {
            Err(failure) if failure.code == StatusCode::NOT_FOUND => {
                let namespace = json!({ "metadata": { "name": name } });
                unless_there(api.create(&served, "", namespace, &WriteOptions::by(SERVER)).await.map(drop))?;
            }
            other => drop(other?),
        }
    }
    Ok(())
}

/// Gives each namespace its default ServiceAccount and, if there is one, the certificate of the authority (PEM), and puts
/// back what is taken away, until the server stops.
pub async fn furnish_namespaces(api: Api, authority: Option<String>) {
    let stopped = api.stopped();
    stopped
        .run_until_cancelled(async {
            loop {
                let revision = api.store().revision();
                if let Err(failure) = furnish_all(&api, authority.as_deref()).await {
                    tracing::warn!(%failure, "namespaces could not be furnished");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
                wait_for_work(&api, revision).await;
            }
        })
        .await;
}

async fn furnish_all(api: &Api, authority: Option<&str>) -> Result<(), Failure> {
    let (namespaces, _) = api.list_all(&api.served("", "v1", "namespaces")?, None).await?;
    for namespace in namespaces.iter().filter(|namespace| !object::is_deleting(namespace)) {
        let name = object::name(namespace);
        unless_there(furnish(api, name, authority).await)?;
    }
    Ok(())
}

async fn furnish(api: &Api, namespace: &str, authority: Option<&str>) -> Result<(), Failure> {
    let options = WriteOptions::by(CONTROLLER);
    let accounts = api.served("", "v1", "serviceaccounts")?;
    if is_missing(&api.get(&accounts, namespace, ACCOUNT)) {
        api.create(&accounts, namespace, json!({ "metadata": { "name": ACCOUNT } }), &options).await?;
    }
    let Some(authority) = authority else { return Ok(()) };
    let maps = api.served("", "v1", "configmaps")?;
    let data = json!({ "ca.crt": authority });
    match api.get(&maps, namespace, AUTHORITY) {
        Ok(map) if map["data"] == data => {}
        Ok(_) => {
            let put_back = |map: &mut Value| map["data"] = data.clone();
            api.modify(&maps, namespace, AUTHORITY, Part::Main, &options, put_back).await?;
        }
        missing if is_missing(&missing) => {
            let about = "The certificate of the authority that vouches for this API server.";
            let map = json!({
                "metadata": { "name": AUTHORITY, "annotations": { "kubernetes.io/description": about } },
                "data": data,
            });
            api.create(&maps, namespace, map, &options).await?;
        }
        failed => drop(failed?),
    }
    Ok(())
}

fn is_missing(found: &Result<Value, Failure>) -> bool {
    found.as_ref().is_err_and(|failure| failure.code == StatusCode::NOT_FOUND)
}

/// Somebody else was faster, the namespace is going, or it holds something that cannot be changed.
fn unless_there(done: Result<(), Failure>) -> Result<(), Failure> {
    let harmless =
        [StatusCode::CONFLICT, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::UNPROCESSABLE_ENTITY];
    match done {
        Err(failure) if harmless.contains(&failure.code) => Ok(()),
        other => other,
    }
}

/// Returns when something may be missing.
async fn wait_for_work(api: &Api, revision: u64) {
    let prefixes = ["/registry/core/namespaces/", "/registry/core/serviceaccounts/", "/registry/core/configmaps/"];
    let watches = prefixes.map(|prefix| api.store().watch(prefix, revision));
    let Ok(mut watches) = watches.into_iter().collect::<Result<Vec<_>, _>>() else { return };
    loop {
        match select_all(watches.iter_mut().map(|watch| watch.next().boxed())).await.0 {
            Ok(event) if !matters(&event) => {}
            _ => return,
        }
    }
}

fn matters(event: &Event) -> bool {
    let account = event.deleted && event.key.ends_with("/default");
    let authority = event.key.ends_with("/kube-root-ca.crt");
    account || authority || (!event.deleted && event.key.starts_with("/registry/core/namespaces/"))
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;
    use crate::builtins;
    use crate::catalogue::{Catalogue, Served, Shelf};
    use crate::clock::Clock;
    use crate::verbs::DeleteOptions;
    use store::Store;

    fn api() -> Api {
        let catalogue = Catalogue::new(builtins::resources().unwrap());
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Api::new(Store::memory(), Shelf::new(catalogue), Clock::new(move || now), 1)
    }

    async fn until(api: &Api, served: &Served, namespace: &str, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let look = async {
            loop {
                let revision = api.store().revision();
                if let Ok(found) = api.get(served, namespace, name)
                    && holds(&found)
                {
                    return found;
                }
                api.store().watch("/registry/", revision).unwrap().next().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(10), look).await.expect("it happens within ten seconds")
    }

    #[tokio::test]
    async fn the_namespaces_of_every_cluster_are_made_once() {
        let api = api();
        make_namespaces(&api).await.unwrap();
        let revision = api.store().revision();
        make_namespaces(&api).await.unwrap();
        assert_eq!(api.store().revision(), revision);
        let served = api.served("", "v1", "namespaces").unwrap();
        let (found, _) = api.list_all(&served, None).await.unwrap();
        let names: Vec<&str> = found.iter().map(object::name).collect();
        assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
        assert_eq!(found[0]["status"], json!({ "phase": "Active" }));
    }

    #[tokio::test]
    async fn namespaces_have_an_account_and_an_authority_and_get_them_back() {
        let api = api();
        make_namespaces(&api).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(furnish_namespaces(api.clone(), Some("PEM".to_owned())));
        let accounts = api.served("", "v1", "serviceaccounts").unwrap();
        let maps = api.served("", "v1", "configmaps").unwrap();
        let first = until(&api, &accounts, "default", ACCOUNT, |_| true).await;
        until(&api, &maps, "default", AUTHORITY, |map| map["data"]["ca.crt"] == "PEM").await;
        api.delete(&accounts, "default", ACCOUNT, &DeleteOptions::default()).await.unwrap();
        until(&api, &accounts, "default", ACCOUNT, |account| object::uid(account) != object::uid(&first)).await;
        let forge = |map: &mut Value| map["data"] = json!({});
        let options = WriteOptions::by("t");
        api.modify(&maps, "default", AUTHORITY, Part::Main, &options, forge).await.unwrap();
        until(&api, &maps, "default", AUTHORITY, |map| map["data"]["ca.crt"] == "PEM").await;
        let namespaces = api.served("", "v1", "namespaces").unwrap();
        api.create(&namespaces, "", json!({ "metadata": { "name": "lab" } }), &options).await.unwrap();
        until(&api, &maps, "lab", AUTHORITY, |_| true).await;
    }
}
