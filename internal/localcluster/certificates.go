package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/localcluster/controlplane"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Identities of the cluster's own parts.
const (
	masters           = "system:masters"
	identityScheduler = "system:berth-scheduler"
	identityKCM       = "system:kube-controller-manager"
	identityJobSet    = "system:jobset"
	identityLocal     = "system:berth-local"
)

// Names of the files of certificates of this package; controlplane has others.
const (
	certQueue       = "queue"       // server of the API role
	certNodes       = "nodes"       // server of the kubelet API
	certScheduler   = "scheduler"   // client of the API server
	certControllers = "controllers" // client of the API server
)

// file is a certificate in files of the PKI.
type file struct {
	name string
	ca   *pki.Authority
	leaf pki.Leaf
}

// certificateFiles returns the certificates in files.
func (k *cluster) certificateFiles() []file {
	ca := k.pki.CA
	hosts := []string{
		"127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.255.0.1",
	}
	queue := []string{"127.0.0.1", "localhost", "berth-api.berth-system.svc"}
	if k.network != nil {
		gateway := k.network.Gateway().String()
		hosts, queue = append(hosts, gateway), append(queue, gateway)
	}
	admin := func(name string) pki.Leaf { return pki.Leaf{CommonName: name, Organizations: []string{masters}} }
	return []file{
		{"apiserver", ca, pki.Leaf{CommonName: "kube-apiserver", Hosts: hosts}},
		{"webhook", ca, pki.Leaf{CommonName: "jobset-webhook", Hosts: []string{"127.0.0.1"}}},
		{"kubelet-client", ca, pki.Leaf{CommonName: "kube-apiserver-kubelet-client"}},
		{"front-proxy", k.pki.FrontProxy, pki.Leaf{CommonName: controlplane.FrontProxyName}},
		{certQueue, ca, pki.Leaf{CommonName: "berth-api", Hosts: queue}},
		{certNodes, ca, pki.Leaf{CommonName: "system:node", Hosts: []string{"127.0.0.1", "localhost"}}},
		{certScheduler, ca, pki.Leaf{CommonName: identityScheduler}},
		{certControllers, ca, admin(identityKCM)},
	}
}

// certify creates certificates and the kubeconfigs of administrator, scheduler and
// controllers.
func (k *cluster) certify() error {
	var err error
	k.issued = k.Now()
	if k.pki, err = pki.Open(k.state.path("pki"), k.Now, k.certificateLife()); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	for _, f := range k.certificateFiles() {
		if err := k.pki.Write(f.name, f.ca, f.leaf); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
	}
	if err := k.issueTokens(); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	k.admin = k.client(identityLocal)
	return errors.Join(
		k.state.write(FileScheduler, k.pki.Kubeconfig(k.info.Server, certScheduler, identityScheduler, "")),
		k.state.write(fileControllers, k.pki.Kubeconfig(k.info.Server, certControllers, identityKCM, "")),
		k.writeAdminKubeconfig(), k.writeSchedulerArgs(),
	)
}

// writeAdminKubeconfig writes the administrator's kubeconfig with a new certificate in it:
// people copy that file.
func (k *cluster) writeAdminKubeconfig() error {
	pair, err := k.pki.CA.Sign(pki.Leaf{CommonName: k.Admin.Name, Organizations: []string{masters}})
	if err != nil {
		return err
	}
	return k.state.write(FileAdmin,
		pki.Kubeconfig(k.info.Server, k.pki.CA.CertPEM, pair, k.Admin.Name, k.Admin.Namespace(),
			k.direct(k.Admin.Name)))
}

// client returns the client configuration of a part of this process. There are no rate limits,
// because the server is in the same process and serves only this cluster.
func (k *cluster) client(identity string) *rest.Config {
	return &rest.Config{
		Host: k.info.Server, Transport: k.inProcess.Transport(k.tokens[identity]),
		QPS: 5000, Burst: 10000,
	}
}

func (k *cluster) certificateLife() time.Duration { return cmp.Or(k.CertificateLife, pki.LeafLife) }

// startRenewal renews the certificates whenever they have used two thirds of their time, or
// the machine's clock is before the time at which they were issued. It also keeps the cluster
// known on the machine. The returned function ends both.
func (k *cluster) startRenewal() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The timers of a machine that sleeps stand still, so one timer for the whole time
		// could be late.
		tick := time.NewTicker(min(k.certificateLife()/30, 10*time.Minute))
		defer tick.Stop()
		missing := time.NewTicker(restoreInterval)
		defer missing.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				k.renewIfDue()
			case <-missing.C:
				k.restore()
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (k *cluster) renewIfDue() {
	now, life := k.Now(), k.certificateLife()
	// Round(0) compares the clock's time, which is what certificates are checked with.
	if age := now.Round(0).Sub(k.issued.Round(0)); age >= 0 && age < life*2/3 {
		return
	}
	if err := k.renew(); err != nil {
		k.Log.Error("renewing certificates; it is tried again", "valid until", k.issued.Add(life), "error", err)
		return
	}
	k.issued = now
	k.Log.Info("certificates were renewed", "valid until", now.Add(life))
}

// renew replaces all certificates. Who uses them reads the files again.
func (k *cluster) renew() error {
	k.kubeconfigs.Lock()
	defer k.kubeconfigs.Unlock()
	var errs []error
	for _, f := range k.certificateFiles() {
		errs = append(errs, k.pki.Renew(f.name, f.ca, f.leaf))
	}
	errs = append(errs, k.writeAdminKubeconfig())
	if k.Login && isDir(k.state.path(dirLogin)) {
		errs = append(errs, k.writeLoginKubeconfig())
	}
	admin, err := os.ReadFile(k.info.Kubeconfig)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	latest := map[string][]byte{k.Admin.Name: admin}
	for i := range k.homes {
		h := &k.homes[i]
		data, err := k.userKubeconfig(h.user)
		if err == nil {
			err = renewHome(h.user, h.data, data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("kubeconfig of user %s: %w", h.user.Name, err))
			continue
		}
		h.data, latest[h.user.Name] = data, data
	}
	for i := range k.machine {
		if data, ok := latest[k.machine[i].user.Name]; ok {
			errs = append(errs, k.machine[i].renew(data))
		}
	}
	return errors.Join(errs...)
}
