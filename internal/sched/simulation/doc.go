// Package simulation runs the planner, the starter, the keeper, the power controller and the
// stores of the leader under deterministic simulation, as FoundationDB does: virtual time, an API
// server in memory that orders and rejects writes as the real one does, models of
// JobSet's controller, kube-scheduler, kubelets and agents, users, and faults. One
// random seed decides in which order requests are answered, events of watches arrive
// and parts act, and which faults happen when. The package contains tests only;
// docs/reliability.md lists what they check.
package simulation
