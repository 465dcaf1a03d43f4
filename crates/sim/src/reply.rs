//! Answers, and the Redfish error body.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::personality::{Messages, Refusal};

/// A refusal on its way to becoming an error body.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    id: &'static str,
    text: String,
    args: Vec<String>,
    property: Option<String>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, id: &'static str, text: impl Into<String>) -> Self {
        Self { status, id, text: text.into(), args: Vec::new(), property: None, allow: None }
    }

    pub(crate) fn bad_request(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, id, text)
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args = args.iter().map(|&a| a.to_owned()).collect();
        self
    }

    /// The property that it is about, as a JSON pointer.
    pub(crate) fn about(mut self, pointer: impl Into<String>) -> Self {
        self.property = Some(pointer.into());
        self
    }

    pub(crate) fn not_found(path: &str) -> Self {
        let text = format!("The requested resource of type Resource named '{path}' was not found.");
        Self::new(StatusCode::NOT_FOUND, "ResourceMissingAtURI", text).args(&[path])
    }

    pub(crate) fn not_allowed(allow: &'static str) -> Self {
        let mut problem = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "OperationNotAllowed",
            "The HTTP method is not allowed on this resource.",
        );
        problem.allow = Some(allow);
        problem
    }

    pub(crate) fn unknown_property(name: &str) -> Self {
        let text = format!("The property {name} is not in the list of valid properties for the resource.");
        Self::bad_request("PropertyUnknown", text).args(&[name]).about(format!("#/{name}"))
    }

    pub(crate) fn not_writable(name: &str) -> Self {
        let text = format!("The property {name} is a read only property and cannot be assigned a value.");
        Self::bad_request("PropertyNotWritable", text).args(&[name]).about(format!("#/{name}"))
    }

    pub(crate) fn not_in_list(value: &str, property: &str) -> Self {
        let text = format!("The value '{value}' for the property {property} is not in the list of acceptable values.");
        Self::bad_request("PropertyValueNotInList", text).args(&[value, property]).about(format!("#/{property}"))
    }

    pub(crate) fn wrong_type(value: &Value, property: &str) -> Self {
        let text = format!("The value '{value}' for the property {property} is of a different type than it accepts.");
        Self::bad_request("PropertyValueTypeError", text)
            .args(&[&value.to_string(), property])
            .about(format!("#/{property}"))
    }

    pub(crate) fn missing_parameter(action: &str, name: &str) -> Self {
        let text = format!("The action {action} requires the parameter {name} to be present in the request body.");
        Self::bad_request("ActionParameterMissing", text).args(&[action, name]).about(format!("#/{name}"))
    }

    pub(crate) fn unknown_parameter(action: &str, name: &str) -> Self {
        let text = format!("The action {action} was submitted with the invalid parameter {name}.");
        Self::bad_request("ActionParameterUnknown", text).args(&[action, name]).about(format!("#/{name}"))
    }

    pub(crate) fn parameter_not_in_list(value: &str, name: &str, action: &str) -> Self {
        let text = format!(
            "The value '{value}' for the parameter {name} in the action {action} is not in the list of acceptable values."
        );
        Self::bad_request("ActionParameterValueNotInList", text).args(&[value, name, action]).about(format!("#/{name}"))
    }

    pub(crate) fn body(&self, rules: &Messages) -> Value {
        let id = if self.id.contains('.') { self.id.to_owned() } else { format!("{}.{}", rules.base, self.id) };
        let mut info = json!({
            "@odata.type": "#Message.v1_1_1.Message",
            "MessageId": id,
            "Message": self.text,
            "MessageArgs": self.args,
            "Severity": "Critical",
            "MessageSeverity": "Critical",
            "Resolution": "Correct the request or wait, and try again.",
        });
        if let Some(property) = &self.property {
            info["RelatedProperties"] = json!([property]);
        }
        let mut error = json!({
            "message": rules.summary,
            "@Message.ExtendedInfo": if rules.single { info } else { json!([info]) },
        });
        if let Some(code) = rules.code {
            error["code"] = json!(code);
        }
        json!({ "error": error })
    }

    pub(crate) fn into_reply(self, rules: &Messages) -> Reply {
        let mut reply = Reply::json(self.status, self.body(rules));
        if let Some(allow) = self.allow {
            reply = reply.header(ALLOW, allow);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            reply = reply.header(RETRY_AFTER, "10");
        }
        reply
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, refusal.id, refusal.text)
    }
}

#[derive(Debug)]
pub(crate) enum Body {
    Empty,
    Json(Value),
    Raw(Bytes, &'static str),
}

/// An answer before it is put into bytes.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Body,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reply {
    pub(crate) fn json(status: StatusCode, body: Value) -> Self {
        Self { status, body: Body::Json(body), headers: Vec::new() }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::json(StatusCode::OK, body)
    }

    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, body: Body::Empty, headers: Vec::new() }
    }

    pub(crate) fn raw(status: StatusCode, body: Bytes, content_type: &'static str) -> Self {
        Self { status, body: Body::Raw(body, content_type), headers: Vec::new() }
    }

    /// 200 with a message of success, as several vendors answer a PATCH.
    pub(crate) fn success(rules: &Messages) -> Self {
        Self::ok(json!({
            "@Message.ExtendedInfo": [{
                "MessageId": format!("{}.Success", rules.base),
                "Message": "The request completed successfully.",
                "MessageArgs": [],
                "Severity": "OK",
                "Resolution": "None",
            }],
        }))
    }

    /// Values that cannot be a header are left out: they come from our own texts.
    pub(crate) fn header(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
            self.headers.push((name, value));
        }
        self
    }

    pub(crate) fn into_response(self, with_body: bool) -> Response<Bytes> {
        let (bytes, content_type) = match self.body {
            Body::Empty => (Bytes::new(), None),
            Body::Json(value) => (Bytes::from(value.to_string()), Some("application/json;charset=utf-8")),
            Body::Raw(bytes, content_type) => (bytes, Some(content_type)),
        };
        let mut response = Response::new(if with_body { bytes } else { Bytes::new() });
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert("OData-Version", HeaderValue::from_static("4.0"));
        headers.insert("Cache-Control", HeaderValue::from_static("no-cache"));
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        headers.extend(self.headers.into_iter().map(|(name, value)| (Some(name), value)));
        response
    }
}
