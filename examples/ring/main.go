// Command ring passes a token around all tasks of a job step, over TCP. Each
// task finds its place and its neighbours in the SLURM_* variables and the
// nodes by their names, so it needs no MPI:
//
//	srun ring [ROUNDS]
//
// Task 0 prints one line for every task that the token came through, and in
// the end "ring of N ok".
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/hostlist"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
		os.Exit(1)
	}
}

// ring is one task's view.
type ring struct {
	rank, size, rounds int
	next               string // host:port
	listener           net.Listener
}

func run() error {
	r, err := join()
	if err != nil {
		return err
	}
	defer r.listener.Close()
	out, err := dial(r.next)
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := r.listener.Accept()
	if err != nil {
		return err
	}
	defer in.Close()
	return r.pass(bufio.NewReader(in), out)
}

// join reads the environment and opens this task's port: one that follows from
// job, step and rank, so that the neighbour knows it.
func join() (*ring, error) {
	r := &ring{rounds: 1}
	var err error
	number := func(name string) int {
		n, e := strconv.Atoi(os.Getenv(name))
		if e != nil && err == nil {
			err = fmt.Errorf("%s=%q: start this with srun", name, os.Getenv(name))
		}
		return n
	}
	r.rank, r.size = number("SLURM_PROCID"), number("SLURM_NTASKS")
	job, step := number("SLURM_JOB_ID"), number("SLURM_STEP_ID")
	if err != nil {
		return nil, err
	}
	if len(os.Args) > 1 {
		if r.rounds, err = strconv.Atoi(os.Args[1]); err != nil || r.rounds < 1 {
			return nil, fmt.Errorf("rounds: %q", os.Args[1])
		}
	}
	hosts, err := places()
	if err != nil {
		return nil, err
	}
	if len(hosts) != r.size {
		return nil, fmt.Errorf("%d tasks on %d places", r.size, len(hosts))
	}
	port := func(rank int) string { return strconv.Itoa(20000 + (job*131+step*17)%8000 + rank) }
	next := (r.rank + 1) % r.size
	r.next = net.JoinHostPort(address(hosts[next]), port(next))
	r.listener, err = net.Listen("tcp", net.JoinHostPort(address(hosts[r.rank]), port(r.rank)))
	return r, err
}

// places names the node of every task, in blocks, from the step's node list
// and its tasks per node, such as 2(x3),1.
func places() ([]string, error) {
	nodes, err := hostlist.Expand(os.Getenv("SLURM_STEP_NODELIST"))
	if err != nil {
		return nil, err
	}
	var hosts []string
	for part := range strings.SplitSeq(os.Getenv("SLURM_STEP_TASKS_PER_NODE"), ",") {
		count, times, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, fmt.Errorf("SLURM_STEP_TASKS_PER_NODE: %w", err)
		}
		k, err := strconv.Atoi(times)
		if err != nil {
			k = 1
		}
		for ; k > 0 && len(nodes) > 0; k-- {
			for range n {
				hosts = append(hosts, nodes[0])
			}
			nodes = nodes[1:]
		}
	}
	return hosts, nil
}

// address resolves a node's name. Where names do not resolve (agents without a
// hosts file of their own share one machine) the task's own address serves for
// its own node only, so the error comes from the connection and says which.
func address(host string) string {
	if host == os.Getenv("SLURMD_NODENAME") {
		if ip := os.Getenv("BERTH_POD_IP"); ip != "" {
			return ip
		}
	}
	return host
}

// dial waits for the neighbour to listen.
func dial(address string) (net.Conn, error) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err == nil {
			return c, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// pass takes the token from the left, signs it and sends it to the right.
func (r *ring) pass(in *bufio.Reader, out net.Conn) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	sign := fmt.Sprintf("rank %d of %d on %s", r.rank, r.size, host)
	for round := range r.rounds {
		token := ""
		if r.rank > 0 {
			if token, err = in.ReadString('\n'); err != nil {
				return err
			}
			token = strings.TrimSuffix(token, "\n") + "|"
		}
		if _, err := fmt.Fprintln(out, token+sign); err != nil {
			return err
		}
		if r.rank > 0 {
			continue
		}
		if token, err = in.ReadString('\n'); err != nil {
			return err
		}
		stops := strings.Split(strings.TrimSpace(token), "|")
		if round == 0 {
			fmt.Println(strings.Join(stops, "\n"))
		}
		if len(stops) != r.size {
			return fmt.Errorf("the token came through %d tasks of %d", len(stops), r.size)
		}
	}
	if r.rank == 0 {
		fmt.Printf("ring of %d ok\n", r.size)
	}
	return nil
}
