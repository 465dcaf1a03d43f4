//! `beskar7 apply`: manifests to the API server, for those who have no kubectl at hand.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiCapabilities, ApiResource, Scope};
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use crate::access::{Access, ClusterArgs};
use crate::output;

pub(crate) const ABOUT: &str = "\
Apply manifests, by server-side apply, to any cluster.

Everything is looked at before anything is written: a file that cannot be read, an object without a name or a kind that \
the cluster does not know leaves the cluster as it was.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # A server and its credentials
  beskar7 apply -f server-01.yaml

  # All manifests of a folder; from a pipe
  beskar7 apply -f hosts/
  beskar7 sim --count 3 --manifests - | beskar7 apply -f -

  # Preview the changes
  beskar7 apply -f server-01.yaml --dry-run";

/// Who applies, as the API server remembers it. Fields that kubectl has applied belong to kubectl.
const MANAGER: &str = "beskar7-apply";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with YAML or JSON, folder of such files, or - for standard input; may be repeated
    #[arg(short, long, value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,
    /// Namespace of objects that name none; else the context's
    #[arg(short, long)]
    namespace: Option<String>,
    /// Overwrite fields that another manager owns
    #[arg(long)]
    force_conflicts: bool,
    /// Let the API server check everything, and store nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// An object of a manifest, and where it was read.
struct Manifest {
    object: DynamicObject,
    /// The object, for sentences: `hosts.yaml: PhysicalHost server-01`.
    label: String,
}

/// A manifest with its place at the API server.
struct Plan {
    manifest: Manifest,
    api: Api<DynamicObject>,
    /// `physicalhost.infrastructure.cluster.x-k8s.io/server-01`.
    told: String,
}

pub(crate) async fn execute(args: &Args) -> anyhow::Result<()> {
    let manifests = args.read()?;
    let access = args.cluster.access().await?;
    let mut plans = Vec::with_capacity(manifests.len());
    for manifest in manifests {
        if let Some(warning) = warning(&manifest) {
            output::remark(&warning);
        }
        plans.push(args.plan(manifest, &access).await?);
    }
    for plan in plans {
        output::line(&args.apply(plan, &access).await?)?;
    }
    Ok(())
}

/// What a cluster with our admission policy would warn of; the API server of `standalone` has no policies.
fn warning(manifest: &Manifest) -> Option<String> {
    let kind = manifest.object.types.as_ref().map(|types| types.kind.as_str());
    let address = manifest.object.data.pointer("/spec/redfishConnection/address")?.as_str()?;
    let plain = bmc::Address::parse(address).is_ok_and(|address| !address.is_secure());
    (kind == Some("PhysicalHost") && plain).then(|| {
        format!(
            "warning: {}: spec.redfishConnection.address speaks to the BMC without TLS: whoever is on the way reads the user name and the password. Use https.",
            manifest.label
        )
    })
}

impl Args {
    fn read(&self) -> anyhow::Result<Vec<Manifest>> {
        let mut manifests = Vec::new();
        for file in &self.filename {
            if file == Path::new("-") {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
                manifests.extend(parse("standard input", &text)?);
                continue;
            }
            for file in files(file)? {
                let shown = file.display().to_string();
                let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {shown}"))?;
                manifests.extend(parse(&shown, &text)?);
            }
        }
        if manifests.is_empty() {
            bail!("there is no object in what was given; nothing was changed");
        }
        Ok(manifests)
    }

    async fn plan(&self, manifest: Manifest, access: &Access) -> anyhow::Result<Plan> {
        let (resource, capabilities) = kind(&manifest, access).await?;
        let name = manifest.object.name_any();
        let client = access.client.clone();
        let api = match capabilities.scope {
            Scope::Cluster => Api::all_with(client, &resource),
            Scope::Namespaced => {
                let own = manifest.object.namespace();
                if let (Some(own), Some(given)) = (&own, &self.namespace)
                    && own != given
                {
                    bail!(
                        "{} is meant for the namespace {own}, but --namespace says {given}; nothing was changed",
                        manifest.label
                    );
                }
                let namespace = own.or(self.namespace.clone()).unwrap_or(access.namespace.clone());
                Api::namespaced_with(client, &namespace, &resource)
            }
        };
        let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
        let told = format!("{}{group}/{name}", resource.kind.to_lowercase());
        Ok(Plan { manifest, api, told })
    }

