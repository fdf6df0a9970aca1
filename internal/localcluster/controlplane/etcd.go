package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// maxSocketPath is the longest path of a Unix socket (sun_path), minus a margin for the
// name.
const maxSocketPath = 90

// etcd runs the store. It listens on Unix sockets in a directory that only its owner can
// access: with a port on loopback, every user of the machine would be an administrator.
type etcd struct {
	server *embed.Etcd
	socket string // directory for the sockets if the data directory's path is too long
	url    string
}

func startEtcd(ctx context.Context, dir string, log *zap.Logger) (*etcd, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	e := &etcd{}
	sockets := dir
	if len(dir) > maxSocketPath {
		tmp, err := os.MkdirTemp("", "berth-etcd-")
		if err != nil {
			return nil, err
		}
		e.socket, sockets = tmp, tmp
	}
	client, peer := filepath.Join(sockets, "c.sock"), filepath.Join(sockets, "p.sock")
	_ = os.Remove(client) // left by a crash; this process has the state directory's lock
	_ = os.Remove(peer)

	var err error
	if e.server, err = embed.StartEtcd(etcdConfig(dir, client, peer, log)); err != nil {
		e.removeSockets()
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-e.server.Server.ReadyNotify():
	case err := <-e.server.Err():
		e.stop()
		return nil, fmt.Errorf("etcd: %w", err)
	case <-ctx.Done():
		e.stop()
		return nil, ctx.Err()
	}
	e.url = "unix://" + client
	return e, nil
}

func etcdConfig(dir, client, peer string, log *zap.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name = "berth"
	c.Dir = filepath.Join(dir, "data")
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: client}}
	// The peer listener uses Host as the socket. If it were empty, the listener would
	// bind an abstract name that everybody can connect to.
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: peer}}
	// Advertised addresses must be host:port, and nobody dials them, because there is
	// one member.
	nowhere := url.URL{Scheme: "http", Host: "127.0.0.1:2380"}
	c.AdvertiseClientUrls = []url.URL{nowhere}
	c.AdvertisePeerUrls = []url.URL{nowhere}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// One member elects itself; do not wait a second for others.
	c.TickMs, c.ElectionMs = 10, 100
	c.WarningUnaryRequestDuration = time.Second
	c.QuotaBackendBytes = 8 << 30
	c.AutoCompactionMode = "periodic"
	c.AutoCompactionRetention = "5m"
	c.SnapshotCount = 20000
	// Entries of the log stay in memory for followers that fall behind. One member has
	// none; the default of 5,000 is 50 MB of objects.
	c.SnapshotCatchUpEntries = 100
	return c
}

// findEtcd returns an error unless one of the members of etcd accepts connections. The API
// server would report only that it has waited too long.
func findEtcd(servers []string) error {
	var failed error
	for _, u := range servers {
		c, err := net.DialTimeout("unix", strings.TrimPrefix(u, "unix://"), time.Second)
		if err == nil {
			return c.Close()
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("no etcd accepts connections at --etcd-server: %w", failed)
}

func (e *etcd) stop() {
	e.server.Close()
	e.removeSockets()
}

func (e *etcd) removeSockets() {
	if e.socket != "" {
		_ = os.RemoveAll(e.socket)
	}
}
