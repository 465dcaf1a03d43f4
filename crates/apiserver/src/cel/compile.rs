//! The rules of a schema, compiled where they stand.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::schema::{Kind, ListType, Node, Rule};
use crate::status::{FieldError, FieldFault};

use super::ast;
use super::checker;
use super::decl::{Decl, count};
use super::estimate;
use super::eval::Program;
use super::field_path;
use super::parser;
use super::types::Type;

/// What one rule may cost by estimate.
const RULE_LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost by estimate.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// As many rules are named when all together are too much.
const NAMED: usize = 4;

/// A place of a schema with rules here or below.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) decl: Arc<Decl>,
    /// The type as errors show it.
    pub(super) kind: &'static str,
    pub(super) rules: Vec<CompiledRule>,
    pub(super) properties: BTreeMap<String, Site>,
    pub(super) values: Option<Box<Site>>,
    pub(super) items: Option<Box<Site>>,
    /// The keys of the items of a list of type map, by which old items are found.
    pub(super) keys: Option<Vec<String>>,
}

#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) program: Program,
    pub(super) mentions_old_self: bool,
    pub(super) optional_old_self: bool,
    /// The rule's message, or the rule.
    pub(super) name: String,
    pub(super) message: String,
    pub(super) message_expression: Option<(Program, String)>,
    pub(super) reason: Reason,
    /// Below the place of the rule; empty is the place itself.
    pub(super) field_path: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl Reason {
    fn named(name: Option<&str>) -> Self {
        match name {
            Some("FieldValueForbidden") => Self::Forbidden,
            Some("FieldValueRequired") => Self::Required,
            Some("FieldValueDuplicate") => Self::Duplicate,
            _ => Self::Invalid,
        }
    }
}

/// `Ok(None)` if there are no rules.
pub(super) fn compile(root: &Node, path: &str) -> Result<Option<Site>, Vec<FieldError>> {
    if !root.has_rules() {
        return Ok(None);
    }
    let mut compiler = Compiler { errors: Vec::new(), total: 0, expensive: Vec::new() };
    let decl = Decl::read(root).map(Arc::new);
    let site = compiler.site(root, decl.as_ref(), path, &Context { times: Some(1), uncorrelatable: None });
    compiler.judge_total(path);
    if compiler.errors.is_empty() { Ok(site) } else { Err(compiler.errors) }
}

/// What is above a place.
#[derive(Clone)]
struct Context {
    /// How often the place can be in an object; `None` is not limited.
    times: Option<u64>,
    /// The list whose items have no old items.
    uncorrelatable: Option<String>,
}

struct Compiler {
    errors: Vec<FieldError>,
    total: u64,
    /// The most expensive rules, the most expensive first.
    expensive: Vec<(u64, String)>,
}

impl Compiler {
    fn site(&mut self, node: &Node, decl: Option<&Arc<Decl>>, path: &str, context: &Context) -> Option<Site> {
        if !node.has_rules() {
            return None;
        }
        let below = |limit: Option<i64>| Context {
            times: context.times.and_then(|times| limit.map(|limit| times.saturating_mul(count(limit)))),
            uncorrelatable: context.uncorrelatable.clone(),
        };
        let mut properties = BTreeMap::new();
        for (name, property) in &node.properties {
            let decl = child_decl(decl, name, property);
            if let Some(site) = self.site(property, decl.as_ref(), &format!("{path}.properties[{name}]"), context) {
                properties.insert(name.clone(), site);
            }
        }
        let values = node.additional_node().and_then(|values| {
            let decl = inner_decl(decl);
            self.site(
                values,
                decl.as_ref(),
                &format!("{path}.additionalProperties"),
                &below(node.limits.max_properties),
            )
        });
        let items = node.items.as_deref().and_then(|items| {
            let mut context = below(node.limits.max_items);
            if node.list_type != Some(ListType::Map) && context.uncorrelatable.is_none() {
                context.uncorrelatable = Some(path.to_owned());
            }
            self.site(items, inner_decl(decl).as_ref(), &format!("{path}.items"), &context)
        });
        let rules = self.rules(node, decl, path, context);
        Some(Site {
            decl: Arc::clone(decl?),
            kind: node.kind.map_or("", Kind::name),
            rules,
            properties,
            values: values.map(Box::new),
            items: items.map(Box::new),
            keys: (node.list_type == Some(ListType::Map)).then(|| node.list_map_keys.clone()),
        })
    }

