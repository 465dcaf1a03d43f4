//! The rules of a schema, compiled where they stand.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{FieldError, FieldFault};
use schema::{Kind, ListType, Node, Rule};

use super::ast;
use super::checker;
use super::decl::Decl;
use super::eval::Program;
use super::field_path;
use super::parser;
use super::types::Type;

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

/// `None` if there are no rules; and whether any of them iterates.
pub(super) fn compile(root: &Node, path: &str) -> Result<(Option<Site>, bool), Vec<FieldError>> {
    let mut compiler = Compiler { errors: Vec::new(), loops: false };
    let decl = Decl::read(root).map(Arc::new);
    let site = compiler.site(root, decl.as_ref(), path, None);
    if compiler.errors.is_empty() { Ok((site, compiler.loops)) } else { Err(compiler.errors) }
}

struct Compiler {
    errors: Vec<FieldError>,
    loops: bool,
}

impl Compiler {
    /// `uncorrelatable` is the list above whose items have no old items.
    fn site(
        &mut self,
        node: &Node,
        decl: Option<&Arc<Decl>>,
        path: &str,
        uncorrelatable: Option<&str>,
    ) -> Option<Site> {
        if !node.has_rules() {
            return None;
        }
        let mut properties = BTreeMap::new();
        for (name, property) in &node.properties {
            let decl = child_decl(decl, name, property);
            if let Some(site) =
                self.site(property, decl.as_ref(), &format!("{path}.properties[{name}]"), uncorrelatable)
            {
                properties.insert(name.clone(), site);
            }
        }
        let values = node.additional_node().and_then(|values| {
            self.site(values, inner_decl(decl).as_ref(), &format!("{path}.additionalProperties"), uncorrelatable)
        });
        let items = node.items.as_deref().and_then(|items| {
            let has_no_keys = node.list_type != Some(ListType::Map);
            let uncorrelatable = uncorrelatable.or(has_no_keys.then_some(path));
            self.site(items, inner_decl(decl).as_ref(), &format!("{path}.items"), uncorrelatable)
        });
        let rules = self.rules(node, decl, path, uncorrelatable);
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

    fn rules(
        &mut self,
        node: &Node,
        decl: Option<&Arc<Decl>>,
        path: &str,
        uncorrelatable: Option<&str>,
    ) -> Vec<CompiledRule> {
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
            if let Some(mut compiled) = self.rule(rule, decl, &format!("{path}[{index}]"), uncorrelatable) {
                compiled.field_path = field_path::normalized(&rule.field_path, node).unwrap_or_default();
                rules.push(compiled);
            }
        }
        rules
    }

    fn rule(
        &mut self,
        rule: &Rule,
        decl: &Arc<Decl>,
        path: &str,
        uncorrelatable: Option<&str>,
    ) -> Option<CompiledRule> {
        if rule.rule.trim().is_empty() {
            return None;
        }
        let optional = rule.optional_old_self.unwrap_or(false);
        let compiled = expression(&rule.rule, decl, optional, &Type::Bool);
        let rule_path = format!("{path}.rule");
        let compiled = match compiled {
            Ok(compiled) => {
                self.loops |= compiled.loops;
                Some(compiled)
            }
            Err(Wrong::Expression(why)) => {
                self.refuse(&rule.rule, &rule_path, why);
                None
            }
            Err(Wrong::Type) => {
                self.refuse(&rule.rule, &rule_path, "cel expression must evaluate to a bool".to_owned());
                None
            }
        };
        let mentions_old_self = compiled.as_ref().is_some_and(|compiled| compiled.mentions_old_self);
        let message_expression = self.message_expression(rule, decl, path, optional);
        match (uncorrelatable, rule.optional_old_self) {
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
                self.loops |= compiled.loops;
                return Some((compiled.program, source.clone()));
            }
            Err(Wrong::Expression(why)) => self.refuse(source, &path, format!("messageExpression {why}")),
            Err(Wrong::Type) => self.refuse(source, &path, "messageExpression must evaluate to a string".to_owned()),
        }
        None
    }

    fn refuse(&mut self, source: &str, path: &str, why: String) {
        self.errors.push(FieldError::invalid(path, source, why));
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
    loops: bool,
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
    let (mentions_old_self, loops) = (checked.mentions_old_self, parsed.loops);
    let program = Program::new(parsed.expr, checked)
        .map_err(|why| Wrong::Expression(format!("program instantiation failed: {why}")))?;
    Ok(Compiled { program, mentions_old_self, loops })
}
