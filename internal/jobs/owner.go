package jobs

import (
	"context"
	"strconv"

	"github.com/berth-hpc/berth/internal/kube"
)

// Owner is a user of the cluster, as an administrator sees it.
type Owner struct {
	Name      string
	UID, GID  int64
	Namespace string
}

// userObject is the part of api/v1alpha1's User that is read here.
type userObject struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		UID       int64  `json:"uid"`
		GID       int64  `json:"gid"`
		Namespace string `json:"namespace"`
	} `json:"spec"`
}

func (u *userObject) owner() *Owner {
	return &Owner{Name: u.Metadata.Name, UID: u.Spec.UID, GID: u.Spec.GID, Namespace: u.Spec.Namespace}
}

// Owner finds a user by name or number (sbatch --uid); nil: there is none. Only
// administrators may look.
func (c *Client) Owner(ctx context.Context, user string) (*Owner, error) {
	uid, err := strconv.ParseInt(user, 10, 64)
	if err != nil {
		var u userObject
		err := c.api.Get(ctx, apiRoot+"/users/"+user, nil, &u)
		if kube.KindOf(err) == kube.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return u.owner(), nil
	}
	var list struct {
		Items []userObject `json:"items"`
	}
	if err := c.api.Get(ctx, apiRoot+"/users", nil, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Spec.UID == uid {
			return list.Items[i].owner(), nil
		}
	}
	return nil, nil
}