    fn rules(&mut self, node: &Node, decl: Option<&Arc<Decl>>, path: &str, context: &Context) -> Vec<CompiledRule> {
        if node.rules.is_empty() {
            return Vec::new();
        }
        let path = format!("{path}.x-kubernetes-validations");
        let Some(decl) = decl else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable \
                       to convert structural schema to CEL declarations";
            self.errors.push(FieldError::new(FieldFault::Internal, path, why));
            return Vec::new();
        };
        let mut rules = Vec::new();
        for (index, rule) in node.rules.iter().enumerate() {
            if let Some(mut compiled) = self.rule(rule, decl, &format!("{path}[{index}]"), context) {
                compiled.field_path = field_path::normalized(&rule.field_path, node).unwrap_or_default();
                rules.push(compiled);
            }
        }
        rules
    }

    fn rule(&mut self, rule: &Rule, decl: &Arc<Decl>, path: &str, context: &Context) -> Option<CompiledRule> {
        if rule.rule.trim().is_empty() {
            return None;
        }
        let optional = rule.optional_old_self.unwrap_or(false);
        let compiled = expression(&rule.rule, decl, optional, &Type::Bool);
        let rule_path = format!("{path}.rule");
        let compiled = match compiled {
            Ok(compiled) => {
                let times = context.times.unwrap_or_else(|| decl.most_in_a_request());
                let cost = compiled.cost.saturating_mul(times);
                self.judge_cost("estimated rule cost", cost, &rule_path);
                Some(compiled)
            }
            Err(Wrong::Expression(why)) => {
                self.refuse(rule, &rule_path, why);
                None
            }
            Err(Wrong::Type) => {
                self.refuse(rule, &rule_path, "cel expression must evaluate to a bool".to_owned());
                None
            }
        };
        let mentions_old_self = compiled.as_ref().is_some_and(|compiled| compiled.mentions_old_self);
        let message_expression = self.message_expression(rule, decl, path, optional);
        match (&context.uncorrelatable, rule.optional_old_self) {
            (Some(list), _) if mentions_old_self => {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                self.errors.push(FieldError::invalid(rule_path, rule.rule.as_str(), why));
            }
            (_, Some(flag)) if !mentions_old_self => {
                let why = "may not be set if oldSelf is not used in rule";
                self.errors.push(FieldError::invalid(format!("{path}.optionalOldSelf"), flag, why));
            }
            _ => {}
        }
        let message = rule.message.trim();
        Some(CompiledRule {
            program: compiled?.program,
            mentions_old_self,
            optional_old_self: optional,
            name: if rule.message.is_empty() { rule.rule.trim() } else { message }.to_owned(),
            message: if rule.message.is_empty() {
                format!("failed rule: {}", rule.rule.trim())
            } else {
                message.to_owned()
            },
            message_expression,
            reason: Reason::named(rule.reason.as_deref()),
            field_path: String::new(),
        })
    }

    fn message_expression(
        &mut self,
        rule: &Rule,
        decl: &Arc<Decl>,
        path: &str,
        optional: bool,
    ) -> Option<(Program, String)> {
        let source = &rule.message_expression;
        if source.trim().is_empty() {
            return None;
        }
        let path = format!("{path}.messageExpression");
        match expression(source, decl, optional, &Type::Text) {
            Ok(compiled) => {
                self.judge_cost("estimated messageExpression cost", compiled.cost, &path);
                return Some((compiled.program, source.clone()));
            }
            Err(Wrong::Expression(why)) => self.refuse(rule, &path, format!("messageExpression {why}")),
            Err(Wrong::Type) => self.refuse(rule, &path, "messageExpression must evaluate to a string".to_owned()),
        }
        None
    }

    fn refuse(&mut self, rule: &Rule, path: &str, why: String) {
        self.errors.push(FieldError::new(FieldFault::InvalidShown(shown(rule)), path, why));
    }

    fn judge_cost(&mut self, what: &str, cost: u64, path: &str) {
        if cost > RULE_LIMIT {
            self.errors.push(FieldError::forbidden(path, too_expensive(what, cost, RULE_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        let position = self.expensive.partition_point(|(other, _)| *other >= cost);
        if cost > 0 && position < NAMED {
            self.expensive.insert(position, (cost, path.to_owned()));
            self.expensive.truncate(NAMED);
        }
    }

    fn judge_total(&mut self, path: &str) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        for (_, rule) in &self.expensive {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(rule.as_str(), why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(FieldError::forbidden(path, too_expensive(what, self.total, SCHEMA_LIMIT)));
    }
}

/// The declaration of a property: the one that the object's declaration has, so that both are the same type.
fn child_decl(decl: Option<&Arc<Decl>>, name: &str, property: &Node) -> Option<Arc<Decl>> {
    match super::decl::escape(name) {
        Some(escaped) => decl?.field(&escaped).map(|field| Arc::clone(&field.decl)),
        None => Decl::read(property).map(Arc::new),
    }
}

fn inner_decl(decl: Option<&Arc<Decl>>) -> Option<Arc<Decl>> {
    match &decl?.shape {
        super::decl::Shape::List { items: inner, .. } | super::decl::Shape::Map { values: inner } => {
            Some(Arc::clone(inner))
        }
        _ => None,
    }
}

struct Compiled {
    program: Program,
    mentions_old_self: bool,
    cost: u64,
}

/// Why an expression cannot be used.
enum Wrong {
    Expression(String),
    Type,
}

fn expression(source: &str, decl: &Arc<Decl>, optional_old_self: bool, wanted: &Type) -> Result<Compiled, Wrong> {
    let failed = |mut issues: Vec<ast::Issue>| {
        Wrong::Expression(format!("compilation failed: {}", ast::display(source, &mut issues)))
    };
    let parsed = parser::parse(source).map_err(failed)?;
    let own = Type::of(decl);
    let old = if optional_old_self { Type::optional(own.clone()) } else { own.clone() };
    let checked = checker::check(&parsed, &[("self", own), ("oldSelf", old)]).map_err(failed)?;
    if checked.types.get(parsed.expr.id) != Some(wanted) {
        return Err(Wrong::Type);
    }
    let cost = estimate::most(&parsed.expr, &checked, decl);
    let mentions_old_self = checked.mentions_old_self;
    let program = Program::new(parsed.expr, checked)
        .map_err(|why| Wrong::Expression(format!("program instantiation failed: {why}")))?;
    Ok(Compiled { program, mentions_old_self, cost })
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with few digits")]
fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as Go shows one. A pointer's address means nothing to anybody; it is always the same here.
fn shown(rule: &Rule) -> String {
    let pointer = |there: bool| if there { "0xc000000000" } else { "nil" };
    format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, \
         Reason:(*apiextensions.FieldValueErrorReason)({}), FieldPath:{}, OptionalOldSelf:(*bool)({})}}",
        quoted(&rule.rule),
        quoted(&rule.message),
        quoted(&rule.message_expression),
        pointer(rule.reason.is_some()),
        quoted(&rule.field_path),
        pointer(rule.optional_old_self.is_some()),
    )
}

/// As Go's `%q`.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\0'..'\u{20}' | '\u{7f}' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\x{:02x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
