//! The scale subresource: how many, seen and set in one form whatever the resource.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::update::{Attempt, Before, check_name};
use super::{Api, Patch, WriteOptions, modified, not_found, qualified_kind};
use crate::catalogue::Served;
use crate::object;
use crate::patch;
use crate::request::body::Document;
use crate::resource::{Part, Scale};
use crate::status::{Failure, FieldError};

impl Api {
    /// `GET …/scale`.
    pub fn get_scale(&self, served: &Served, namespace: &str, name: &str) -> Result<Value, Failure> {
        let scale = declared(served, name)?;
        Ok(view(scale, &self.get(served, namespace, name)?))
    }

    /// `PUT …/scale`.
    pub async fn update_scale(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        wanted: &Value,
        options: &WriteOptions,
    ) -> Result<Value, Failure> {
        check_name(name, wanted)?;
        self.change_scale(served, namespace, name, options, |_| Ok(wanted.clone())).await
    }

    /// `PATCH …/scale`.
    pub async fn patch_scale(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, Failure> {
        self.change_scale(served, namespace, name, options, |scale| match patch {
            Patch::Json(patch) => patch::json(scale, &patch.value),
            Patch::Merge(patch) | Patch::Strategic(patch) => patch::merge(scale, &patch.value),
            Patch::Apply(text) => {
                let intent = Document::yaml(text).map_err(|why| {
                    Failure::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
                })?;
                patch::merge(scale, &intent.value)
            }
        })
        .await
    }

    async fn change_scale(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        options: &WriteOptions,
        change: impl Fn(&Value) -> Result<Value, Failure> + Send,
    ) -> Result<Value, Failure> {
        let scale = declared(served, name)?;
        loop {
            let before = self.before(served, namespace, name)?.ok_or_else(|| not_found(served, name))?;
            let shown = view(scale, &before.shown);
            let wanted = change(&shown)?;
            let version = object::resource_version(&wanted);
            if !version.is_empty() && version != object::resource_version(&before.shown) {
                return Err(modified(served, name));
            }
            let new = with_replicas(served, scale, &before, &wanted)?;
            match self.overwrite_scale(served, &before, new, options).await? {
                Attempt::Done(object) => return Ok(view(scale, &object)),
                Attempt::Raced if !version.is_empty() && version != object::resource_version(&shown) => {
                    return Err(modified(served, name));
                }
                Attempt::Raced => {}
            }
        }
    }

    async fn overwrite_scale(
        &self,
        served: &Served,
        before: &Before,
        new: Value,
        options: &WriteOptions,
    ) -> Result<Attempt, Failure> {
        self.overwrite_as(served, Part::Main, before, new, options, super::update::Record::Update, "scale").await
    }
}

fn declared<'a>(served: &'a Served, name: &str) -> Result<&'a Scale, Failure> {
    served.version().scale.as_ref().ok_or_else(|| not_found(served, name))
}

fn with_replicas(served: &Served, scale: &Scale, before: &Before, wanted: &Value) -> Result<Value, Failure> {
    let replicas = wanted.pointer("/spec/replicas").cloned().unwrap_or(Value::from(0));
    let Some(count) = replicas.as_i64() else {
        return Err(Failure::new(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal into Go struct field \
             ScaleSpec.spec.replicas of type int32",
        ));
    };
    if count < 0 {
        let error = FieldError::invalid(scale.spec_replicas.as_str(), count, "should be a non-negative integer");
        let name = object::name(&before.shown);
        return Err(Failure::invalid(qualified_kind(served), name, &[error]));
    }
    let mut new = before.shown.clone();
    let mut place = &mut new;
    for step in scale.spec_replicas.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step];
    }
    *place = count.into();
    Ok(new)
}

fn view(scale: &Scale, object: &Value) -> Value {
    let at = |path: &str| {
        let mut value = object;
        for step in path.trim_start_matches('.').split('.') {
            value = value.get(step)?;
        }
        Some(value.clone())
    };
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object::meta(object).and_then(|meta| meta.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(replicas) = at(&scale.spec_replicas).filter(|replicas| *replicas != 0) {
        spec.insert("replicas".to_owned(), replicas);
    }
    let mut status = json!({"replicas": at(&scale.status_replicas).unwrap_or(Value::from(0))});
    if let Some(selector) = scale.label_selector.as_deref().and_then(at).filter(|selector| *selector != "") {
        status["selector"] = selector;
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    })
}
