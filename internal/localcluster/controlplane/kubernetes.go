package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/configz"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// newAPIServer builds the API server and returns its handler and the function that runs it,
// which returns after a shutdown in which requests in flight can finish.
func (c Config) newAPIServer(ctx context.Context, etcdURL string) (http.Handler, func(context.Context) error, error) {
	o := apiserveroptions.NewServerRunOptions()
	if c.Gate != nil {
		addGate(o, c.Gate)
	}
	if err := parse("kube-apiserver", o.Flags(), c.apiServerFlags(etcdURL)); err != nil {
		return nil, nil, err
	}
	o.SecureServing.Listener = c.API
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, nil, err
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, nil, fmt.Errorf("kube-apiserver: %w", errors.Join(errs...))
	}
	config, err := apiserver.NewConfig(completed)
	if err != nil {
		return nil, nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	custom := &config.ApiExtensions.ExtraConfig
	custom.CRDRESTOptionsGetter = sharingOptions{custom.CRDRESTOptionsGetter}
	aggregator := config.Aggregator.GenericConfig // all requests go through it
	aggregator.BuildHandlerChainFunc = newFairness().chain(aggregator.BuildHandlerChainFunc)
	cc, err := config.Complete()
	if err != nil {
		return nil, nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	chain, err := apiserver.CreateServerChain(cc)
	if err != nil {
		return nil, nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	return chain.GenericAPIServer.Handler, prepared.Run, nil
}

// runScheduler runs kube-scheduler with its default configuration until ctx ends.
func (c Config) runScheduler(ctx context.Context) error {
	o := scheduleroptions.NewOptions()
	flags := []string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--authentication-skip-lookup=true",
	}
	if err := parse("kube-scheduler", *o.Flags, flags); err != nil {
		return err
	}
	cc, s, err := scheduler.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	if err := scheduler.Run(ctx, cc, s); err != nil && ctx.Err() == nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	return nil
}

// runControllers runs kube-controller-manager's controllers until ctx ends.
func (c Config) runControllers(ctx context.Context) error {
	o, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known, off, aliases := kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases()
	if err := parse("kube-controller-manager", o.Flags(known, off, aliases), c.controllerManagerFlags()); err != nil {
		return err
	}
	config, err := o.Config(ctx, known, off, aliases)
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	config.Kubeconfig.TLSClientConfig, config.Kubeconfig.Transport = rest.TLSClientConfig{}, c.Controllers
	agent := rest.AddUserAgent(config.Kubeconfig, kcmoptions.KubeControllerManagerUserAgent)
	if config.Client, err = kubernetes.NewForConfig(agent); err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	defer configz.Delete(kcm.ConfigzName) // a second control plane in this process registers it again
	if err := kcm.Run(ctx, config.Complete()); err != nil && ctx.Err() == nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	return nil
}
