package app

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/deploy"
	"github.com/berth-hpc/berth/internal/jobsets"
	"github.com/berth-hpc/berth/internal/wire"
)

// startJobSet serves JobSet's webhooks, registers them at Berth's Service, and returns
// a function that runs JobSet's controllers until ctx ends.
func startJobSet(ctx context.Context, cfg Config, c client.Client, e *endpoint) (run func() error, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.JobSetAddress)
	if err != nil {
		return nil, fmt.Errorf("JobSet's webhooks: %w", err)
	}
	hooks := jobsets.NewHooks(l, e.certificate.Server)
	ended := make(chan error, 1)
	go func() { ended <- jobsets.Run(ctx, cfg.Kube, hooks) }()
	select {
	case <-hooks.Started():
	case err := <-ended:
		_ = l.Close()
		return nil, fmt.Errorf("JobSet: %w", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	if err := registerJobSet(ctx, c, port, e.ca); err != nil {
		return nil, fmt.Errorf("registering JobSet's webhooks: %w", err)
	}
	return func() error { return <-ended }, nil
}

// registerJobSet writes JobSet's webhook configurations with Berth's Service as their
// address.
func registerJobSet(ctx context.Context, c client.Client, port string, ca []byte) error {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return err
	}
	for doc := range bytes.SplitSeq(deploy.JobSetWebhooks, []byte("\n---")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			return err
		}
		var o client.Object
		var change func()
		switch kind.Kind {
		case "":
			continue
		case "MutatingWebhookConfiguration":
			o, change, err = mutatingJobSet(doc, int32(number), ca)
		case "ValidatingWebhookConfiguration":
			o, change, err = validatingJobSet(doc, int32(number), ca)
		default:
			err = fmt.Errorf("unexpected %s", kind.Kind)
		}
		if err != nil {
			return err
		}
		err = retry.OnError(retry.DefaultBackoff, isConflict, func() error {
			_, err := controllerutil.CreateOrUpdate(ctx, c, o, func() error { change(); return nil })
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func mutatingJobSet(doc []byte, port int32, ca []byte) (client.Object, func(), error) {
	var want admission.MutatingWebhookConfiguration
	if err := yaml.Unmarshal(doc, &want); err != nil {
		return nil, nil, err
	}
	for i := range want.Webhooks {
		pointHere(&want.Webhooks[i].ClientConfig, port, ca)
	}
	have := &admission.MutatingWebhookConfiguration{}
	have.Name = want.Name
	return have, func() { have.Webhooks = want.Webhooks }, nil
}

func validatingJobSet(doc []byte, port int32, ca []byte) (client.Object, func(), error) {
	var want admission.ValidatingWebhookConfiguration
	if err := yaml.Unmarshal(doc, &want); err != nil {
		return nil, nil, err
	}
	for i := range want.Webhooks {
		pointHere(&want.Webhooks[i].ClientConfig, port, ca)
	}
	have := &admission.ValidatingWebhookConfiguration{}
	have.Name = want.Name
	return have, func() { have.Webhooks = want.Webhooks }, nil
}

// pointHere sets Berth's Service as the address of a webhook; its path stays.
func pointHere(c *admission.WebhookClientConfig, port int32, ca []byte) {
	c.Service.Namespace, c.Service.Name, c.Service.Port, c.CABundle = wire.SystemNamespace, serviceName, ptr(port), ca
}
