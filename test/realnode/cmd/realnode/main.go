// Command realnode brings up a cluster of real nodes with Berth
// installed and runs a program (a shell by default) on its login side, with KUBECONFIG
// of the administrator; the cluster ends with the program. The user of the
// cluster is "guest" (number 15001), with its home at /home/guest.
//
//	realnode BINDIR [PROGRAM [ARGUMENT...]]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/berth-hpc/berth/test/realnode"
)

func main() { os.Exit(realnode.Run(inside)) }

func inside() int {
	if err := use(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "realnode: error:", err)
		return 1
	}
	return 0
}

func use(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: realnode BINDIR [PROGRAM [ARGUMENT...]]")
	}
	site, err := realnode.Open(ctx, realnode.Options{Bin: args[0], Users: []realnode.User{{Name: "guest", ID: 15001}}})
	if err != nil {
		return err
	}
	if err := site.Install(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "realnode:", err) // a shell helps to see why
	}
	program := append(args[1:], "bash")
	if len(args) > 1 {
		program = args[1:]
	}
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+site.Kubeconfig, "SITE="+site.Dir,
		"PATH="+site.Bin+":"+os.Getenv("PATH"))
	return cmd.Run()
}
