package app

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// webhooksName is the name of the webhook configurations.
const webhooksName = "berth"

// target is the server that is registered in the API server.
type target struct {
	url    string // of the API role
	ca     []byte
	secret string // last part of the webhooks' paths; may be empty
	self   string // this process's identity
}

// register registers the API role in the API server: the leader for admission and, with
// the API role, for the queue API; a process with the API role alone for the queue API.
// Each new leader does so, so that requests go to the present one.
func register(ctx context.Context, c client.Client, cfg *Config, to target) error {
	u, err := url.Parse(to.url)
	if err != nil {
		return fmt.Errorf("URL of the API role: %w", err)
	}
	mutating := &admission.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooksName}}
	validating := &admission.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooksName}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: serviceName}}
	api := &apiregistration.APIService{ObjectMeta: metav1.ObjectMeta{Name: wire.QueueVersion + "." + wire.QueueGroup}}
	port := portOf(u)
	name, inCluster := serviceOf(u.Hostname())
	steps := []struct {
		o      client.Object
		change func()
		skip   bool
	}{
		{
			o: mutating, change: func() { mutating.Webhooks = to.mutatingWebhooks(cfg.Admit == nil) },
			skip: cfg.NoScheduler,
		},
		{
			o: validating, change: func() { validating.Webhooks = to.validatingWebhooks(cfg.Admit == nil) },
			skip: cfg.NoScheduler,
		},
		{o: service, change: func() { service.Spec = alias(u.Hostname(), port) }, skip: cfg.NoAPI || inCluster},
		{o: api, change: func() { api.Spec = queueAPI(name, port, to.ca) }, skip: cfg.NoAPI},
	}
	for _, s := range steps {
		if s.skip {
			continue
		}
		err := retry.OnError(retry.DefaultBackoff, isPassing, func() error {
			_, err := controllerutil.CreateOrUpdate(ctx, c, s.o, func() error { s.change(); return nil })
			return err
		})
		if err != nil {
			return fmt.Errorf("registering the API role (%T): %w", s.o, err)
		}
	}
	return nil
}

// serviceOf returns the name of the Service in Berth's namespace whose host name this is.
// For any other host it returns serviceName, a Service that is then created for the host.
func serviceOf(host string) (name string, inCluster bool) {
	if name, inCluster = strings.CutSuffix(host, "."+wire.SystemNamespace+".svc"); inCluster &&
		!strings.Contains(name, ".") {
		return name, true
	}
	return serviceName, false
}

// isConflict reports whether another process wrote the object at the same moment.
func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// isPassing reports whether the write may succeed when it is tried again: there was a
// conflict, or the API server could not answer.
func isPassing(err error) bool {
	return isConflict(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// baseOf returns the URL of the server without a path.
func baseOf(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", false
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), true
}

func portOf(u *url.URL) int32 {
	if p, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
		return int32(p)
	}
	return 443
}

// alias returns a Service for a host outside the cluster.
func alias(host string, port int32) corev1.ServiceSpec {
	return corev1.ServiceSpec{
		Type:            corev1.ServiceTypeExternalName,
		ExternalName:    host,
		Ports:           []corev1.ServicePort{{Name: "https", Port: port}},
		SessionAffinity: corev1.ServiceAffinityNone,
	}
}

func queueAPI(name string, port int32, ca []byte) apiregistration.APIServiceSpec {
	return apiregistration.APIServiceSpec{
		Group: wire.QueueGroup, Version: wire.QueueVersion,
		GroupPriorityMinimum: 1000, VersionPriority: 15,
		CABundle: ca,
		Service:  &apiregistration.ServiceReference{Namespace: wire.SystemNamespace, Name: name, Port: &port},
	}
}

