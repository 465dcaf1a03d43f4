//! The way to the API server, and what to say when it is barred.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use controllers::api_client;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, TypeMeta};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::ObjectList;
use kube::discovery::ApiResource;
use kube::{Api, Client, Config};

use crate::dialects::HostKind;

/// How long we try to reach the API server before we say that it cannot be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For watches, which are renewed after 290 s. Everything else has a deadline of seconds, see [`api_client`].
const READ_TIMEOUT: Duration = Duration::from_secs(295);
/// How many hosts are fetched at once: a status weighs some 10 KB.
const PAGE: u32 = 250;

/// Which cluster.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file; else $KUBECONFIG, ~/.kube/config, or the service account of the pod we run in
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; else its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster that can be spoken to.
#[derive(Clone)]
pub(crate) struct Access {
    /// The way there.
    pub(crate) client: Client,
    /// The namespace of the context.
    pub(crate) namespace: String,
    url: String,
}

impl ClusterArgs {
    /// Prepares to speak to the cluster; nothing is sent yet.
    pub(crate) async fn access(&self) -> anyhow::Result<Access> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        config.reset_reader_on_write = true;
        let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
        let client = Client::try_from(config).with_context(|| format!("cannot speak to the cluster at {url}"))?;
        Ok(Access { client: api_client::bounded(client), namespace, url })
    }

    /// Unlike [`Config::infer`], a kubeconfig that is broken is not passed over in silence.
    async fn config(&self) -> anyhow::Result<Config> {
        let kubeconfig = match &self.kubeconfig {
            Some(file) => Some(Kubeconfig::read_from(file).map_err(explain_kubeconfig)?),
            None => default_kubeconfig()?,
        };
        match kubeconfig {
            Some(kubeconfig) => {
                let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(explain_kubeconfig)
            }
            None if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Config::incluster()
                .context("this looks like a pod, but its service account cannot be used to reach the API server"),
            None => bail!(
                "there is no kubeconfig: give one with --kubeconfig FILE, name it in $KUBECONFIG, or put it at ~/.kube/config"
            ),
        }
    }
}

fn default_kubeconfig() -> anyhow::Result<Option<Kubeconfig>> {
    if let Some(kubeconfig) = Kubeconfig::from_env().map_err(explain_kubeconfig)? {
        return Ok(Some(kubeconfig));
    }
    let file = std::env::home_dir().map(|home| home.join(".kube/config")).filter(|file| file.exists());
    file.map(|file| Kubeconfig::read_from(file).map_err(explain_kubeconfig)).transpose()
}

fn explain_kubeconfig(error: KubeconfigError) -> anyhow::Error {
    match error {
        KubeconfigError::ReadConfig(why, file) => anyhow!("cannot read the kubeconfig {}: {why}", file.display()),
        KubeconfigError::Parse(why) => anyhow!("the kubeconfig is not what it should be: {why}"),
        KubeconfigError::CurrentContextNotSet => {
            anyhow!("the kubeconfig has no current context: choose one with --context NAME")
        }
        KubeconfigError::LoadContext(context) => {
            anyhow!("the kubeconfig has no context {context:?}: `kubectl config get-contexts` lists them")
        }
        KubeconfigError::LoadClusterOfContext(cluster) => {
            anyhow!("the kubeconfig has no cluster {cluster:?}, which its context names")
        }
        other => anyhow::Error::new(other).context("the kubeconfig cannot be used"),
    }
}

impl Access {
    /// The way to an API server in this process.
    #[cfg(test)]
    pub(crate) fn to(client: Client) -> Self {
        Self { namespace: client.default_namespace().to_owned(), client, url: "in this process".to_owned() }
    }

    /// Where the API server is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The hosts of one kind, of one namespace or of all.
    pub(crate) fn hosts(&self, kind: &'static dyn HostKind, namespace: Option<&str>) -> Hosts {
        let resource = kind.resource();
        let namespace = namespace.filter(|_| kind.has_namespaces());
        let api = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let everywhere = kind.has_namespaces() && namespace.is_none();
        Hosts { kind, api, resource, access: self.clone(), everywhere }
    }

