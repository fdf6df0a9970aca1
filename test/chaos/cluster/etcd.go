package cluster

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdMember is the first argument with which this program is a member of etcd.
const etcdMember = "etcd-member"

// RunEtcdMember runs a member of etcd until it is killed, and does not return, if this
// program was started as one. Otherwise it returns at once.
func RunEtcdMember() {
	if len(os.Args) != 5 || os.Args[1] != etcdMember {
		return
	}
	if err := runEtcd(os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// memberPrefix and a number are the name of a member.
const memberPrefix = "etcd"

// peerURL is the address of a member for the others: a socket in the directory that all
// members work in. etcd wants the form of host and port.
func peerURL(name string) url.URL {
	return url.URL{Scheme: "unix", Host: "peer:" + strings.TrimPrefix(name, memberPrefix)}
}

// clientSocket is the socket of a member for the API server.
func clientSocket(dir, name string) string { return filepath.Join(dir, name+".sock") }

// runEtcd runs the member of that name in dir. All are the names of all members, with commas.
func runEtcd(dir, name, all string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	for _, socket := range []string{peerURL(name).Host, clientSocket(dir, name)} { // left by the process before
		if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	log, err := zap.NewProduction()
	if err != nil {
		return err
	}
	c := embed.NewConfig()
	c.Name, c.Dir = name, filepath.Join(dir, name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: clientSocket(dir, name)}}
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}} // nobody connects to it
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peerURL(name)}, []url.URL{peerURL(name)}
	var members []string
	for n := range strings.SplitSeq(all, ",") {
		peer := peerURL(n)
		members = append(members, n+"="+peer.String())
	}
	c.InitialCluster = strings.Join(members, ",")
	c.TickMs, c.ElectionMs = 50, 500 // a new leader after about half a second
	c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", "5m"
	server, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer server.Close()
	done := make(chan os.Signal, 1)
	signal.Notify(done, syscall.SIGTERM, os.Interrupt)
	select {
	case <-done:
		return nil
	case err := <-server.Err():
		return err
	}
}

// startEtcd starts the members of etcd that the options ask for.
func (c *Cluster) startEtcd() error {
	if c.EtcdMembers == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Join(c.Dir, "etcd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	names := make([]string, c.EtcdMembers)
	for i := range names {
		names[i] = memberPrefix + strconv.Itoa(i+1)
	}
	for _, name := range names {
		p := &Process{Name: name, path: self, args: []string{etcdMember, dir, name, strings.Join(names, ",")},
			log: filepath.Join(c.Dir, name+".log"), kind: "member of etcd", tally: &c.tally}
		c.undo = append(c.undo, p.Stop)
		if err := p.run(); err != nil {
			return err
		}
		c.Etcd = append(c.Etcd, p)
	}
	return nil
}

// etcdFlags returns the flags of berth up for the members.
func (c *Cluster) etcdFlags() []string {
	var flags []string
	for _, p := range c.Etcd {
		flags = append(flags, "--etcd-server=unix://"+clientSocket(filepath.Join(c.Dir, "etcd"), p.Name))
	}
	return flags
}
