package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRenewalIsRetried checks that the token of a volume is renewed after several failed
// attempts.
func TestRenewalIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		requests := 0
		client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
			requests++
			if requests > 1 && requests < 5 {
				return true, nil, errors.New("the API server is down")
			}
			return true, &authentication.TokenRequest{Status: authentication.TokenRequestStatus{
				Token: fmt.Sprint("token ", requests), ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
			}}, nil
		})
		v := corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			},
		}}}
		dir := t.TempDir()
		vs := &Set{
			Pod:    &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}},
			Client: client,
			Later:  func(d time.Duration, f func()) { time.AfterFunc(d, f) },
			Log:    t.Logf,
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := vs.fill(ctx, &v, dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(58 * time.Minute) // of the fake clock; the first renewal is due after 48 minutes
		synctest.Wait()
		text, err := os.ReadFile(filepath.Join(dir, "token"))
		if err != nil || string(text) != "token 5" {
			t.Errorf("the token is %q (%v), want that of the fifth request", text, err)
		}
	})
}