// mutatingWebhooks returns the webhooks for pods and, with ofJobs, for BatchJobs. While
// they do not answer, nothing is admitted, because ids, users and limits depend on them.
// They are called only for Berth's own objects.
func (to target) mutatingWebhooks(ofJobs bool) []admission.MutatingWebhook {
	jobs := admission.MutatingWebhook{
		Name:         "batchjobs.mutate.berth.hpc",
		ClientConfig: to.at("/mutate/batchjobs"),
		Rules: rules(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "batchjobs",
			admission.Create, admission.Update),
		MatchConditions: to.exceptOwnWrites(),
	}
	pods := admission.MutatingWebhook{
		Name:         "pods.mutate.berth.hpc",
		ClientConfig: to.at("/mutate/pods"),
		Rules:        rules("", "v1", "pods", admission.Create),
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: wire.LabelJobID, Operator: metav1.LabelSelectorOpExists}}},
	}
	userPods := *pods.DeepCopy()
	userPods.Name, userPods.ObjectSelector = "user-pods.mutate.berth.hpc",
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: wire.LabelJobID, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	userPods.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: wire.LabelNamespace, Operator: metav1.LabelSelectorOpExists}}}
	workloads := *userPods.DeepCopy()
	workloads.Name, workloads.NamespaceSelector = "workloads.mutate.berth.hpc", nil
	workloads.MatchConditions = []admission.MatchCondition{
		{
			Name: "names-our-scheduler",
			Expression: fmt.Sprintf("has(object.spec.schedulerName) && object.spec.schedulerName == %q",
				wire.SchedulerName),
		},
		{Name: "tolerates-not-yet", Expression: tolerates}}
	all := []admission.MutatingWebhook{pods, userPods, workloads}
	if ofJobs {
		all = append([]admission.MutatingWebhook{jobs}, all...)
	}
	for i := range all {
		w := &all[i]
		w.FailurePolicy, w.SideEffects = ptr(admission.Fail), ptr(admission.SideEffectClassNoneOnDryRun)
		w.MatchPolicy, w.ReinvocationPolicy = ptr(admission.Equivalent), ptr(admission.NeverReinvocationPolicy)
		w.TimeoutSeconds, w.AdmissionReviewVersions = ptr(int32(10)), []string{"v1"}
	}
	return all
}

// tolerates excludes pods that already have the toleration of the webhook: all of them,
// if the API server has deploy/admission/pods.yaml.
var tolerates = fmt.Sprintf("!has(object.spec.tolerations) || !object.spec.tolerations.exists(t, "+
	`has(t.key) && t.key == %q && has(t.operator) && t.operator == "Exists" && !has(t.effect))`, wire.LabelManaged)

// exceptOwnWrites excludes the scheduler's own writes from the webhooks: every change
// of an object, and the jobs that it splits off an array, which already have their ids.
// The identity is that of an authenticated request and belongs to the scheduler alone.
// Cancelling thousands of jobs causes as many changes, on behalf of callers whose
// permissions the queue API has checked.
func (to target) exceptOwnWrites() []admission.MatchCondition {
	return []admission.MatchCondition{{
		Name: "not-written-by-the-scheduler",
		Expression: fmt.Sprintf(
			`request.userInfo.username != %q || request.operation == "CREATE" && (!has(object.spec.jobID) || object.spec.jobID == 0)`,
			to.self),
	}}
}

func (to target) validatingWebhooks(ofJobs bool) []admission.ValidatingWebhook {
	if !ofJobs {
		return nil
	}
	return []admission.ValidatingWebhook{{
		Name:         "batchjobs.validate.berth.hpc",
		ClientConfig: to.at("/validate/batchjobs"),
		Rules: rules(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "batchjobs",
			admission.Create, admission.Update, admission.Delete),
		MatchConditions: to.exceptOwnWrites(),
		FailurePolicy:   ptr(admission.Fail), SideEffects: ptr(admission.SideEffectClassNoneOnDryRun),
		MatchPolicy: ptr(admission.Equivalent), TimeoutSeconds: ptr(int32(10)), AdmissionReviewVersions: []string{"v1"},
	}}
}

// at returns the configuration of the webhook at a path: with the Service if the API
// role is behind Berth's Service (the API server does not use the cluster's DNS), else
// with its URL.
func (to target) at(path string) admission.WebhookClientConfig {
	if to.secret != "" {
		path += "/" + to.secret
	}
	u, err := url.Parse(to.url)
	if err != nil || u.Hostname() != serviceHost {
		return admission.WebhookClientConfig{URL: ptr(to.url + path), CABundle: to.ca}
	}
	return admission.WebhookClientConfig{CABundle: to.ca, Service: &admission.ServiceReference{
		Namespace: wire.SystemNamespace, Name: serviceName, Path: &path, Port: ptr(portOf(u))}}
}

func rules(group, version, resource string, ops ...admission.OperationType) []admission.RuleWithOperations {
	return []admission.RuleWithOperations{{
		Operations: ops,
		Rule: admission.Rule{APIGroups: []string{group}, APIVersions: []string{version},
			Resources: []string{resource}, Scope: ptr(admission.NamespacedScope)},
	}}
}

func ptr[T any](v T) *T { return &v }
