package frontproxy_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
)

// BenchmarkAuthenticate measures a request whose certificate is remembered, and one
// whose certificate is verified.
func BenchmarkAuthenticate(b *testing.B) {
	authority := fake.NewAuthority(b)
	now := time.Now()
	a := &frontproxy.Authenticator{
		Client: fake.Cluster(interceptor.Funcs{}, authority.ConfigMap()).Client,
		Now:    func() time.Time { return now },
	}
	r := request(b, authority.Client(b, fake.FrontProxyName), "anna")
	authenticate := func(b *testing.B) {
		if _, _, err := a.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
	authenticate(b)
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			authenticate(b)
		}
	})
	b.Run("verified", func(b *testing.B) {
		for b.Loop() {
			frontproxy.Forget(a)
			authenticate(b)
		}
	})
}