    /// Fails if there is certainly no such namespace. Who may not ask about it is not told.
    pub(crate) async fn check_namespace(&self, name: &str) -> anyhow::Result<()> {
        match Api::<Namespace>::all(self.client.clone()).get_opt(name).await {
            Ok(None) => {
                bail!("the cluster at {} has no namespace {name:?}: `kubectl get namespaces` lists them", self.url)
            }
            Ok(Some(_)) | Err(_) => Ok(()),
        }
    }

    /// What to say, and what to do.
    pub(crate) fn explain(&self, error: kube::Error) -> anyhow::Error {
        match error {
            kube::Error::Api(status) => match status.code {
                401 => anyhow!("the API server at {} does not accept your credentials: log in again", self.url),
                _ => anyhow!("{}", status.message),
            },
            kube::Error::Auth(error) => {
                anyhow!("the kubeconfig's credentials cannot be used: {}", root_cause(&error))
            }
            error @ (kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_)) => anyhow!(
                "the API server at {} cannot be reached: {}. Is the cluster up, and is it the right one? `kubectl config current-context` tells which it is.",
                self.url,
                root_cause(&error)
            ),
            error => anyhow::Error::new(error).context(format!("the API server at {} gave no usable answer", self.url)),
        }
    }
}

/// Hosts of one kind at the API server, with errors that people understand.
#[derive(Clone)]
pub(crate) struct Hosts {
    /// What they are.
    pub(crate) kind: &'static dyn HostKind,
    /// For what is not here.
    pub(crate) api: Api<DynamicObject>,
    resource: ApiResource,
    access: Access,
    everywhere: bool,
}

impl Hosts {
    /// Fails with a sentence if hosts cannot be listed: no way, no leave, no CRD.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        self.page(&ListParams::default().limit(1)).await.map(drop)
    }

    /// Gives all hosts to `take`, page by page, until it fails.
    pub(crate) async fn each(
        &self,
        labels: Option<&str>,
        mut take: impl FnMut(DynamicObject) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut params = ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default() }.limit(PAGE);
        loop {
            let page = self.page(&params).await?;
            page.items.into_iter().map(|object| self.clean(object)).try_for_each(&mut take)?;
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    async fn page(&self, params: &ListParams) -> anyhow::Result<ObjectList<DynamicObject>> {
        self.api.list(params).await.map_err(|error| self.explain(error))
    }

    /// The host of that name, if there is one.
    pub(crate) async fn get(&self, name: &str) -> anyhow::Result<Option<DynamicObject>> {
        let object = self.api.get_opt(name).await.map_err(|error| self.explain(error))?;
        Ok(object.map(|object| self.clean(object)))
    }

    /// As people want to see it: with its kind, which lists may leave out, and without what only the API server needs.
    fn clean(&self, mut object: DynamicObject) -> DynamicObject {
        object.metadata.managed_fields = None;
        let types = || TypeMeta { api_version: self.resource.api_version.clone(), kind: self.resource.kind.clone() };
        object.types.get_or_insert_with(types);
        object
    }

    /// Changes a host by a merge patch; `None` if it was changed by somebody else since.
    pub(crate) async fn patch(&self, name: &str, patch: &serde_json::Value) -> anyhow::Result<Option<DynamicObject>> {
        let params = PatchParams { field_manager: Some("beskar7-cli".to_owned()), ..PatchParams::default() };
        match self.api.patch(name, &params, &Patch::Merge(patch)).await {
            Ok(host) => Ok(Some(host)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// What to say, and what to do.
    pub(crate) fn explain(&self, error: kube::Error) -> anyhow::Error {
        match error {
            // The API server names what it looked for if it knows the kind; for an unknown kind it has no words.
            kube::Error::Api(status) if status.code == 404 && !status.is_not_found() => anyhow!(
                "the cluster at {} does not know {}s: install the CRDs: beskar7 crds | kubectl apply --server-side -f -",
                self.access.url,
                self.resource.kind
            ),
            kube::Error::Api(status) if status.code == 403 && self.everywhere => {
                anyhow!("{}. Choose a namespace with --namespace, or have the role granted to you", status.message)
            }
            error => self.access.explain(error),
        }
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error.to_string();
    let mut next = error.source();
    while let Some(deeper) = next {
        cause = deeper.to_string();
        next = deeper.source();
    }
    cause
}
