// Package tracing describes the life of jobs as OpenTelemetry spans, and sends them to a
// collector (OTLP over HTTP, in protobuf).
//
// The leader makes all spans: it sees what commands, admission, planner, pods, agents and
// accounting do, so neither the commands nor the agents need a connection to the collector.
// What lasts is derived from the job's object when its record is stored. The ids of spans
// follow from the trace and the job, so that a leader that continues the work of another one
// refers to the same spans.
package tracing
