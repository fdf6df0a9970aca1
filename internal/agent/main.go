package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/wire"
)

// Main runs the agent, or one of the helpers that it starts, and returns the exit
// code.
func Main(args, environ []string) int {
	if len(args) > 1 {
		switch args[1] {
		case spawn.ExecArg:
			return spawn.Exec(args[2:], os.Stderr)
		case launch.ReceiveArg:
			if len(args) != 3 {
				return 125
			}
			return receiveFile(args[2], os.Stdin, os.Stderr)
		case wire.AgentPrepare:
			return prepare(args[2:], os.Stderr)
		case "--version":
			fmt.Fprintln(os.Stdout, "berth-agent "+build.Version)
			return 0
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	config, err := Configure(environ)
	if err != nil {
		log.Error("the agent runs in the pods of jobs, not on the command line", "error", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// These signals are caught and discarded. If they were ignored instead, processes of the
	// job would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	return Run(ctx, config, log)
}
