//! From the JSON of a schema to the tree that the rest works with.

use serde_json::{Map, Value};

use super::format::Format;
use super::node::{Additional, Kind, Limits, ListType, MapType, Node, Pattern, Rule};
use super::pattern;

/// Reads a schema. What is not understood is left out: the checks of `structural` and `spec` come before.
pub(crate) fn node(schema: &Value) -> Node {
    Props::of(schema).map(Props::node).unwrap_or_default()
}

/// The fields of a schema, read leniently: what has the wrong type is as if it were not there.
#[derive(Debug, Clone, Copy)]
pub struct Props<'a>(pub &'a Map<String, Value>);

impl<'a> Props<'a> {
    /// Of an object.
    pub fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// A string; empty if it is not there.
    pub fn text(self, key: &str) -> &'a str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// A boolean; false if it is not there.
    pub fn flag(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn float(self, key: &str) -> Option<f64> {
        self.0.get(key).and_then(Value::as_f64)
    }

    pub(crate) fn integer(self, key: &str) -> Option<i64> {
        self.0.get(key).and_then(Value::as_i64)
    }

    /// A value that is not null.
    pub fn given(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// A schema below.
    pub fn schema(self, key: &str) -> Option<Props<'a>> {
        self.0.get(key).and_then(Props::of)
    }

    /// A list of schemas below.
    pub fn schemas(self, key: &str) -> impl Iterator<Item = Props<'a>> {
        self.0.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Props::of)
    }

    /// Named schemas below.
    pub(crate) fn named(self, key: &str) -> impl Iterator<Item = (&'a str, Props<'a>)> {
        let fields = self.0.get(key).and_then(Value::as_object).into_iter().flatten();
        fields.filter_map(|(name, schema)| Some((name.as_str(), Props::of(schema)?)))
    }

    /// The strings of a list.
    pub fn texts(self, key: &str) -> impl Iterator<Item = &'a str> {
        self.0.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn list_type(self) -> Option<&'a str> {
        self.given("x-kubernetes-list-type").and_then(Value::as_str)
    }

    pub(crate) fn map_type(self) -> Option<&'a str> {
        self.given("x-kubernetes-map-type").and_then(Value::as_str)
    }

    pub(crate) fn rules(self) -> Vec<Rule> {
        self.schemas("x-kubernetes-validations")
            .map(|rule| Rule {
                rule: rule.text("rule").to_owned(),
                message: rule.text("message").to_owned(),
                message_expression: rule.text("messageExpression").to_owned(),
                reason: rule.given("reason").and_then(Value::as_str).map(str::to_owned),
                field_path: rule.text("fieldPath").to_owned(),
                optional_old_self: rule.given("optionalOldSelf").and_then(Value::as_bool),
            })
            .collect()
    }

    fn node(self) -> Node {
        let mut node = Node {
            kind: Kind::named(self.text("type")),
            int_or_string: self.flag("x-kubernetes-int-or-string"),
            nullable: self.flag("nullable"),
            preserve_unknown: self.flag("x-kubernetes-preserve-unknown-fields"),
            resource: self.flag("x-kubernetes-embedded-resource"),
            default: self.given("default").cloned(),
            description: self.text("description").to_owned(),
            properties: self.named("properties").map(|(name, schema)| (name.to_owned(), schema.node())).collect(),
            additional: match self.given("additionalProperties") {
                Some(Value::Bool(allowed)) => Some(Additional::Any(*allowed)),
                Some(Value::Object(schema)) => Some(Additional::Of(Box::new(Props(schema).node()))),
                _ => None,
            },
            items: self.schema("items").map(|items| Box::new(items.node())),
            list_type: self.list_type().and_then(|name| match name {
                "atomic" => Some(ListType::Atomic),
                "set" => Some(ListType::Set),
                "map" => Some(ListType::Map),
                _ => None,
            }),
            list_map_keys: self.texts("x-kubernetes-list-map-keys").map(str::to_owned).collect(),
            map_type: self.map_type().and_then(|name| match name {
                "atomic" => Some(MapType::Atomic),
                "granular" => Some(MapType::Granular),
                _ => None,
            }),
            rules: self.rules(),
            patch_strategy: self.text("x-kubernetes-patch-strategy").to_owned(),
            patch_merge_key: self.text("x-kubernetes-patch-merge-key").to_owned(),
            limits: self.limits(),
            below: super::node::Below::default(),
        };
        node.look_below();
        node
    }

    fn limits(self) -> Limits {
        let format = self.text("format");
        Limits {
            maximum: self.float("maximum"),
            exclusive_maximum: self.flag("exclusiveMaximum"),
            minimum: self.float("minimum"),
            exclusive_minimum: self.flag("exclusiveMinimum"),
            multiple_of: self.float("multipleOf"),
            max_length: self.integer("maxLength"),
            min_length: self.integer("minLength"),
            pattern: match self.text("pattern") {
                "" => None,
                source => pattern::compile(source).ok().map(|regex| Pattern { source: source.to_owned(), regex }),
            },
            format: format.to_owned(),
            checked_format: Format::named(format),
            max_items: self.integer("maxItems"),
            min_items: self.integer("minItems"),
            unique_items: self.flag("uniqueItems"),
            max_properties: self.integer("maxProperties"),
            min_properties: self.integer("minProperties"),
            required: self.texts("required").map(str::to_owned).collect(),
            values: self.0.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            all_of: self.schemas("allOf").map(Props::node).collect(),
            any_of: self.schemas("anyOf").map(Props::node).collect(),
            one_of: self.schemas("oneOf").map(Props::node).collect(),
            not: self.schema("not").map(|not| Box::new(not.node())),
        }
    }
}
