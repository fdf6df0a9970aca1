package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/processnode/identity"
	"github.com/berth-hpc/berth/internal/processnode/podenv"
)

// payload is the content of a volume, by the path of each file in it.
type payload map[string]payloadFile

type payloadFile struct {
	data  []byte
	mode  os.FileMode
	token bool // readable only by the pod's user, if it has one
}

const defaultFileMode = 0o644

// fill writes the content of a volume whose source is the API server, and schedules
// the renewal of its tokens.
func (vs *Set) fill(ctx context.Context, v *corev1.Volume, dir string) error {
	content := payload{}
	renew, err := vs.collect(ctx, v, content)
	if err != nil {
		return err
	}
	if err := vs.writePayload(dir, content); err != nil {
		return err
	}
	if renew > 0 {
		vs.Later(renew, func() { vs.renew(ctx, v, dir) })
	}
	return nil
}

// renew writes the content of the volume again. After an error it retries every
// renewRetry until it succeeds or the pod ends.
func (vs *Set) renew(ctx context.Context, v *corev1.Volume, dir string) {
	if err := vs.fill(ctx, v, dir); err != nil && ctx.Err() == nil {
		vs.Log("pod %s/%s: renew volume %s: %v", vs.Pod.Namespace, vs.Pod.Name, v.Name, err)
		vs.Later(renewRetry, func() { vs.renew(ctx, v, dir) })
	}
}

// renewRetry is the delay after a failed renewal of a volume.
const renewRetry = time.Minute

// collect adds the files of a volume to into, and returns how long they are valid before they
// have to be renewed; 0: for ever.
func (vs *Set) collect(ctx context.Context, v *corev1.Volume, into payload) (time.Duration, error) {
	switch {
	case v.Secret != nil:
		s := v.Secret
		return 0, vs.addSecret(ctx, into, s.SecretName, s.Items, s.Optional, s.DefaultMode)
	case v.ConfigMap != nil:
		s := v.ConfigMap
		return 0, vs.addConfigMap(ctx, into, s.Name, s.Items, s.Optional, s.DefaultMode)
	case v.DownwardAPI != nil:
		return 0, vs.addDownward(into, v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
	}
	var renew time.Duration
	mode := v.Projected.DefaultMode
	for _, s := range v.Projected.Sources {
		var err error
		switch {
		case s.Secret != nil:
			err = vs.addSecret(ctx, into, s.Secret.Name, s.Secret.Items, s.Secret.Optional, mode)
		case s.ConfigMap != nil:
			err = vs.addConfigMap(ctx, into, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, mode)
		case s.DownwardAPI != nil:
			err = vs.addDownward(into, s.DownwardAPI.Items, mode)
		case s.ServiceAccountToken != nil:
			var after time.Duration
			after, err = vs.addToken(ctx, into, s.ServiceAccountToken, mode)
			if renew == 0 || after < renew {
				renew = after
			}
		default:
			err = errors.New("process nodes do not support this kind of projected source")
		}
		if err != nil {
			return 0, err
		}
	}
	return renew, nil
}

// addToken requests a token that is bound to the pod.
func (vs *Set) addToken(
	ctx context.Context, into payload, s *corev1.ServiceAccountTokenProjection, mode *int32,
) (time.Duration, error) {
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef: &authentication.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: vs.Pod.Name, UID: vs.Pod.UID,
		},
	}}
	if s.Audience != "" {
		request.Spec.Audiences = []string{s.Audience}
	}
	account := vs.Pod.Spec.ServiceAccountName
	t, err := vs.Client.CoreV1().ServiceAccounts(vs.Pod.Namespace).CreateToken(ctx, account, request,
		metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("token of service account %s: %w", account, err)
	}
	f := file([]byte(t.Status.Token), nil, mode)
	f.token = true
	into[s.Path] = f
	// As in a kubelet, after 80 % of its lifetime, and at least once a day.
	life := time.Until(t.Status.ExpirationTimestamp.Time)
	return min(max(life*8/10, time.Second), 24*time.Hour), nil
}

