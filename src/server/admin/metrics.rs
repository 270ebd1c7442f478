use std::{fmt, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit as MetricUnit},
};
use tokio::time::timeout;

use super::{text, typed};
use crate::{
    command::{Gateway, Table},
    keyspace::{self, Duty},
    process,
    telemetry::{self, Kind, Metric, Unit},
    version::RESPGATE_VERSION,
};

/// What Prometheus asks for.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long figures of the store may take; those that take longer are left out.
const STORE_MAX: Duration = Duration::from_secs(2);

/// All figures, in the text format of OpenMetrics.
pub(super) async fn response(gateway: Option<&Gateway>) -> Response<Full<Bytes>> {
    let mut figures = Figures::default();
    figures.add_process();
    if let Some(gateway) = gateway {
        figures.add_gateway(gateway);
        figures.add_commands(gateway);
        figures.add_store(gateway).await;
        figures.add_background(gateway).await;
    }
    let mut registry = Registry::default();
    registry.register_collector(Box::new(figures));
    let mut body = String::new();
    match encode(&mut body, &registry) {
        Ok(()) => typed(StatusCode::OK, OPEN_METRICS, body),
        Err(fmt::Error) => text(StatusCode::INTERNAL_SERVER_ERROR, "the figures cannot be written\n".to_owned()),
    }
}

/// The labels of a figure and their values.
type Labels = Vec<(&'static str, String)>;

/// Figures at one moment.
#[derive(Debug, Default)]
struct Figures {
    families: Vec<(Metric, Vec<(Labels, f64)>)>,
}

impl Figures {
    fn add(&mut self, metric: Metric, value: impl Figure) {
        self.families.push((metric, vec![(Labels::new(), value.as_f64())]));
    }

    /// Adds a figure for each value of `label`.
    fn add_each<V: Figure>(
        &mut self,
        metric: Metric,
        label: &'static str,
        values: impl IntoIterator<Item = (impl Into<String>, V)>,
    ) {
        let labelled = values.into_iter().map(|(name, value)| (vec![(label, name.into())], value.as_f64()));
        self.families.push((metric, labelled.collect()));
    }

    fn add_process(&mut self) {
        let cpu = process::cpu_time();
        self.add(telemetry::CPU, cpu.user + cpu.system);
        self.add(telemetry::RESIDENT, process::resident_bytes());
    }

    fn add_gateway(&mut self, gateway: &Gateway) {
        let (statistics, settings) = (&gateway.statistics, gateway.settings());
        let labels =
            vec![("version", RESPGATE_VERSION.to_owned()), ("backend", settings.store.backend.name().to_owned())];
        self.families.push((telemetry::BUILD_INFO, vec![(labels, 1.0)]));
        let now = Duration::from_millis(gateway.keyspace.clock().now_ms());
        self.add(telemetry::START_TIME, now.saturating_sub(gateway.started_at.elapsed()).as_secs_f64());
        self.add(telemetry::CLIENTS, gateway.clients.count() as u64);
        self.add(telemetry::CLIENTS_MAX, settings.server.maxclients as u64);
        for (metric, counter) in [
            (telemetry::CONNECTIONS, &statistics.connections_received),
            (telemetry::CONNECTIONS_REJECTED, &statistics.connections_rejected),
            (telemetry::INPUT, &statistics.bytes_in),
            (telemetry::OUTPUT, &statistics.bytes_out),
            (telemetry::UNITS, &statistics.units_committed),
            (telemetry::UNIT_CONFLICTS, &statistics.unit_conflicts),
            (telemetry::UNIT_LOCKINGS, &statistics.unit_lockings),
            (telemetry::UNITS_GIVEN_UP, &statistics.units_given_up),
            (telemetry::GARBAGE_COLLECTED, &statistics.garbage_collected),
            (telemetry::EXPIRED_SWEPT, &statistics.expired_swept),
            (telemetry::ORPHANS_FOUND, &statistics.orphans_found),
            (telemetry::ORDERS_MENDED, &statistics.orders_mended),
        ] {
            self.add(metric, counter.get());
        }
        self.add_each(telemetry::ERRORS, "code", statistics.errors());
    }

    /// Commands that nobody has sent are left out.
    fn add_commands(&mut self, gateway: &Gateway) {
        let counted = Table::get().entries().iter().filter_map(|entry| {
            let counted = gateway.statistics.command(entry)?;
            (counted.calls.get() + counted.rejected.get() > 0).then_some((&entry.name, counted))
        });
        let counted: Vec<_> = counted.collect();
        let mut add = |metric, of: fn(&crate::command::CommandStatistics) -> f64| {
            self.add_each(metric, "command", counted.iter().map(|(name, counted)| (name.as_str(), of(counted))));
        };
        add(telemetry::COMMANDS, |counted| counted.calls.get().as_f64());
        add(telemetry::COMMAND_TIME, |counted| counted.microseconds.get().as_f64() / 1e6);
        add(telemetry::COMMANDS_FAILED, |counted| counted.failed.get().as_f64());
        add(telemetry::COMMANDS_REJECTED, |counted| counted.rejected.get().as_f64());
    }

    async fn add_store(&mut self, gateway: &Gateway) {
        let statistics = timeout(STORE_MAX, gateway.keyspace.backend().statistics());
        if let Ok(Ok(store)) = statistics.await {
            self.add(telemetry::STORE_DISK, store.disk_bytes);
            self.add(telemetry::STORE_MEMORY, store.memory_bytes);
            self.add_each(telemetry::STORE_FIGURE, "figure", store.figures);
        }
    }

    async fn add_background(&mut self, gateway: &Gateway) {
        let keyspace = &gateway.keyspace;
        self.add(telemetry::GARBAGE_PENDING, keyspace.garbage_pending());
        let now_ms = i64::try_from(keyspace.clock().now_ms()).unwrap_or(i64::MAX);
        let duties = [
            ("expired", Duty::Expired),
            ("orphans", Duty::Orphans),
            ("orders", Duty::Orders),
            ("versions", Duty::Versions),
        ];
        let ages = async {
            let mut ages = Vec::new();
            for (name, duty) in duties {
                let age_ms = keyspace::last_round_age_ms(&keyspace.leases(duty).await?, now_ms);
                ages.extend(age_ms.map(|age_ms| (name, age_ms as f64 / 1e3)));
            }
            keyspace::Result::Ok(ages)
        };
        if let Ok(Ok(ages)) = timeout(STORE_MAX, ages).await {
            self.add_each(telemetry::SWEEP_AGE, "duty", ages);
        }
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (metric, samples) in &self.families {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let unit = match metric.unit {
                Unit::Count => None,
                Unit::Bytes => Some(MetricUnit::Bytes),
                Unit::Seconds => Some(MetricUnit::Seconds),
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            match samples.as_slice() {
                [(labels, value)] if labels.is_empty() => write(metric.kind, *value, family)?,
                samples => {
                    for (labels, value) in samples {
                        write(metric.kind, *value, family.encode_family(labels)?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write(kind: Kind, value: f64, encoder: MetricEncoder<'_>) -> fmt::Result {
    match kind {
        Kind::Counter => ConstCounter::new(value).encode(encoder),
        Kind::Gauge => ConstGauge::new(value).encode(encoder),
    }
}

/// A number that can be shown. Beyond 2^53 its last digits are lost, which no graph shows.
trait Figure {
    fn as_f64(&self) -> f64;
}

impl Figure for f64 {
    fn as_f64(&self) -> f64 {
        *self
    }
}

impl Figure for u64 {
    fn as_f64(&self) -> f64 {
        *self as f64
    }
}
