package kube_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/accounts"
	"github.com/berth-hpc/berth/translate/kube"
)

// TestInitContainerWhereItIsNeeded: a pod has the init container unless everything that it would
// write is known.
func TestInitContainerWhereItIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*kube.Input)
		inits  int
	}{
		"known": {func(*kube.Input) {}, 0},
		"unknown image": {func(in *kube.Input) {
			in.Accounts = func(string) (accounts.Files, bool) { return accounts.Files{}, false }
		}, 1},
		"an older kubelet":    {func(in *kube.Input) { in.Accounts = nil }, 1},
		"copies the agent":    {func(in *kube.Input) { in.Partition.Spec.Agent.InitContainer = true }, 1},
		"two nodes":           {func(in *kube.Input) { in.Job.Status.Allocation = nodes(node("n1", 1, 100), node("n2", 1, 100)) }, 1},
		"submit host":         {func(in *kube.Input) { in.Job.Spec.Job.Batch.SubmitHost = "Login_1" }, 1},
		"submit address":      {func(in *kube.Input) { in.Job.Spec.Job.Batch.SubmitAddress = "fe80::1%eth0" }, 1},
		"no submit address":   {func(in *kube.Input) { in.Job.Spec.Job.Batch.SubmitAddress = "" }, 0},
		"submitted there":     {func(in *kube.Input) { in.Job.Spec.Job.Batch.SubmitHost = "n1" }, 0},
		"the node's network":  {func(in *kube.Input) { in.Partition.Spec.Template.Raw = []byte(hostNetwork) }, 1},
		"directories of jobs": {cases["container"], 1},
		"root": {func(in *kube.Input) {
			in.User.Spec.UID = 0
			in.Accounts = func(string) (accounts.Files, bool) { return accounts.Files{}, false }
		}, 0},
	} {
		in := base()
		cases["no-init-container"](&in)
		c.change(&in)
		_, set, err := kube.Objects(in)
		if err != nil {
			t.Fatal(name, err)
		}
		pod := set.Spec.ReplicatedJobs[0].Template.Spec.Template
		if got := len(pod.Spec.InitContainers); got != c.inits {
			t.Errorf("%s: %d init containers", name, got)
		}
		if name == "submitted there" && len(pod.Spec.HostAliases) > 0 {
			t.Errorf("%s: a second line for the node: %v", name, pod.Spec.HostAliases)
		}
	}
}

const hostNetwork = `{"spec":{"hostNetwork":true,"containers":[{"name":"job","image":"site/mpi:1"}]}}`
