package app

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/pools"
)

var (
	poolNodesMetric = desc("node_pool_nodes", "Nodes of a pool by state: powered_down, powering_up, "+
		"running, powering_down, failed.", "pool", "state")
	poolCostMetric    = desc("node_pool_cost_per_hour", "Cost of the nodes that are not powered down.", "pool")
	poolProblemMetric = desc("node_pool_problem", "1 while something is wrong with the description of a pool.", "pool")
)

// poolStates are the names of states in metrics.
var poolStates = map[string]string{
	v1alpha1.PoolPoweredDown: "powered_down", v1alpha1.PoolPoweringUp: "powering_up", v1alpha1.PoolRunning: "running",
	v1alpha1.PoolPoweringDown: "powering_down", v1alpha1.PoolFailed: "failed",
}

// pools adds the states of nodes that do not always run, and what they cost.
func (c *collector) pools(gauge addGauge) {
	all := c.cluster.NodePools.List()
	assigned := pools.Assign(all)
	for _, p := range all {
		count := map[string]int{}
		for i := range p.Status.Nodes {
			count[p.Status.Nodes[i].State]++
		}
		count[v1alpha1.PoolPoweredDown] += max(0, len(assigned[p.Name])-len(p.Status.Nodes))
		for state, name := range poolStates {
			gauge(poolNodesMetric, float64(count[state]), p.Name, name)
		}
		paid := count[v1alpha1.PoolPoweringUp] + count[v1alpha1.PoolRunning] + count[v1alpha1.PoolPoweringDown]
		gauge(poolCostMetric, float64(paid)*pools.Cost(&p.Spec), p.Name)
		gauge(poolProblemMetric, truth(p.Status.Problem != ""), p.Name)
	}
}
