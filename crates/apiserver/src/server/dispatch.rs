//! Which verb a request is, and doing it.

use axum::body::Body;
use http::header::{ACCEPT, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::metrics::Label;
use super::{Front, answer, health, read, stream};
use crate::auth::{self, ReviewKind};
use crate::builtins;
use crate::catalogue::{Catalogue, Served};
use crate::request::accept::{Form, View, negotiate, not_acceptable};
use crate::request::body::media_type;
use crate::request::path::{Target, decode};
use crate::request::query::{Query, WriteParameters};
use crate::resource::{Part, Scope};
use crate::selector::Selector;
use crate::status::{Details, Failure};
use crate::table::IncludeObject;
use crate::verbs::{DeleteOptions, Paging, WriteOptions, Written, not_found, qualified};
use crate::watch::WatchOptions;

/// Reading and checking a body that is larger than this takes milliseconds.
const HEAVY: usize = 64 * 1024;

/// The longest name of a field manager that is taken from a user agent.
const MANAGER: usize = 128;

/// What a request asks for.
#[derive(Debug)]
pub(super) struct Asked {
    path: String,
    query: Query,
    target: Option<Target>,
    /// The resource, if there is one.
    served: Option<Served>,
    /// Whether the group is one that Kubernetes itself would have.
    built_in_group: bool,
    verb: Verb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    Other,
}

impl Verb {
    /// As it is written in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "",
        }
    }

    /// As it is written in metrics.
    fn label(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::DeleteCollection => "DELETECOLLECTION",
            Self::Other => "OTHER",
        }
    }
}

impl Asked {
    pub(super) fn new(catalogue: &Catalogue, head: &Parts) -> Self {
        let path = decode(head.uri.path(), false);
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let target = Target::parse(&path);
        let (mut served, mut built_in_group) = (None, false);
        if let Some(target) = &target {
            served = catalogue.find(&target.group, &target.version, &target.plural);
            built_in_group = is_built_in_group(catalogue, &target.group);
        }
        let named = target.as_ref().is_some_and(|target| target.name.is_some());
        let watching = query.switch("watch").unwrap_or_default() || target.as_ref().is_some_and(|target| target.watch);
        let legacy = target.as_ref().is_some_and(|target| target.watch);
        let verb = match (&head.method, named) {
            (&Method::GET | &Method::HEAD, true) if legacy => Verb::Watch,
            (&Method::GET | &Method::HEAD, true) => Verb::Get,
            (&Method::GET | &Method::HEAD, false) if watching => Verb::Watch,
            (&Method::GET | &Method::HEAD, false) => Verb::List,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => Verb::Other,
        };
        Self { path, query, target, served, built_in_group, verb }
    }

    /// The verb and the address, if the request is meant to change something.
    pub(super) fn write(&self) -> Option<(&'static str, &Target)> {
        let writes =
            matches!(self.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection);
        self.target.as_ref().filter(|_| writes).map(|target| (self.verb.name(), target))
    }

    pub(super) fn label(&self) -> Label {
        let (group, resource) = self
            .served
            .as_ref()
            .map_or_else(Default::default, |served| (served.group().to_owned(), served.resource.plural.clone()));
        Label { verb: self.verb.label(), group, resource }
    }
}

/// A request for a resource that is served.
struct Call<'a> {
    served: &'a Served,
    query: &'a Query,
    verb: Verb,
    headers: &'a HeaderMap,
    /// Empty where there is none.
    namespace: &'a str,
    /// `None` is all of them.
    in_namespace: Option<&'a str>,
    name: &'a str,
    subresource: &'a str,
    form: Form,
    include: IncludeObject,
}

