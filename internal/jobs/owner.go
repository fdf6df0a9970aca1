package jobs

import (
	"context"
	"net/url"
	"strconv"

	"github.com/berth-hpc/berth/internal/kube"
)

// Owner is a user of the cluster.
type Owner struct {
	Name      string
	UID, GID  int64
	Namespace string
}

func (u *user) owner() *Owner {
	return &Owner{Name: u.Metadata.Name, UID: u.Spec.UID, GID: u.Spec.GID, Namespace: u.Spec.Namespace}
}

// Owner returns the user with this name or uid (sbatch --uid), or nil if there is
// none. Only administrators may read users.
func (c *Client) Owner(ctx context.Context, nameOrUID string) (*Owner, error) {
	uid, err := strconv.ParseInt(nameOrUID, 10, 64)
	if err != nil {
		var u user
		err := c.api.Get(ctx, apiRoot+"/users/"+url.PathEscape(nameOrUID), nil, &u)
		switch {
		case kube.KindOf(err) == kube.NotFound:
			return nil, nil
		case err != nil:
			return nil, err
		case u.Metadata.Name != nameOrUID || nameOrUID == "": // the path, as with "..", is not that of a user
			return nil, nil
		}
		return u.owner(), nil
	}
	var list struct {
		Items []user `json:"items"`
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