    /// Applies one, and tells what became of it.
    async fn apply(&self, plan: Plan, access: &Access) -> anyhow::Result<String> {
        let Plan { manifest, api, told } = plan;
        let explain = |error: kube::Error| match error {
            kube::Error::Api(status) if status.is_conflict() => anyhow!(
                "{}: {}. To take these fields over, add --force-conflicts",
                manifest.label,
                status.message.trim_end_matches('.')
            ),
            error => access.explain(error).context(manifest.label.clone()),
        };
        let name = manifest.object.name_any();
        let before = api.get_metadata_opt(&name).await.map_err(explain)?;
        let params = PatchParams { force: self.force_conflicts, dry_run: self.dry_run, ..PatchParams::apply(MANAGER) };
        let after = api.patch(&name, &params, &Patch::Apply(&manifest.object)).await.map_err(explain)?;
        let became = match before {
            None => "created",
            Some(before) if before.resource_version() == after.resource_version() => "unchanged",
            Some(_) => "configured",
        };
        Ok(if self.dry_run { format!("{told} {became} (dry run)") } else { format!("{told} {became}") })
    }
}

/// The file itself, or the manifests in the folder, in the order of their names.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read the folder {}", path.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.with_context(|| format!("cannot read the folder {}", path.display()))?.path();
        let manifest = file
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)));
        if manifest && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The objects of a text: YAML documents (JSON is YAML), Lists taken apart.
fn parse(from: &str, text: &str) -> anyhow::Result<Vec<Manifest>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| anyhow!("{from} is neither YAML nor JSON: {error}"))?;
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut list) if list.get("kind").and_then(Value::as_str) == Some("List") => {
                if let Some(Value::Array(items)) = list.remove("items") {
                    objects.extend(items);
                }
            }
            object => objects.push(object),
        }
    }
    objects.into_iter().enumerate().map(|(at, object)| manifest(from, at, object)).collect()
}

fn manifest(from: &str, at: usize, object: Value) -> anyhow::Result<Manifest> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let label = format!("{from}: {} {}", if kind.is_empty() { "object" } else { &kind }, at + 1);
    for (field, value) in [("apiVersion", &version), ("kind", &kind), ("metadata.name", &name)] {
        if value.is_empty() {
            bail!("{label} has no {field}; nothing was changed");
        }
    }
    let label = format!("{from}: {kind} {name}");
    let object: DynamicObject =
        serde_json::from_value(object).with_context(|| format!("{label} is no Kubernetes object"))?;
    Ok(Manifest { object, label })
}

/// Where objects of this kind live at this API server.
async fn kind(manifest: &Manifest, access: &Access) -> anyhow::Result<(ApiResource, ApiCapabilities)> {
    let types = manifest.object.types.clone().unwrap_or_default();
    let gvk = GroupVersionKind::try_from(&types).with_context(|| format!("{}: apiVersion", manifest.label))?;
    match discovery::pinned_kind(&access.client, &gvk).await {
        Ok(found) => Ok(found),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(unknown(manifest, &types.api_version, access)),
        Err(kube::Error::Discovery(_)) => Err(unknown(manifest, &types.api_version, access)),
        Err(error) => Err(access.explain(error)),
    }
}

fn unknown(manifest: &Manifest, version: &str, access: &Access) -> anyhow::Error {
    anyhow!(
        "{}: the cluster at {} does not know that kind in {version}; nothing was changed. Is its CRD installed? \
         Beskar7's own are: beskar7 crds | beskar7 apply -f -",
        manifest.label,
        access.url()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Result<Vec<String>, String> {
        let manifests = parse("x.yaml", text).map_err(|error| error.to_string())?;
        Ok(manifests.into_iter().map(|manifest| manifest.label).collect())
    }

    #[test]
    fn documents_lists_and_json_are_read() {
        let text = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n# nothing\n---\n\
                    {\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n\
                    {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"b\"}}]}\n";
        assert_eq!(labels(text), Ok(vec!["x.yaml: Secret a".to_owned(), "x.yaml: ConfigMap b".to_owned()]));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, sentence) in [
            ("kind: Secret\nmetadata: {name: a}", "x.yaml: Secret 1 has no apiVersion; nothing was changed"),
            ("apiVersion: v1\nmetadata: {name: a}", "x.yaml: object 1 has no kind; nothing was changed"),
            ("apiVersion: v1\nkind: Secret", "x.yaml: Secret 1 has no metadata.name; nothing was changed"),
        ] {
            assert_eq!(labels(text), Err(sentence.to_owned()));
        }
        assert!(labels("a: [").unwrap_err().starts_with("x.yaml is neither YAML nor JSON: "));
    }
}