impl Front {
    pub(super) async fn dispatch(&self, asked: Asked, head: &Parts, body: Body) -> Response<Body> {
        if let Some(response) = health::health(&asked.path, &asked.query) {
            return response;
        }
        let wanted = accepted(head, asked.verb == Verb::Watch);
        let form = Form { pretty: is_pretty(&asked.query, &head.headers), ..wanted.unwrap_or_default() };
        if let Some(response) = self.about_the_server(&asked, head, form) {
            return response;
        }
        let plain = Form { view: View::Whole, ..form };
        if asked.served.is_some() && (wanted.is_none() || is_foreign_to_built_ins(&asked, head)) {
            let refusal = refuse_accept(&asked, head);
            let media = accepted(head, false).unwrap_or_default().media;
            return answer::failed(&refusal, Form { media, ..plain });
        }
        let Some(target) = &asked.target else {
            if self.is_below_a_built_in_group(&asked.path) {
                return answer::failed(&Failure::no_such_path(), plain);
            }
            return answer::nowhere();
        };
        let answered = match &asked.served {
            Some(served) => match check_route(served, target, asked.verb) {
                Ok(()) => self.call(&asked, served, target, head, form, body).await,
                Err(Refusal::Nowhere) => return answer::nowhere(),
                Err(Refusal::Failure(failure)) => Err(failure),
            },
            None => match ReviewKind::find(&target.group, &target.plural).filter(|_| target.version == "v1") {
                Some(review) => self.review(review, target, asked.verb, head, form, body).await,
                None if asked.built_in_group => Err(Failure::no_such_path()),
                None => return answer::nowhere(),
            },
        };
        let mut response = answered.unwrap_or_else(|failure| answer::failed(&failure, plain));
        if let Some(deprecation) = asked.served.as_ref().and_then(|served| served.version().deprecation.as_ref()) {
            answer::warn(&mut response, std::slice::from_ref(deprecation));
        }
        response
    }

    /// Paths that lead to no resource.
    fn about_the_server(&self, asked: &Asked, head: &Parts, form: Form) -> Option<Response<Body>> {
        match asked.path.as_str() {
            "/version" | "/version/" => Some(match asked.verb {
                Verb::List | Verb::Watch => answer::value(StatusCode::OK, form, &health::version(&self.build)),
                _ => answer::failed(&method_not_allowed(), form),
            }),
            "/metrics" => Some(self.metrics.show()),
            path => {
                let response = super::documents(&self.api, path, head, form)?;
                let reading = matches!(head.method, Method::GET | Method::HEAD);
                if reading || !(path == "/api" || path == "/apis" || self.is_below_a_built_in_group(path)) {
                    return Some(response);
                }
                Some(answer::failed(&method_not_allowed(), form))
            }
        }
    }

    /// Whether Kubernetes' own router, and not that of custom resources, looks after a path.
    fn is_below_a_built_in_group(&self, path: &str) -> bool {
        let mut parts = path.trim_matches('/').split('/');
        match (parts.next(), parts.next()) {
            (Some("api"), Some(_)) => true,
            (Some("apis"), Some(group)) => is_built_in_group(&self.api.catalogue(), group),
            _ => false,
        }
    }

    async fn call(
        &self,
        asked: &Asked,
        served: &Served,
        target: &Target,
        head: &Parts,
        form: Form,
        body: Body,
    ) -> Result<Response<Body>, Failure> {
        let include = match form.view {
            View::Table(_) => IncludeObject::parse(asked.query.get("includeObject").unwrap_or_default())?,
            _ => IncludeObject::default(),
        };
        let namespaced = served.resource.scope == Scope::Namespaced;
        let call = Call {
            served,
            query: &asked.query,
            verb: asked.verb,
            headers: &head.headers,
            namespace: target.namespace.as_deref().filter(|_| namespaced).unwrap_or_default(),
            in_namespace: target.namespace.as_deref().filter(|_| namespaced),
            name: target.name.as_deref().unwrap_or_default(),
            subresource: target.subresource.as_deref().unwrap_or_default(),
            form,
            include,
        };
        match (call.subresource, call.verb) {
            ("scale", _) => self.scale(&call, body).await,
            ("token", _) => self.token(&call, body).await,
            (_, Verb::Get) => self.get(&call),
            (_, Verb::List) => self.list(&call).await,
            (_, Verb::Watch) => self.watch(&call, asked).await,
            (_, Verb::Create) => self.create(&call, body).await,
            (_, Verb::Update) => self.update(&call, body).await,
            (_, Verb::Patch) => self.patch(&call, body).await,
            (_, Verb::Delete) => self.delete(&call, body).await,
            (_, Verb::DeleteCollection) => self.delete_collection(&call, body).await,
            (_, Verb::Other) => Err(not_supported(served, "")),
        }
    }

    fn get(&self, call: &Call<'_>) -> Result<Response<Body>, Failure> {
        self.check_known_version(call.query)?;
        if call.form.view == View::Whole {
            let text = self.api.get_text(call.served, call.namespace, call.name)?;
            return Ok(answer::bytes(StatusCode::OK, call.form, text));
        }
        let object = self.api.get(call.served, call.namespace, call.name)?;
        Ok(self.object(StatusCode::OK, call, &object))
    }

