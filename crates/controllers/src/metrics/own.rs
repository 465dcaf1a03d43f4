//! Metrics that a dialect has beside those of all hosts, under the names that its users' dashboards know.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A metric of a dialect's own.
#[derive(Debug, Clone, Copy)]
pub struct OwnMetric {
    /// Its whole name; counters without `_total`, which is added.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// The upper bounds of a histogram in seconds; a counter has none.
    pub buckets: &'static [f64],
}

/// One more for a metric of a dialect's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The metric's name.
    pub metric: &'static str,
    /// Words of a small set, or a namespace: no names of hosts.
    pub labels: Labels,
    /// What a histogram observes.
    pub seconds: f64,
}

impl Count {
    /// One more.
    pub fn one(metric: &'static str, labels: &[(&'static str, &str)]) -> Self {
        Self::seconds(metric, labels, 0.0)
    }

    /// Something took this long.
    pub fn seconds(metric: &'static str, labels: &[(&'static str, &str)], seconds: f64) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { metric, labels, seconds }
    }
}

/// Labels with their values: words of a small set, or namespaces.
pub type Labels = Vec<(&'static str, String)>;

/// A metric of a dialect's own that tells how many of its hosts there are now, by what they are like.
#[derive(Debug, Clone, Copy)]
pub struct OwnGauge<H> {
    /// Its whole name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// The labels that a host counts under.
    pub of: fn(&H) -> Vec<Labels>,
    /// Labels that are shown also while no host counts under them: a series that ends keeps its last value for minutes.
    pub always: fn() -> Vec<Labels>,
}

/// A gauge together with the hosts that it counts.
#[derive(Clone)]
pub(super) struct Census {
    name: &'static str,
    help: &'static str,
    count: Arc<dyn Fn() -> BTreeMap<Labels, i64> + Send + Sync>,
}

impl Census {
    pub(super) fn new<H: Send + Sync + 'static>(
        gauge: &OwnGauge<H>,
        hosts: Arc<dyn Fn() -> Vec<Arc<H>> + Send + Sync>,
    ) -> Self {
        let OwnGauge { name, help, of, always } = *gauge;
        let count = move || {
            let mut counts: BTreeMap<_, _> = always().into_iter().map(|labels| (labels, 0)).collect();
            for labels in hosts().iter().flat_map(|host| of(host)) {
                *counts.entry(labels).or_default() += 1;
            }
            counts
        };
        Self { name, help, count: Arc::new(count) }
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (labels, count) in (self.count)() {
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// All that dialects have declared.
#[derive(Debug, Default)]
pub(super) struct OwnMetrics {
    pub(super) registry: Registry,
    counters: BTreeMap<&'static str, Family<Labels, Counter>>,
    histograms: BTreeMap<&'static str, Family<Labels, Histogram, Buckets>>,
}

#[derive(Debug, Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl OwnMetrics {
    /// Declares metrics; those that are there already go on.
    pub(super) fn declare(&mut self, metrics: &[OwnMetric]) {
        for OwnMetric { name, help, buckets } in metrics {
            if self.counters.contains_key(name) || self.histograms.contains_key(name) {
                continue;
            }
            if buckets.is_empty() {
                let family = Family::default();
                self.registry.register(*name, *help, family.clone());
                self.counters.insert(name, family);
            } else {
                let family = Family::new_with_constructor(Buckets(buckets));
                self.registry.register(*name, *help, family.clone());
                self.histograms.insert(name, family);
            }
        }
    }

    /// Counts; what was never declared counts for nothing.
    pub(super) fn count(&self, count: &Count) {
        if let Some(counter) = self.counters.get(count.metric) {
            counter.get_or_create(&count.labels).inc();
        } else if let Some(histogram) = self.histograms.get(count.metric) {
            histogram.get_or_create(&count.labels).observe(count.seconds);
        }
    }
}
