package command

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/berth-hpc/berth/internal/localcluster"
)

// reportFD is the pipe on which a cluster in the background reports its progress: one
// line each, "+" and progress, "!" and an error, or "=" and what to print when it is
// ready.
const (
	reportFD  = 3
	reportEnv = "BERTH_LOCAL_REPORT"
)

// foreground runs the cluster in this process until a signal ends it.
func (p *program) foreground(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if p.Env("GOGC") == "" {
		go tuneGC(ctx)
	}
	if p.Env("GOMEMLIMIT") == "" {
		limitMemory()
	}
	// These signals are caught and dropped, not ignored: jobs and logins would inherit
	// that, and outlive their terminals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)

	tell, report := io.Writer(p.Err), io.WriteCloser(nil)
	if p.Env(reportEnv) != "" {
		f := os.NewFile(reportFD, "report")
		syscall.CloseOnExec(reportFD)
		_ = os.Unsetenv(reportEnv) // pods must not see it
		report = f
	}
	say := func(mark, text string) {
		if report != nil {
			writeReport(report, mark, text)
			return
		}
		fmt.Fprintln(tell, text)
	}
	config, err := p.config(func(s string) { say(markProgress, s) })
	if err == nil {
		var file *os.File
		if file, err = p.openLog(&config); err == nil {
			defer func() { _ = file.Close() }()
			if p.Err == os.Stderr && report == nil {
				var restore func()
				if tell, restore, err = divert(file); err != nil {
					return err
				}
				defer restore()
			}
			config.Stopping = func() { time.AfterFunc(endTimeout, giveUp) }
			err = localcluster.Run(ctx, config, p.Fresh, func(i localcluster.Info) {
				for _, line := range p.welcome(config, i) {
					say(markReady, line)
				}
				if report != nil {
					_ = report.Close()
					report, tell = nil, io.Discard
				}
			})
		}
	}
	if err != nil && report != nil {
		say(markFailed, explain(err, p.StateDir))
	}
	return err
}

// divert redirects standard error to the log, because some parts of Kubernetes always
// log there. It returns a writer to the original standard error, and a function that
// restores it.
func divert(log *os.File) (io.Writer, func(), error) {
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Dup2(int(log.Fd()), 2); err != nil {
		return nil, nil, err
	}
	real := os.NewFile(uintptr(fd), "stderr")
	return real, func() {
		_ = unix.Dup2(fd, 2)
		_ = real.Close()
	}, nil
}

// endTimeout is how long the parts may take to stop before the process exits without
// them. Nothing is lost by that: the state is as after a crash.
const endTimeout = 45 * time.Second

// giveUp exits the process without waiting for its goroutines.
func giveUp() {
	slog.Error("the cluster does not stop; exiting")
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// openLog opens the log in the state directory for Kubernetes and Berth.
func (p *program) openLog(c *localcluster.Config) (*os.File, error) {
	name := filepath.Join(p.StateDir, localcluster.FileLog)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	handler := slog.NewTextHandler(f, nil)
	c.Log = slog.New(handler)
	slog.SetDefault(c.Log)
	log.SetOutput(f)
	klog.SetSlogLogger(slog.New(quiet{handler}.WithAttrs([]slog.Attr{slog.String("part", "kubernetes")})))
	ctrl.SetLogger(logr.FromSlogHandler(quiet{handler}))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return f, nil
}

// quiet passes only warnings and errors, because Kubernetes' parts log every start of
// every worker.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// welcome returns the lines that are printed when the cluster is ready.
func (p *program) welcome(c localcluster.Config, i localcluster.Info) []string {
	lines := []string{
		fmt.Sprintf("ready: %d nodes; API server %s", len(c.Nodes), i.Server),
		"kubeconfig: " + i.Kubeconfig,
	}
	if i.Login != "" {
		lines = append(lines, "log in: "+i.Login)
	}
	for _, m := range i.Missing {
		lines = append(lines, "note: "+m)
	}
	other := filepath.Join(p.StateDir, "user.kubeconfig")
	if _, err := os.Stat(other); err == nil {
		lines = append(lines,
			"note: the commands use the cluster of "+other+" first; for this one: export KUBECONFIG="+i.Kubeconfig)
	}
	return lines
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
