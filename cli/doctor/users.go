package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/wire"
)

// userList has what doctor reads of the User objects.
type userList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			UID       int64  `json:"uid"`
			Namespace string `json:"namespace"`
		} `json:"spec"`
	} `json:"items"`
}

// users reports Users who share a uid or a namespace. Callers who may not list Users see
// nothing.
func (d *doctor) users(ctx context.Context) {
	var list userList
	if err := d.client.Get(ctx, "/apis/berth.hpc/v1alpha1/users", nil, &list); err != nil {
		if kind := kube.KindOf(err); kind != kube.NotFound && kind != kube.Forbidden {
			d.bad("", "cannot list users: %v", err)
		}
		return
	}
	owners := map[string][]string{}
	for i := range list.Items {
		u := &list.Items[i]
		for _, what := range []string{fmt.Sprintf("uid %d", u.Spec.UID), "namespace " + u.Spec.Namespace} {
			owners[what] = append(owners[what], u.Metadata.Name)
		}
	}
	var clashes []string
	for what, names := range owners {
		if slices.Sort(names); len(names) > 1 {
			clashes = append(clashes, fmt.Sprintf("the users %s have the same %s", strings.Join(names, ", "), what))
		}
	}
	slices.Sort(clashes)
	for _, text := range clashes {
		d.bad("delete one of them, or change it; none of them can log in or submit jobs until then", "%s",
			printable.Escape(text))
	}
	if len(clashes) == 0 && len(list.Items) > 0 {
		d.ok("no two of %d users share a uid or a namespace", len(list.Items))
	}
}

// directoryReport is usersync.Report.
type directoryReport struct {
	Sources []struct {
		Name  string     `json:"name"`
		Users int        `json:"users"`
		Error string     `json:"error"`
		Since *time.Time `json:"lastSuccess"`
	} `json:"sources"`
	Problems []string `json:"problems"`
}

// directory reports how the sources of users stand, to callers who may read the scheduler's
// report.
func (d *doctor) directory(ctx context.Context) {
	var m struct{ Data map[string]string }
	path := "/api/v1/namespaces/" + wire.SystemNamespace + "/configmaps/" + wire.DirectoryConfigMap
	var r directoryReport
	if d.client.Get(ctx, path, nil, &m) != nil || json.Unmarshal([]byte(m.Data[wire.DirectoryReport]), &r) != nil {
		return // there is none, or the caller may not read it
	}
	for _, s := range r.Sources {
		switch last := "never"; {
		case s.Error != "":
			if s.Since != nil {
				last = s.Since.UTC().Format(time.DateTime)
			}
			d.bad("users stay as they are until it is back; see docs/admin/runbook.md, BerthDirectoryAway",
				"the source %s of users could not be read, last successfully: %s: %s", s.Name, last,
				printable.Escape(s.Error))
		default:
			d.ok("the source %s has %d users", s.Name, s.Users)
		}
	}
	const most = 20
	for i, text := range r.Problems {
		if i == most {
			d.warn("", "%d more problems of users", len(r.Problems)-i)
			break
		}
		d.warn("", "users: %s", printable.Escape(text))
	}
}
