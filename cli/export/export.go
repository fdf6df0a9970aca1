// Package export is berth export: it prints everything that an administrator can set, as
// the YAML of its objects, for a repository that a GitOps controller applies.
package export

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// kinds are the resources of the configuration, in the order in which they refer to each
// other.
var kinds = []string{"clusters", "nodepools", "partitions", "qos", "accounts", "users", "reservations"}

// Client is the part of the API client that export uses.
type Client interface {
	GetAll(ctx context.Context, path string, into any) error
}

// Commands returns berth's subcommands of this package.
func Commands(p *stdio.Process) []*cobra.Command {
	return []*cobra.Command{New(p, func() (Client, error) {
		c, err := kube.Connect(p, "")
		if err != nil {
			return nil, err
		}
		return getter{c}, nil
	})}
}

// getter adapts kube.Client.
type getter struct{ *kube.Client }

// GetAll reads the object at path.
func (g getter) GetAll(ctx context.Context, path string, into any) error {
	return g.Get(ctx, path, nil, into)
}

// New returns the command. connect is called once, when it runs.
func New(p *stdio.Process, connect func() (Client, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "export [KIND...]",
		Short: "Print the configuration of the cluster as YAML",
		Long: `Print everything that an administrator can set, as YAML: the Cluster, NodePools,
Partitions, QOS, Accounts, Users and Reservations, or the kinds that are named. What the
API server adds and what is only state is left out, so that the output can be kept in a
repository and applied:

  berth export > berth.yaml
  kubectl apply --server-side -f berth.yaml

A comment in front of an object lists the fields that were changed with scontrol or
sacctmgr. Users that a directory keeps (docs/admin/identity.md) are left out.`,
		ValidArgs: kinds,
		RunE: func(c *cobra.Command, args []string) error {
			wanted, err := selected(args)
			if err != nil {
				return err
			}
			client, err := connect()
			if err != nil {
				return err
			}
			return run(c.Context(), p, client, wanted)
		},
	}
}

// selected returns the resources that args name, in any form that kubectl knows.
func selected(args []string) ([]string, error) {
	if len(args) == 0 {
		return kinds, nil
	}
	var out []string
	for _, a := range args {
		name := strings.ToLower(strings.TrimSuffix(a, "."+v1alpha1.GroupVersion.Group))
		i := slices.IndexFunc(kinds, func(k string) bool { return k == name || k == name+"s" })
		if i < 0 {
			return nil, slurmerr.Newf(slurmerr.BadValue, "unknown kind %q: one of %s", a, strings.Join(kinds, ", "))
		}
		out = append(out, kinds[i])
	}
	return out, nil
}

// run prints the objects. It reads all of them first, so that it prints nothing on errors.
func run(ctx context.Context, p *stdio.Process, c Client, wanted []string) error {
	var out bytes.Buffer
	for _, kind := range wanted {
		var list struct {
			Kind  string           `json:"kind"`
			Items []map[string]any `json:"items"`
		}
		if err := c.GetAll(ctx, "/apis/"+v1alpha1.GroupVersion.String()+"/"+kind, &list); err != nil {
			return err
		}
		for _, o := range list.Items {
			if label(o, v1alpha1.LabelSource) != "" {
				continue
			}
			changed := changedByCommands(o)
			text, err := yaml.Marshal(stripped(o, strings.TrimSuffix(list.Kind, "List")))
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			if out.Len() > 0 {
				out.WriteString("---\n")
			}
			out.WriteString(changed)
			out.Write(text)
		}
	}
	return p.Print(out.String())
}
