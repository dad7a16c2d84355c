//! Asking the naming policies, one call a policy for the whole run.

use std::sync::Arc;

use super::contents::RunContents;
use crate::plugins::{CallError, Label, Plugin, PluginHost, Trace};
use crate::traces::{Kind, Run};

/// One policy's answers for a run.
#[derive(Debug, Clone)]
pub struct PolicyLabels {
    /// The policy's name.
    pub policy: String,
    /// One label a trace, in the run's order.
    pub labels: Vec<Label>,
}

/// What every policy says of the traces of `run`, in the order of `policies`, and the policies that failed: those have no labels.
pub fn ask(host: &PluginHost, policies: &[Plugin], run: &Arc<Run>) -> (Vec<PolicyLabels>, Vec<CallError>) {
    let traces: Vec<Trace> = run
        .traces
        .iter()
        .map(|trace| Trace {
            path: trace.display_path(),
            kind: trace.kind.into(),
            size: trace.stored_size,
            gpu_events: trace.gpu_events,
        })
        .collect();
    let contents = Arc::new(RunContents::new(Arc::clone(run)));
    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    for policy in policies {
        match host.label(policy, &traces, &[], contents.clone()) {
            Ok(labels) => answered.push(PolicyLabels {
                policy: policy.name().to_owned(),
                labels,
            }),
            Err(error) => failed.push(error),
        }
    }
    (answered, failed)
}

impl From<Kind> for crate::plugins::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Kineto => Self::Kineto,
            Kind::Rocprof => Self::Rocprof,
            Kind::Pftrace => Self::Pftrace,
            Kind::ExecutionTrace => Self::ExecutionTrace,
            Kind::XPlane | Kind::Other => Self::Other,
        }
    }
}