    /// A reader who knows more than we do is told to come back later.
    fn check_known_version(&self, query: &Query) -> Result<(), Failure> {
        let text = query.get("resourceVersion").unwrap_or_default();
        if text.is_empty() {
            return Ok(());
        }
        let asked = crate::request::query::parse_uint(text)
            .map_err(|why| crate::verbs::plain_failure(format!("resourceVersion: {why}")))?;
        let current = self.api.store().revision();
        if asked > current { Err(crate::verbs::too_large_version(asked, current)) } else { Ok(()) }
    }

    async fn list(&self, call: &Call<'_>) -> Result<Response<Body>, Failure> {
        let parameters = call.query.list()?;
        let selector = Selector::parse(call.served, &parameters.label_selector, &parameters.field_selector)?;
        parameters.check()?;
        let page = self.api.list(call.served, call.in_namespace, &selector, &Paging::from(&parameters)).await?;
        answer::list(call.form, &self.api, call.include, page)
    }

    async fn watch(&self, call: &Call<'_>, asked: &Asked) -> Result<Response<Body>, Failure> {
        let mut parameters = call.query.list()?;
        parameters.watch = true;
        if !call.name.is_empty() {
            parameters.field_selector = format!("metadata.name={}", call.name);
        }
        let selector = Selector::parse(call.served, &parameters.label_selector, &parameters.field_selector)?;
        parameters.check()?;
        let options = WatchOptions::read(&parameters, selector)?;
        self.api.check_watch_version(&parameters)?;
        let watching = self.api.watch(call.served, call.in_namespace, options).await?;
        let watcher = self.metrics.watcher(&asked.label());
        Ok(stream::watch(&self.api, call.served, call.form, call.include, watching, watcher))
    }

    async fn create(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        let options = call.options("CreateOptions", None)?;
        let text = read::body(call.headers, body).await?;
        let create = async {
            let document = read::object(call.served, call.headers, &text)?;
            self.api.create(call.served, call.namespace, document, &options).await
        };
        let written = self.aside(call, text.len(), create).await?;
        Ok(self.written(call, &written))
    }

    async fn update(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        if call.name.is_empty() {
            return Err(Failure::bad_request("name must be provided"));
        }
        let options = call.options("UpdateOptions", None)?;
        let text = read::body(call.headers, body).await?;
        let update = async {
            let document = read::object(call.served, call.headers, &text)?;
            self.api.update(call.served, call.namespace, call.name, call.part(), document, &options).await
        };
        let written = self.aside(call, text.len(), update).await?;
        Ok(self.written(call, &written))
    }

    async fn patch(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        read::check_patch_type(call.served, call.headers)?;
        if call.name.is_empty() {
            return Err(Failure::bad_request("name must be provided"));
        }
        let options = call.options("PatchOptions", Some(read::is_apply(call.headers)))?;
        let text = read::body(call.headers, body).await?;
        let patched = async {
            let patch = read::patch(call.headers, &text)?;
            self.api.patch(call.served, call.namespace, call.name, call.part(), &patch, &options).await
        };
        let written = self.aside(call, text.len(), patched).await?;
        Ok(self.written(call, &written))
    }

