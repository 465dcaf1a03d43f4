//! The scale subresource: how many, seen and set in one form whatever the resource.

use http::StatusCode;
use schema::object;
use serde_json::{Map, Value, json};

use super::decode::cannot_be_patched;
use super::update::{Attempt, Before, check_name};
use super::{Api, Patch, WriteOptions, modified, not_found, qualified_kind};
use crate::catalogue::Served;
use crate::patch;
use crate::request::body::Document;
use crate::resource::{Part, Scale};
use crate::status::{Failure, FieldError, wrong_type};

impl Api {
    /// `GET …/scale`.
    pub fn get_scale(&self, served: &Served, namespace: &str, name: &str) -> Result<Value, Failure> {
        let scale = declared(served, name)?;
        let object = self.get(served, namespace, name)?;
        if at(&object, &scale.spec_replicas).is_none() {
            return Err(Failure::internal(format!("the spec replicas field {:?} does not exist", scale.spec_replicas)));
        }
        Ok(view(scale, &object))
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
        self.change_scale(served, namespace, name, options, |scale| {
            let patched = match patch {
                Patch::Json(patch) => patch::json(scale, &patch.value),
                Patch::Merge(patch) | Patch::Strategic(patch) => patch::merge(scale, &patch.value),
                Patch::Apply(text) => {
                    let intent = Document::yaml(text)
                        .map_err(|why| Failure::bad_request(format!("error decoding YAML: {why}")))?;
                    patch::merge(scale, &intent.value)
                }
            }?;
            match wrong_replicas(&patched) {
                Some(why) => Err(cannot_be_patched(&patched, &why)),
                None => Ok(patched),
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

/// What is wrong with the number, if anything.
fn wrong_replicas(scale: &Value) -> Option<String> {
    let replicas = scale.pointer("/spec/replicas").filter(|replicas| !replicas.is_null())?;
    let fits = replicas.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    (!fits).then(|| wrong_type("spec.replicas", "an integer of 32 bits", replicas))
}

fn with_replicas(served: &Served, scale: &Scale, before: &Before, wanted: &Value) -> Result<Value, Failure> {
    let replicas = wanted.pointer("/spec/replicas").filter(|replicas| !replicas.is_null());
    let replicas = replicas.cloned().unwrap_or(Value::from(0));
    let Some(count) = replicas.as_i64() else {
        let why = wrong_replicas(wanted).unwrap_or_default();
        let message = format!("Scale in version \"v1\" cannot be handled as a Scale: {why}");
        return Err(Failure::new(StatusCode::BAD_REQUEST, "BadRequest", message));
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

/// Collects what is wrong at the places that a scale subresource points at.
pub(super) fn check(scale: &Scale, object: &Value, part: Part) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if part != Part::Status {
        errors.extend(check_replicas(&scale.spec_replicas, object));
    }
    errors.extend(check_replicas(&scale.status_replicas, object));
    if let Some(path) = &scale.label_selector {
        let wrong = match find(object, path) {
            Ok(found) => found.filter(|found| !found.is_string()),
            Err(above) => Some(above),
        };
        let why = "must be a string, since the scale subresource shows it";
        errors.extend(wrong.map(|wrong| FieldError::invalid(path, wrong.clone(), why)));
    }
    errors
}

fn check_replicas(path: &str, object: &Value) -> Option<FieldError> {
    let (Ok(Some(found)) | Err(found)) = find(object, path) else { return None };
    let why = match found.as_i64().filter(|_| find(object, path).is_ok()) {
        None => "must be an integer, since the scale subresource shows it".to_owned(),
        Some(number) if number < 0 => "should be a non-negative integer".to_owned(),
        Some(number) if number > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        Some(_) => return None,
    };
    Some(FieldError::invalid(path, found.clone(), why))
}

/// What is at a path; `Err` is what is above it and has no fields.
fn find<'o>(object: &'o Value, path: &str) -> Result<Option<&'o Value>, &'o Value> {
    let mut place = object;
    for step in path.trim_start_matches('.').split('.') {
        let Value::Object(fields) = place else { return Err(place) };
        match fields.get(step) {
            Some(below) => place = below,
            None => return Ok(None),
        }
    }
    Ok(Some(place))
}

fn at<'o>(object: &'o Value, path: &str) -> Option<&'o Value> {
    find(object, path).ok().flatten()
}

fn view(scale: &Scale, object: &Value) -> Value {
    let at = |path: &str| at(object, path).cloned();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scale_points_at_is_checked() {
        let scale = Scale {
            spec_replicas: ".spec.r".to_owned(),
            status_replicas: ".status.r.n".to_owned(),
            label_selector: Some(".status.sel".to_owned()),
        };
        let integer = "must be an integer, since the scale subresource shows it";
        for (object, sentences) in [
            (json!({}), vec![]),
            (json!({"spec": {"r": "x"}}), vec![format!(".spec.r: Invalid value: \"x\": {integer}")]),
            (
                json!({"spec": {"r": -1}}),
                vec![".spec.r: Invalid value: -1: should be a non-negative integer".to_owned()],
            ),
            (
                json!({"spec": {"r": 3_000_000_000_i64}}),
                vec![".spec.r: Invalid value: 3000000000: should be less than or equal to 2147483647".to_owned()],
            ),
            (json!({"spec": {"r": 1.5}}), vec![format!(".spec.r: Invalid value: 1.5: {integer}")]),
            (json!({"spec": {"r": null}}), vec![format!(".spec.r: Invalid value: \"null\": {integer}")]),
            (json!({"spec": 5}), vec![format!(".spec.r: Invalid value: 5: {integer}")]),
            (
                json!({"status": {"r": {"n": []}, "sel": {}}}),
                vec![
                    format!(".status.r.n: Invalid value: []: {integer}"),
                    ".status.sel: Invalid value: {}: must be a string, since the scale subresource shows it".to_owned(),
                ],
            ),
        ] {
            let errors: Vec<String> = check(&scale, &object, Part::Main).iter().map(ToString::to_string).collect();
            assert_eq!(errors, sentences);
        }
        assert_eq!(check(&scale, &json!({"spec": {"r": -1}}), Part::Status), []);
    }
}
