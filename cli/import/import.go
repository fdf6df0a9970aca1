// Package importer is berth import: it converts the configuration files of a Slurm site
// to Berth's objects, as YAML, and warns about what is not supported.
package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/slurmconf"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

// options are the flags.
type options struct {
	gres, topology, dump, passwd, group string
	quiet, values                       bool
}

// Commands are berth's sub-commands of this package.
func Commands(p *stdio.Process) []*cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "import SLURM.CONF",
		Short: "Convert the configuration of a Slurm site to Berth's objects",
		Long: `Convert the configuration of a Slurm site to Berth's objects, printed as YAML: the
Cluster (with the switches of topology.conf), the Partitions, NodePools (nodes in state CLOUD), labels and annotations
of the Nodes and, from the output of sacctmgr dump, Accounts and Users with their namespaces. Warnings on the
standard error list the settings that Berth does not support.

Apply the output to a cluster whose nodes exist already:
  berth import slurm.conf --dump cluster.cfg > slurm.yaml
  kubectl apply --server-side -f slurm.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return run(p, &o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.gres, "gres", "", "gres.conf (default: the one next to slurm.conf, if it exists)")
	f.StringVar(
		&o.topology, "topology", "",
		"topology.conf (default: the one next to slurm.conf, if TopologyPlugin names a plugin that reads it)",
	)
	f.StringVar(&o.dump, "dump", "", "output of sacctmgr dump")
	f.StringVar(
		&o.passwd,
		"passwd",
		"/etc/passwd",
		"ids, home directories and shells of the users, in the format of passwd(5)",
	)
	f.StringVar(&o.group, "group", "/etc/group", "groups of the users, in the format of group(5)")
	f.BoolVar(&o.values, "values", false, "print only Cluster and Partitions, as values of the chart")
	f.BoolVar(&o.quiet, "quiet", false, "do not mention parameters of Slurm's daemons")
	return []*cobra.Command{c}
}

// run prints the objects. It parses all files first, so that it prints nothing on errors.
func run(p *stdio.Process, o *options, file string) error {
	conf, err := slurmconf.Parse(file, p.ReadFile)
	if err != nil {
		return unreadable(err)
	}
	if err := readGRES(p, o, file, conf); err != nil {
		return err
	}
	if err := readTopology(p, o, file, conf); err != nil {
		return err
	}
	if o.values {
		return printValues(p, o, conf)
	}
	objects := []any{cluster(conf)}
	for i := range conf.Partitions {
		p := object("Partition", conf.Partitions[i].Name, conf.Partitions[i].Spec)
		p.Metadata.Annotations = conf.Partitions[i].Annotations
		objects = append(objects, p)
	}
	for i := range conf.NodePools {
		objects = append(objects, object("NodePool", conf.NodePools[i].Name, conf.NodePools[i].Spec))
	}
	for i := range conf.Nodes {
		if conf.Nodes[i].State != slurmconf.StateCloud { // it does not exist
			objects = append(objects, node(&conf.Nodes[i]))
		}
	}
	warnings := conf.Warnings
	if o.dump != "" {
		more, moreWarnings, err := users(p, o)
		if err != nil {
			return err
		}
		objects, warnings = append(objects, more...), append(warnings, moreWarnings...)
	}
	var out bytes.Buffer
	for i, x := range objects {
		text, err := yaml.Marshal(x)
		if err != nil {
			return slurmerr.Wrap(slurmerr.Internal, err, "")
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	if _, err := p.Out.Write(out.Bytes()); err != nil {
		return err
	}
	reportWarnings(p, o, warnings)
	return nil
}

// printValues prints the cluster and its partitions as values of the chart.
func printValues(p *stdio.Process, o *options, conf *slurmconf.Config) error {
	partitions := map[string]any{}
	for i := range conf.Partitions {
		p := &conf.Partitions[i]
		partitions[v1alpha1.PartitionName(p.Name, p.Annotations)] = p.Spec
	}
	text, err := yaml.Marshal(map[string]any{"cluster": conf.Cluster, "partitions": partitions})
	if err != nil {
		return slurmerr.Wrap(slurmerr.Internal, err, "")
	}
	if _, err := p.Out.Write(text); err != nil {
		return err
	}
	reportWarnings(p, o, conf.Warnings)
	return nil
}

func unreadable(err error) error {
	return slurmerr.Wrap(slurmerr.Refused, err, err.Error())
}

// readGRES parses the gres.conf of --gres, or else the one next to slurm.conf, if any.
func readGRES(p *stdio.Process, o *options, file string, conf *slurmconf.Config) error {
	name := cmp.Or(o.gres, filepath.Join(filepath.Dir(file), "gres.conf"))
	err := slurmconf.ParseGRES(name, p.ReadFile, conf)
	var inFile *slurmconf.Error // an error in a line, such as an include of a missing file
	switch {
	case err == nil, o.gres == "" && errors.Is(err, fs.ErrNotExist) && !errors.As(err, &inFile):
		return nil
	}
	return unreadable(err)
}

// readTopology parses the topology.conf of --topology, or else the one next to slurm.conf, if
// Slurm would read it.
func readTopology(p *stdio.Process, o *options, file string, conf *slurmconf.Config) error {
	if o.topology == "" && !conf.HasTopology() {
		return nil
	}
	name := cmp.Or(o.topology, filepath.Join(filepath.Dir(file), "topology.conf"))
	if _, err := slurmconf.ParseTopology(name, p.ReadFile, conf); err != nil {
		return unreadable(err)
	}
	return nil
}

// reportWarnings prints the warnings, and only the number of those about Slurm's daemons.
func reportWarnings(p *stdio.Process, o *options, warnings []slurmconf.Warning) {
	ignored := 0
	for _, w := range warnings {
		if w.DaemonOnly {
			ignored++
			continue
		}
		fmt.Fprintln(p.Err, w)
	}
	if ignored > 0 && !o.quiet {
		fmt.Fprintf(
			p.Err,
			"%d parameters of Slurm's daemons, files and ports were ignored\n",
			ignored,
		)
	}
}

// meta is a Kubernetes object in the output.
type meta struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func object(kind, name string, spec any) meta {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err) // plain values
	}
	return meta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Metadata: metadata{Name: name}, Spec: text}
}

func cluster(conf *slurmconf.Config) meta {
	return object("Cluster", v1alpha1.ClusterName, conf.Cluster)
}

// node returns the labels and annotations of a node: labels for its features,
// annotations for the rest.
func node(n *slurmconf.Node) meta {
	m := metadata{Name: n.Name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, f := range n.Features {
		m.Labels[wire.LabelFeature+f] = "true"
	}
	if len(n.Features) > 1 {
		m.Annotations[wire.AnnotationFeatures] = strings.Join(n.Features, ",")
	}
	for key, v := range map[string]int{wire.AnnotationSockets: n.Sockets, wire.AnnotationCores: n.CoresPerSocket,
		wire.AnnotationThreads: n.ThreadsPerCore} {
		if v > 0 {
			m.Annotations[key] = strconv.Itoa(v)
		}
	}
	if n.Weight > 1 {
		m.Annotations[wire.AnnotationWeight] = strconv.Itoa(n.Weight)
	}
	if n.State != "" {
		m.Annotations[wire.AnnotationState] = n.State
	}
	if n.Reason != "" {
		m.Annotations[wire.AnnotationReason] = n.Reason
	}
	return meta{APIVersion: "v1", Kind: "Node", Metadata: m}
}

// users returns the accounts and users of the dump, with ids, home directories and groups
// from the passwd and group files.
func users(p *stdio.Process, o *options) ([]any, []slurmconf.Warning, error) {
	data, err := p.ReadFile(o.dump)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	dump, err := slurmconf.ParseDump(o.dump, data)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	var out []any
	for i := range dump.Accounts {
		a := object("Account", dump.Accounts[i].Name, dump.Accounts[i].Spec)
		a.Metadata.Annotations = dump.Accounts[i].Annotations
		out = append(out, a)
	}
	known, err := readPasswd(p, o)
	if err != nil {
		return nil, nil, err
	}
	warnings := dump.Warnings
	for i := range dump.Users {
		u := &dump.Users[i]
		if u.Name == "root" {
			continue // an administrator of the cluster, not a user of it
		}
		entry, ok := known[u.Name]
		if !ok {
			warnings = append(warnings, slurmconf.Warning{File: o.passwd, Key: u.Name,
				Text: "user not found, so its uid is unknown; user ignored"})
			continue
		}
		u.Spec.UID, u.Spec.GID, u.Spec.Home, u.Spec.Shell, u.Spec.Groups = entry.uid, entry.gid, entry.home,
			entry.shell, entry.groups
		space := meta{
			APIVersion: "v1",
			Kind:       "Namespace",
			Metadata:   metadata{Name: u.Spec.Namespace, Labels: map[string]string{wire.LabelNamespace: u.Name}},
		}
		out = append(out, space, object("User", u.Name, u.Spec))
	}
	return out, warnings, nil
}

// account has what passwd and group say about a user.
type account struct {
	uid, gid    int64
	home, shell string
	groups      []v1alpha1.Group
}

// readPasswd parses the passwd and group files. It returns the users by name.
func readPasswd(p *stdio.Process, o *options) (map[string]*account, error) {
	data, err := p.ReadFile(o.passwd)
	if err != nil {
		return nil, unreadable(err)
	}
	out := map[string]*account{}
	for line := range strings.SplitSeq(string(data), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 7 {
			continue
		}
		uid, err1 := strconv.ParseInt(f[2], 10, 64)
		gid, err2 := strconv.ParseInt(f[3], 10, 64)
		if err1 == nil && err2 == nil {
			out[f[0]] = &account{uid: uid, gid: gid, home: f[5], shell: f[6]}
		}
	}
	data, err = p.ReadFile(o.group)
	if err != nil {
		return nil, unreadable(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 4 {
			continue
		}
		gid, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			continue
		}
		members := strings.Split(f[3], ",")
		for name, one := range out {
			if one.gid == gid || slices.Contains(members, name) {
				one.groups = append(one.groups, v1alpha1.Group{Name: f[0], GID: gid})
			}
		}
	}
	return out, nil
}
