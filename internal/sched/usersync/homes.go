package usersync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/siteprogram"
)

// AnnotationHome on a User is the home that the site's program has made.
const AnnotationHome = "berth.hpc/home-made"

const (
	// homesTimeout bounds the programs of one pass; the next pass makes the other homes.
	homesTimeout = 5 * time.Minute
	homeTimeout  = time.Minute // of one program
	homePrograms = 4           // at a time
)

// makeHomes runs the site's program for each enabled user of a source whose home it has not
// made yet. It returns what failed; it is tried again in the next pass.
func (x *Controller) makeHomes(ctx context.Context) (problems []string) {
	if x.cfg.HomeProgram == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, homesTimeout)
	defer cancel()
	users := slices.DeleteFunc(x.cluster.Users.List(), func(u *v1alpha1.User) bool {
		source := u.Labels[v1alpha1.LabelSource]
		known := slices.ContainsFunc(x.sources, func(s namedSource) bool { return s.name == source })
		return !known || u.Spec.Disabled || u.Annotations[AnnotationHome] == homeOf(u)
	})
	failed := make([]string, len(users))
	var all errgroup.Group
	all.SetLimit(homePrograms)
	for i, u := range users {
		all.Go(func() error {
			if err := x.makeHome(ctx, u); err != nil {
				failed[i] = fmt.Sprintf("user %s: the home %s was not made: %v", u.Name, homeOf(u), err)
			}
			return nil
		})
	}
	_ = all.Wait()
	return slices.DeleteFunc(failed, func(s string) bool { return s == "" })
}

// homeOf returns the home of a user; that of Users without one is below /home.
func homeOf(u *v1alpha1.User) string { return cmp.Or(u.Spec.Home, "/home/"+u.Name) }

// makeHome runs the program with the name, the uid, the gid and the home of a user.
func (x *Controller) makeHome(ctx context.Context, u *v1alpha1.User) error {
	ctx, cancel := context.WithTimeout(ctx, homeTimeout)
	defer cancel()
	args := []string{
		u.Name, strconv.FormatInt(u.Spec.UID, 10), strconv.FormatInt(u.Spec.GID, 10), homeOf(u),
	}
	if err := siteprogram.Run(ctx, x.cfg.HomeProgram, args, nil); err != nil {
		return err
	}
	after := u.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, AnnotationHome, homeOf(u))
	if err := x.cluster.Client.Patch(ctx, after, client.MergeFrom(u)); err != nil {
		return err
	}
	x.cluster.Users.Apply(after)
	x.log.Info("home made", "user", u.Name, "home", homeOf(u))
	return nil
}
