package loginkube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
)

// Pods configures users' login pods.
type Pods struct {
	// Namespace of the pods. It has no other pods, and the API server admits only
	// restricted pods to it.
	Namespace string
	// Spec is the spec of a pod: the image and resources of its first container,
	// volumes, node selector. PodRequest sets what depends on the user.
	Spec map[string]any
}

// PodRequest is the user's part of a login pod.
type PodRequest struct {
	User     string
	UID, GID int
	Groups   []int
	Command  []string
	// Prepare runs first, in the same image, and writes the files passwd and group into
	// NamesDir; nil: the image's files are used.
	Prepare  []string
	NamesDir string
	Env      map[string]string
	Port     int
	RunDir   string // an emptyDir in memory
}

// LoginPod is a login pod.
type LoginPod struct {
	Name, User, Address string
	UID                 int
}

// Labels and annotations of login pods.
const (
	labelLoginPod  = "berth.hpc/login-pod"
	annotationUser = "berth.hpc/login-user"
	annotationUID  = "berth.hpc/login-uid"
	annotationPort = "berth.hpc/login-port"
)

// podObject is the part of a Pod that is read.
type podObject struct {
	Metadata struct {
		Name              string            `json:"name"`
		Annotations       map[string]string `json:"annotations"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Phase      string `json:"phase"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
		PodIP      string `json:"podIP"`
		Conditions []struct {
			Type, Status, Reason, Message string
		} `json:"conditions"`
		ContainerStatuses []struct {
			State struct {
				Waiting *struct{ Reason, Message string } `json:"waiting"`
				Running *struct{}                         `json:"running"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

func (p *podObject) loginPod() (*LoginPod, error) {
	a := p.Metadata.Annotations
	uid, err := strconv.Atoi(a[annotationUID])
	if err != nil || a[annotationUser] == "" {
		return nil, fmt.Errorf("pod %s has no annotation with its user", p.Metadata.Name)
	}
	return &LoginPod{
		Name:    p.Metadata.Name,
		User:    a[annotationUser],
		UID:     uid,
		Address: net.JoinHostPort(p.Status.PodIP, a[annotationPort]),
	}, nil
}

func (p *podObject) over() bool {
	return p.Metadata.DeletionTimestamp != nil || p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
}

func (p *podObject) running() bool {
	s := p.Status.ContainerStatuses
	return !p.over() && p.Status.Phase == "Running" && p.Status.PodIP != "" && len(s) > 0 && s[0].State.Running != nil
}

// waits returns in words what a pod waits for.
func (p *podObject) waits() string {
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return "no node has room for it yet"
		}
	}
	return ""
}

// StartPod creates a user's pod unless it exists, and waits until it runs. It calls
// state with what it waits for.
func (c *Cluster) StartPod(ctx context.Context, o *PodRequest, state func(string)) (*LoginPod, error) {
	object, name, err := c.opts.Pods.object(o)
	if err != nil {
		return nil, err
	}
	path := c.opts.Pods.path()
	pause := 50 * time.Millisecond
	for {
		var p podObject
		err := c.client.Get(ctx, path+"/"+name, nil, &p)
		switch {
		case kube.KindOf(err) == kube.NotFound:
			state("your login pod is starting")
			err = c.client.Post(ctx, path, nil, object, nil)
			if k := kube.KindOf(
				err,
			); err != nil && k != kube.Conflict && k != kube.Unavailable &&
				k != kube.Unreachable {
				return nil, fmt.Errorf("pod of %s: %w", o.User, err)
			}
		case err != nil:
			state("your login pod is starting (the cluster does not answer)")
		case p.running():
			return p.loginPod()
		case p.over() && p.Metadata.DeletionTimestamp == nil:
			if err := c.RemovePod(ctx, name); err != nil {
				return nil, err
			}
		case p.over():
			state("your last login pod is ending; a new one starts after that")
		default:
			text := "your login pod is starting"
			if w := p.waits(); w != "" {
				text += " (" + w + ")"
			}
			state(text)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf(
				"pod %s did not start in time: %s %s %s",
				name,
				p.Status.Phase,
				p.waits(),
				p.Status.Message,
			)
		case <-time.After(pause):
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

func (p *Pods) path() string { return "/api/v1/namespaces/" + url.PathEscape(p.Namespace) + "/pods" }

// LoginPods lists the running login pods.
func (c *Cluster) LoginPods(ctx context.Context) ([]*LoginPod, error) {
	var list struct {
		Items []podObject `json:"items"`
	}
	if err := c.client.Get(ctx, c.opts.Pods.path(), url.Values{"labelSelector": {labelLoginPod}}, &list); err != nil {
		return nil, err
	}
	var out []*LoginPod
	for i := range list.Items {
		p := &list.Items[i]
		if !p.running() {
			continue
		}
		one, err := p.loginPod()
		if err != nil {
			c.opts.Log(err.Error())
			continue
		}
		out = append(out, one)
	}
	return out, nil
}

// RemovePod deletes a pod. It is not an error if the pod does not exist.
func (c *Cluster) RemovePod(ctx context.Context, name string) error {
	err := c.client.Delete(ctx, c.opts.Pods.path()+"/"+url.PathEscape(name))
	if kube.KindOf(err) == kube.NotFound {
		return nil
	}
	return err
}

// object returns the pod and its name. The name contains a hash of the spec: after a
// change of the user's groups or of the image, the user gets another pod, and the old
// one ends when it is idle.
func (p *Pods) object(o *PodRequest) (map[string]any, string, error) {
	if o.UID == 0 || o.GID == 0 {
		return nil, "", errors.New("there is no login pod with uid or gid 0")
	}
	var spec map[string]any // a copy, which is changed below
	if text, err := json.Marshal(p.Spec); err != nil {
		return nil, "", err
	} else if err := json.Unmarshal(text, &spec); err != nil {
		return nil, "", err
	}
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return nil, "", errors.New("the template of login pods has no container")
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return nil, "", errors.New("the template of login pods: its first container is not an object")
	}
	p.personal(spec, o)
	contain(first, o)
	if o.Prepare != nil {
		named(spec, first, o)
	}
	sum, err := json.Marshal(spec)
	if err != nil {
		return nil, "", err
	}
	digest := sha256.Sum256(sum)
	name := fmt.Sprintf("login-%d-%s", o.UID, hex.EncodeToString(digest[:5]))
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": name, "namespace": p.Namespace,
			"labels": map[string]any{labelLoginPod: "true"},
			"annotations": map[string]any{
				annotationUser: o.User, annotationUID: strconv.Itoa(o.UID), annotationPort: strconv.Itoa(o.Port),
			},
		},
		"spec": spec,
	}, name, nil
}

// personal sets the user's rights in a pod, and no others.
func (p *Pods) personal(spec map[string]any, o *PodRequest) {
	groups := []int{}
	for _, g := range o.Groups {
		if g != 0 {
			groups = append(groups, g)
		}
	}
	security := object(spec, "securityContext")
	maps.Copy(security, map[string]any{
		"runAsUser": o.UID, "runAsGroup": o.GID, "supplementalGroups": groups, "runAsNonRoot": true,
		"seccompProfile": map[string]any{"type": "RuntimeDefault"},
	})
	maps.Copy(spec, map[string]any{
		"securityContext": security, "restartPolicy": "Never", "automountServiceAccountToken": false,
		"enableServiceLinks": false, "hostNetwork": false, "hostPID": false, "hostIPC": false,
	})
	appendTo(spec, "volumes", map[string]any{"name": "berth-login-run", "emptyDir": map[string]any{"medium": "Memory"}})
}

// contain sets what the container runs.
func contain(c map[string]any, o *PodRequest) {
	c["command"], c["args"] = o.Command, []string{}
	if c["name"] == nil {
		c["name"] = "login"
	}
	c["securityContext"] = map[string]any{
		"allowPrivilegeEscalation": false,
		"capabilities":             map[string]any{"drop": []string{"ALL"}},
	}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		appendTo(c, "env", map[string]any{"name": name, "value": o.Env[name]})
	}
	appendTo(c, "ports", map[string]any{"name": "ssh", "containerPort": o.Port})
	appendTo(c, "volumeMounts", map[string]any{"name": "berth-login-run", "mountPath": o.RunDir})
}

// named gives the user a name, which the image cannot know: the files are made
// before the pod's container starts, from the image's, and are mounted over
// them. What the template mounts there stays.
func named(spec, c map[string]any, o *PodRequest) {
	const volume = "berth-login-names"
	mounted := func(at string) bool {
		list, _ := c["volumeMounts"].([]any)
		return slices.ContainsFunc(list, func(m any) bool {
			one, _ := m.(map[string]any)
			p, _ := one["mountPath"].(string)
			return path.Clean(p) == at || path.Clean(p) == "/etc"
		})
	}
	var files []any
	for _, name := range []string{"passwd", "group"} {
		if at := "/etc/" + name; !mounted(at) {
			files = append(files, map[string]any{"name": volume, "mountPath": at, "subPath": name, "readOnly": true})
		}
	}
	if files == nil {
		return
	}
	first := map[string]any{
		"name":         "names",
		"command":      o.Prepare,
		"volumeMounts": []any{map[string]any{"name": volume, "mountPath": o.NamesDir}},
	}
	for _, same := range []string{"image", "imagePullPolicy", "securityContext", "resources", "env"} {
		if c[same] != nil {
			first[same] = c[same]
		}
	}
	appendTo(spec, "volumes", map[string]any{"name": volume, "emptyDir": map[string]any{}})
	list, _ := spec["initContainers"].([]any)
	spec["initContainers"] = append([]any{first}, list...)
	for _, f := range files {
		appendTo(c, "volumeMounts", f)
	}
}

func object(in map[string]any, name string) map[string]any {
	o, ok := in[name].(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	return o
}

func appendTo(in map[string]any, name string, what any) {
	list, _ := in[name].([]any)
	in[name] = append(list, what)
}
