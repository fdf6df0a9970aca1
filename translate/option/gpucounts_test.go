package option

import "testing"

// TestGPUCounts compares the errors about contradictory GPU counts with those of sbatch
// 22.05.8.
func TestGPUCounts(t *testing.T) {
	const (
		fewer   = "Failed to validate job spec, --gpus < -N"
		perTask = "Failed to ensure --gpus >= --gpus-per-task"
		perTRES = "gres_job_state_validate: --ntasks-per-tres needs either " +
			"a GRES GPU specification or a node/ntask specification"
		least = "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket"
		times = "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node"
		alone = "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed."
		tasks = "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks."
	)
	bounds := func(rest string) string {
		return "Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes " + rest + " boundaries."
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-N2", "--gpus=1"}, fewer},
		{[]string{"-N2", "--gpus=tesla:1"}, fewer},
		{[]string{"-N2", "--gpus=tesla:1,kepler:1"}, fewer},
		{[]string{"-N1-2", "--gpus=1"}, ""},
		{[]string{"-N2", "--gpus=3"}, ""},
		{[]string{"-N2", "--gpus=5", "--gpus-per-node=2"}, times},
		{[]string{"--gpus=3", "--gpus-per-node=2"}, times},
		{[]string{"--gpus=2", "--gpus-per-node=4"}, least},
		{[]string{"-N2", "--gpus=4", "--gpus-per-node=2"}, ""},
		{[]string{"-N1-3", "--gpus=8", "--gpus-per-node=2"},
			bounds("(4) doesn't fall between min_nodes (1) and max_nodes (3)")},
		{[]string{"-N1-4", "--gpus=4", "--gpus-per-node=2"}, ""},
		{[]string{"-N2", "--gpus=3", "--gres=gpu:1"},
			bounds("(3) doesn't fall between min_nodes (2) and max_nodes (2)")},
		{[]string{"-N1-2", "--gpus-per-task=1"}, alone},
		{[]string{"-n3", "--gpus=4", "--gpus-per-task=2"}, tasks},
		{[]string{"--gpus=3", "--gpus-per-task=2"},
			"Failed to validate job spec, --gpus not multiple of --gpus-per-task"},
		{[]string{"--gpus=4", "--gpus-per-task=2"}, ""},
		{[]string{"--gpus-per-node=1", "--gpus-per-task=2"}, perTask},
		{[]string{"--gpus-per-node=1", "--gpus-per-socket=2"}, perTask},
		{[]string{"--gpus-per-node=1", "--gpus-per-socket=2", "--sockets-per-node=1"}, perTask},
		{[]string{"--gpus=2", "--gpus-per-node=1", "--gpus-per-socket=2"}, perTask},
		{[]string{"--gpus=1", "--gpus-per-task=2"}, least},
		{[]string{"--gpus=1", "--gpus-per-socket=2"}, least},
		{[]string{"-N1-2", "--ntasks-per-gpu=2"}, perTRES},
		{[]string{"--gpus=0", "--ntasks-per-gpu=2"}, perTRES},
		{[]string{"-N2", "--ntasks-per-gpu=2"}, ""},
		{[]string{"--gpus-per-socket=2", "--gpus-per-node=3", "--sockets-per-node=1"},
			"Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket."},
		{[]string{"-B1:2", "--gpus-per-socket=1", "--gpus-per-task=2"},
			"Failed to validate job spec, --gpus-per-socket not multiple of --gpus-per-task."},
		{[]string{"--sockets-per-node=1", "--gpus-per-socket=1", "--gpus-per-task=2"}, alone},
		{[]string{"--gpus-per-task=1"}, alone},
		{[]string{"--gpus-per-node=2", "--gpus-per-task=1"}, alone},
		{[]string{"-N1", "--gpus-per-task=1"}, ""},
		{[]string{"-n1", "--gpus-per-task=1"}, ""},
		{[]string{"--ntasks-per-node=1", "--gpus-per-task=1"}, ""},
		{[]string{"--ntasks-per-gpu=2"},
			"gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification"},
		{[]string{"-n2", "--ntasks-per-gpu=2"}, ""},
	} {
		p, err := Parse(Sbatch, c.args, nil)
		if err == nil {
			err = p.Verify()
		}
		want := c.want
		if want != "" {
			want += "\nInvalid generic resource (gres) specification"
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: %q, want %q", c.args, got, want)
		}
	}
}
