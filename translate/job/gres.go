package job

// GRESDemand is what a job requests of one type of generic resource, by scope; 0:
// nothing at that scope. The scopes limit the same devices and do not add up.
//
// +kubebuilder:object:generate=false
type GRESDemand struct {
	Name, Type              string
	Job, Node, Socket, Task int64
}

// GRESDemands returns the demand for each type of generic resource, in the order in
// which the list names them. If a scope has several counts, the largest applies.
func (s *Shape) GRESDemands() []GRESDemand {
	out := make([]GRESDemand, 0, len(s.GRES))
	for i := range s.GRES {
		g := &s.GRES[i]
		d := demandOf(&out, g)
		switch g.Per {
		case PerJob:
			d.Job = max(d.Job, g.Count)
		case PerTask:
			d.Task = max(d.Task, g.Count)
		case PerSocket:
			d.Socket = max(d.Socket, g.Count)
		default:
			d.Node = max(d.Node, g.Count)
		}
	}
	return out
}

// demandOf returns the element of list for the resource of g, which it adds if
// it is missing.
func demandOf(list *[]GRESDemand, g *GRES) *GRESDemand {
	for i := range *list {
		if d := &(*list)[i]; d.Name == g.Name && d.Type == g.Type {
			return d
		}
	}
	*list = append(*list, GRESDemand{Name: g.Name, Type: g.Type})
	return &(*list)[len(*list)-1]
}

// OnNode returns how many of the resource each node needs for what the job requests
// by node and by socket.
func (d *GRESDemand) OnNode(s *Shape) int64 {
	return max(d.Node, product(d.Socket, max(1, s.SocketsPerNode)))
}

// Total returns how many of the resource the job gets on the given number of nodes,
// for the given number of tasks.
func (d *GRESDemand) Total(s *Shape, nodes, tasks int32) int64 {
	if d.Job > 0 {
		return d.Job
	}
	return max(product(d.OnNode(s), max(1, nodes)), product(d.Task, max(1, tasks)))
}

// MaxTasks is the largest number of tasks that follows from other numbers.
const MaxTasks = 1 << 30

// TasksOfGPUs returns how many tasks --ntasks-per-gpu means for a number of GPUs, at most
// MaxTasks.
func (s *Shape) TasksOfGPUs(gpus int64) int32 {
	return int32(min(product(gpus, s.TasksPerGPU), MaxTasks))
}

// maxProduct is so small that sums of products do not overflow either.
const maxProduct = 1 << 50

// product returns a*b, at most maxProduct; neither is negative.
func product(a int64, b int32) int64 {
	if b > 0 && a > maxProduct/int64(b) {
		return maxProduct
	}
	return a * int64(b)
}