    /// Does work on a body of that size. If it may take long it is done on a thread of its own, so that it holds up no other
    /// request; of such work only some is done at once.
    async fn aside<T>(&self, call: &Call<'_>, size: usize, work: impl Future<Output = T>) -> T {
        let runtime = Handle::current();
        // Definitions are small, but what they say may be costly to check; so is what rules with loops say of an object.
        let heavy = size > HEAVY
            || call.served.resource.plural == "customresourcedefinitions"
            || call.served.version().rules.may_take_long();
        // Tests with paused time have one thread, and nobody else to hold up.
        if !heavy || runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return work.await;
        }
        let _turn = self.heavy.acquire().await;
        tokio::task::block_in_place(|| runtime.block_on(work))
    }

    async fn delete(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        let options = self.delete_options(call, body).await?;
        let deleted = self.api.delete(call.served, call.namespace, call.name, &options).await?;
        Ok(self.object(StatusCode::OK, call, &deleted.answer(call.served)))
    }

    async fn delete_collection(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        let parameters = call.query.list()?;
        let selector = Selector::parse(call.served, &parameters.label_selector, &parameters.field_selector)?;
        parameters.check()?;
        let options = self.delete_options(call, body).await?;
        let paging = Paging::from(&parameters);
        let page = self.api.delete_collection(call.served, call.in_namespace, &selector, &paging, &options).await?;
        answer::list(call.form, &self.api, call.include, page)
    }

    async fn delete_options(&self, call: &Call<'_>, body: Body) -> Result<DeleteOptions, Failure> {
        let text = read::body(call.headers, body).await?;
        let body = read::delete_options(call.headers, &text)?;
        DeleteOptions::read(body.as_ref(), call.query)
    }

    async fn scale(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        let scale = match call.verb {
            Verb::Get => self.api.get_scale(call.served, call.namespace, call.name)?,
            Verb::Update => {
                let options = call.options("UpdateOptions", None)?;
                let text = read::body(call.headers, body).await?;
                let wanted = read::scale(call.headers, &text)?;
                self.api.update_scale(call.served, call.namespace, call.name, &wanted, &options).await?
            }
            _ => {
                read::check_patch_type(call.served, call.headers)?;
                let options = call.options("PatchOptions", Some(read::is_apply(call.headers)))?;
                let text = read::body(call.headers, body).await?;
                let patch = read::patch(call.headers, &text)?;
                self.api.patch_scale(call.served, call.namespace, call.name, &patch, &options).await?
            }
        };
        let columns = builtins::scale_columns();
        Ok(answer::object(StatusCode::OK, call.form, &self.api, None, &columns, call.include, &scale))
    }

    async fn token(&self, call: &Call<'_>, body: Body) -> Result<Response<Body>, Failure> {
        let auth = self.auth.as_ref().ok_or_else(Failure::no_such_path)?;
        let text = read::body(call.headers, body).await?;
        let document = read::document(call.headers, &text, "TokenRequest")?;
        let answered = auth.issue_token(call.namespace, call.name, &document.value)?;
        Ok(answer::value(StatusCode::CREATED, call.form, &answered))
    }

    async fn review(
        &self,
        review: &ReviewKind,
        target: &Target,
        verb: Verb,
        head: &Parts,
        form: Form,
        body: Body,
    ) -> Result<Response<Body>, Failure> {
        if target.name.is_some() || review.namespaced != target.namespace.is_some() {
            return Err(Failure::no_such_path());
        }
        if verb != Verb::Create {
            return Err(method_not_allowed());
        }
        let auth = self.auth.as_ref().ok_or_else(Failure::no_such_path)?;
        let text = read::body(&head.headers, body).await?;
        let document = read::document(&head.headers, &text, review.kind)?;
        let namespace = target.namespace.as_deref().unwrap_or_default();
        let answered = auth.review(review, namespace, &document.value, auth::caller(&head.extensions))?;
        Ok(answer::value(StatusCode::CREATED, form, &answered))
    }

    fn object(&self, code: StatusCode, call: &Call<'_>, object: &Value) -> Response<Body> {
        answer::object(
            code,
            call.form,
            &self.api,
            Some(call.served),
            &call.served.version().columns,
            call.include,
            object,
        )
    }

    fn written(&self, call: &Call<'_>, written: &Written) -> Response<Body> {
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        let mut response = self.object(code, call, &written.object);
        answer::warn(&mut response, &written.warnings);
        response
    }
}

impl Call<'_> {
    fn part(&self) -> Part {
        match self.subresource {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            _ => Part::Main,
        }
    }

    fn options(&self, kind: &str, apply: Option<bool>) -> Result<WriteOptions, Failure> {
        let WriteParameters { dry_run, field_manager, field_validation, force } = self.query.write(kind, apply)?;
        let manager = if field_manager.is_empty() { manager_of(self.headers) } else { field_manager };
        Ok(WriteOptions { manager, dry_run, field_validation, force })
    }
}

fn is_built_in_group(catalogue: &Catalogue, group: &str) -> bool {
    group.is_empty()
        || catalogue.served().any(|served| !served.resource.custom && served.group() == group)
        || auth::REVIEWS.iter().any(|review| review.group == group)
}

/// Who does not say who they are is known by their program's name.
fn manager_of(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let name = agent.split('/').next().unwrap_or_default();
    name.chars().filter(|c| !c.is_control()).take(MANAGER).collect()
}