func (vs *Set) addSecret(
	ctx context.Context, into payload, name string, items []corev1.KeyToPath, optional *bool, mode *int32,
) error {
	s, err := vs.Facts.Objects.Secret(ctx, vs.Pod.Namespace, name)
	if err != nil {
		return podenv.Optionally(optional, err)
	}
	return addItems(into, s.Data, items, optional, mode, "Secret "+name)
}

func (vs *Set) addConfigMap(
	ctx context.Context, into payload, name string, items []corev1.KeyToPath, optional *bool, mode *int32,
) error {
	m, err := vs.Facts.Objects.ConfigMap(ctx, vs.Pod.Namespace, name)
	if err != nil {
		return podenv.Optionally(optional, err)
	}
	data := map[string][]byte{}
	for k, v := range m.Data {
		data[k] = []byte(v)
	}
	for k, v := range m.BinaryData {
		data[k] = v
	}
	return addItems(into, data, items, optional, mode, "ConfigMap "+name)
}

func addItems(
	into payload, data map[string][]byte, items []corev1.KeyToPath, optional *bool, mode *int32, what string,
) error {
	if len(items) == 0 {
		for k, v := range data {
			into[k] = file(v, nil, mode)
		}
	}
	for _, item := range items {
		v, ok := data[item.Key]
		if !ok {
			if optional != nil && *optional {
				continue
			}
			return fmt.Errorf("%s has no key %s", what, item.Key)
		}
		into[item.Path] = file(v, item.Mode, mode)
	}
	return nil
}

func (vs *Set) addDownward(into payload, items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	for _, item := range items {
		var v string
		var err error
		if item.FieldRef != nil {
			v, err = vs.Facts.Field(item.FieldRef.FieldPath)
		} else {
			v, err = vs.Facts.Resource(item.ResourceFieldRef, nil)
		}
		if err != nil {
			return err
		}
		into[item.Path] = file([]byte(v), item.Mode, mode)
	}
	return nil
}

func file(data []byte, modes ...*int32) payloadFile {
	f := payloadFile{data: data, mode: defaultFileMode}
	for _, m := range modes {
		if m != nil {
			f.mode = os.FileMode(*m)
			break
		}
	}
	return f
}

// writePayload replaces the volume's content atomically, as a kubelet does: the files are in
// a new directory, to which the link ..data points, and the visible names are links through
// ..data.
func (vs *Set) writePayload(dir string, content payload) error {
	fresh, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	tops := map[string]bool{}
	for name, f := range content {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("path %q is outside of the volume", name)
		}
		if err := vs.writePayloadFile(filepath.Join(fresh, name), f); err != nil {
			return err
		}
		top, _, _ := strings.Cut(filepath.Clean(name), "/")
		tops[top] = true
	}
	before, _ := os.Readlink(filepath.Join(dir, "..data"))
	next := filepath.Join(dir, "..data_next")
	if err := os.Symlink(filepath.Base(fresh), next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		return err
	}
	for top := range tops {
		err := os.Symlink(filepath.Join("..data", top), filepath.Join(dir, top))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	if before != "" {
		return os.RemoveAll(filepath.Join(dir, before))
	}
	return nil
}

func (vs *Set) writePayloadFile(path string, f payloadFile) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, f.data, 0o600); err != nil {
		return err
	}
	mode, uid, gid := f.mode, -1, vs.fsGroup()
	switch {
	case gid >= 0:
		mode |= 0o440
	case f.token && vs.onlyUser() != nil:
		mode, uid = 0o600, int(*vs.onlyUser())
	}
	if uid >= 0 && !vs.Root {
		uid = -1
	}
	if uid >= 0 || gid >= 0 {
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

// onlyUser returns the user as which all containers of the pod run, or nil if they differ.
func (vs *Set) onlyUser() *uint32 {
	var only *uint32
	for _, list := range [][]corev1.Container{vs.Pod.Spec.InitContainers, vs.Pod.Spec.Containers} {
		for i := range list {
			id, err := identity.Of(vs.Pod, &list[i], vs.Root)
			if err != nil || only != nil && *only != id.UID {
				return nil
			}
			only = ptr.To(id.UID)
		}
	}
	return only
}
