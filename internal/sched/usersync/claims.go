package usersync

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/usersource/claimsource"
	"github.com/berth-hpc/berth/internal/wire"
)

// openClaims returns a source of users who log in at an OpenID provider.
func (c *Config) openClaims(cluster *control.Cluster, s *SourceConfig, o claimsource.Options) *claimsource.Source {
	p := &c.Policy
	o.Store = &claimStore{cluster.Client, "berth-openid-" + s.Name}
	o.Allowed = p.AllowGroups
	o.Relevant = slices.Concat(p.AllowGroups, p.Administrators, p.Operators)
	for _, r := range slices.Concat(p.Accounts, p.Coordinators) {
		o.Relevant = append(o.Relevant, r.Group)
	}
	o.UIDOf = func(name string) int64 {
		if u, ok := cluster.Users.Get(name); ok && u.Labels[v1alpha1.LabelSource] == s.Name {
			return u.Spec.UID
		}
		return 0
	}
	o.Taken = func(uid int64) bool {
		return slices.ContainsFunc(cluster.Users.List(), func(u *v1alpha1.User) bool { return u.Spec.UID == uid })
	}
	return claimsource.New(*s.OpenID, o)
}

// Contact tells the sources that the API server has authenticated identity, with these groups and
// extra attributes. Safe for concurrent use.
func (x *Controller) Contact(identity string, groups []string, extra func(key string) []string) {
	for _, s := range x.sources {
		if c, ok := s.source.(*claimsource.Source); ok {
			c.Contact(identity, groups, extra)
		}
	}
}

// claimStore keeps the users of a source in a ConfigMap.
type claimStore struct {
	client client.Client
	name   string
}

const claimsKey = "users"

func (s *claimStore) Load(ctx context.Context) ([]byte, error) {
	m := &corev1.ConfigMap{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: s.name}, m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []byte(m.Data[claimsKey]), nil
}

func (s *claimStore) Save(ctx context.Context, data []byte) error {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wire.SystemNamespace, Name: s.name, Labels: map[string]string{labelPart: "berth"},
		},
		Data: map[string]string{claimsKey: string(data)},
	}
	err := s.client.Update(ctx, m)
	if apierrors.IsNotFound(err) {
		err = s.client.Create(ctx, m)
	}
	return err
}