fn accepted(head: &Parts, watching: bool) -> Option<Form> {
    let clauses: Vec<&str> = head.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    negotiate(&clauses.join(","), watching)
}

/// People who look with their own eyes get text for eyes.
fn is_pretty(query: &Query, headers: &HeaderMap) -> bool {
    query.switch("pretty").unwrap_or_else(|| {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        ["curl", "Wget", "Mozilla/5.0"].iter().any(|reader| agent.starts_with(reader))
    })
}

/// The router of built-ins looks first, and knows no wildcards but the widest.
fn is_foreign_to_built_ins(asked: &Asked, head: &Parts) -> bool {
    let built_in = asked.served.as_ref().is_some_and(|served| !served.resource.custom);
    let known = ["*/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    let mut clauses = head
        .headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(media_type)
        .filter(|media| !media.is_empty())
        .peekable();
    built_in && clauses.peek().is_some() && !clauses.any(|media| known.contains(&media))
}

fn refuse_accept(asked: &Asked, head: &Parts) -> Failure {
    if is_foreign_to_built_ins(asked, head) {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        let mut failure = Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        failure.details = Some(Box::default());
        return failure;
    }
    not_acceptable(asked.verb == Verb::Watch && accepted(head, false).is_some())
}

enum Refusal {
    /// As if there were nothing at all.
    Nowhere,
    Failure(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Whether this can be asked of the resource at all.
fn check_route(served: &Served, target: &Target, verb: Verb) -> Result<(), Refusal> {
    let namespaced = served.resource.scope == Scope::Namespaced;
    let in_namespace = target.namespace.is_some();
    if served.resource.custom {
        if in_namespace && !namespaced {
            return Err(Refusal::Nowhere);
        }
        if namespaced && !in_namespace && !matches!(verb, Verb::List | Verb::Watch) {
            return Err(Refusal::Nowhere);
        }
        return check_custom_route(served, target, verb).map_err(Refusal::Failure);
    }
    if target.too_deep || (in_namespace && !namespaced) {
        return Err(Failure::no_such_path().into());
    }
    let across = namespaced && !in_namespace;
    if across && target.name.is_some() {
        return Err(Failure::no_such_path().into());
    }
    let allowed = match target.subresource.as_deref() {
        None if across => matches!(verb, Verb::List | Verb::Watch),
        None if target.name.is_some() => {
            matches!(verb, Verb::Get | Verb::Watch | Verb::Update | Verb::Patch | Verb::Delete)
        }
        None if served.resource.plural == "namespaces" => matches!(verb, Verb::List | Verb::Watch | Verb::Create),
        None => matches!(verb, Verb::List | Verb::Watch | Verb::Create | Verb::DeleteCollection),
        Some("status") if served.version().status => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
        Some("finalize") if served.resource.plural == "namespaces" => verb == Verb::Update,
        Some("token") if served.resource.plural == "serviceaccounts" => verb == Verb::Create,
        Some(_) => return Err(Failure::no_such_path().into()),
    };
    if allowed { Ok(()) } else { Err(method_not_allowed().into()) }
}

fn check_custom_route(served: &Served, target: &Target, verb: Verb) -> Result<(), Failure> {
    let name = target.name.as_deref().unwrap_or_default();
    let version = served.version();
    match target.subresource.as_deref() {
        _ if target.too_deep => Err(not_found(served, name)),
        None if verb == Verb::Other => Err(not_supported(served, "")),
        None => Ok(()),
        Some(subresource) => {
            let there = match subresource {
                "status" => version.status,
                "scale" => version.scale.is_some(),
                _ => false,
            };
            match verb {
                _ if !there => Err(not_found(served, name)),
                Verb::Get | Verb::Update | Verb::Patch => Ok(()),
                other => Err(not_supported(served, other.name())),
            }
        }
    }
}

/// As the routes of built-ins say it.
fn method_not_allowed() -> Failure {
    let message = "the server does not allow this method on the requested resource";
    let mut failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
    failure.details = Some(Box::default());
    failure
}

/// As custom resources say it.
fn not_supported(served: &Served, verb: &str) -> Failure {
    let subject = qualified(served);
    let message = format!("{verb} is not supported on resources of kind \"{subject}\"");
    let mut failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
    failure.details = Some(Box::new(Details {
        group: subject.group.to_owned(),
        kind: subject.name.to_owned(),
        ..Details::default()
    }));
    failure
}
