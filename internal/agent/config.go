package agent

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// Config is the configuration from the pod's environment. It is read-only.
type Config struct {
	JobID   int64
	Attempt int32
	Index   int32 // of this node in the job
	PodIP   string
	APIs    []string // URLs of the API role
	CA      *x509.CertPool
	BinDir  string
	Environ []string // the container's whole environment

	Token          string // path
	TerminationLog string // path; empty: none
	HostsFile      string // path
	Helper         string // path of the agent's own program
	// ResumeGrace is the time in which clients from outside must reconnect.
	ResumeGrace time.Duration
	TempDir     string // for the socket and the script; empty: the system's
}

// adjust changes a Config in programs that are built for tests; nil in others.
var adjust func(c *Config, env map[string]string)

// Configure returns the configuration of a container's environment (NAME=value
// entries).
func Configure(environ []string) (*Config, error) {
	env := map[string]string{}
	for _, e := range environ {
		k, v, _ := strings.Cut(e, "=")
		env[k] = v
	}
	c := &Config{
		PodIP: env[wire.EnvPodIP], BinDir: env[wire.EnvBinDir], Environ: environ,
		Token: wire.TokenPath, TerminationLog: wire.TerminationLog, HostsFile: "/etc/hosts", Helper: "/proc/self/exe",
	}
	c.ResumeGrace = defaultResumeGrace
	if adjust != nil {
		adjust(c, env)
	}
	numbers := []struct {
		name string
		to   func(int64)
	}{
		{wire.EnvJobID, func(n int64) { c.JobID = n }},
		{wire.EnvAttempt, func(n int64) { c.Attempt = int32(n) }},
		{wire.EnvNodeOffset, func(n int64) { c.Index += int32(n) }},
		{wire.EnvPodIndex, func(n int64) { c.Index += int32(n) }},
	}
	for _, v := range numbers {
		if v.name == wire.EnvNodeOffset && env[wire.EnvNodes] != "" {
			continue
		}
		n, err := strconv.ParseInt(env[v.name], 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s=%q is not a number", v.name, env[v.name])
		}
		v.to(n)
	}
	if list := env[wire.EnvNodes]; list != "" {
		n, ok := wire.NodeAt(list, int(c.Index))
		if !ok {
			return nil, fmt.Errorf("%s=%q has no node at %d", wire.EnvNodes, list, c.Index)
		}
		c.Index = int32(n)
	}
	if c.PodIP == "" {
		return nil, fmt.Errorf("%s is not set", wire.EnvPodIP)
	}
	for url := range strings.SplitSeq(env[wire.EnvAPI], ",") {
		if url = strings.TrimSuffix(strings.TrimSpace(url), "/"); url != "" {
			c.APIs = append(c.APIs, url)
		}
	}
	if len(c.APIs) == 0 {
		return nil, fmt.Errorf("%s is not set", wire.EnvAPI)
	}
	pem, err := base64.StdEncoding.DecodeString(env[wire.EnvAPICA])
	c.CA = x509.NewCertPool()
	if err != nil || !c.CA.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", wire.EnvAPICA)
	}
	return c, nil
}
