package realnode

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// dnsAddress is that of the Service of the cluster's DNS, which kubelets give
// to pods.
const dnsAddress = "10.255.0.10"

const (
	dnsName      = "coredns"
	dnsNamespace = "kube-system"
)

// corefile answers for the cluster's names and for no others: there is no way
// out of a site.
const corefile = `.:5353 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa {
        pods insecure
    }
}
`

// makeCoreDNS builds CoreDNS from the module in this directory.
func makeCoreDNS(ctx context.Context, root string) (string, error) {
	return makeNested(ctx, root, dnsName)
}

// startDNS runs CoreDNS as a cluster does, and returns when it answers.
func (s *Site) startDNS(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: dnsName, Namespace: dnsNamespace, Labels: map[string]string{"k8s-app": "kube-dns"}}
	create := metav1.CreateOptions{}
	for _, make := range []func() error{
		func() error {
			_, err := s.Client.CoreV1().ServiceAccounts(dnsNamespace).Create(ctx,
				&corev1.ServiceAccount{ObjectMeta: meta}, create)
			return err
		},
		func() error {
			_, err := s.Client.RbacV1().ClusterRoles().Create(ctx, dnsRole(), create)
			return err
		},
		func() error {
			_, err := s.Client.RbacV1().ClusterRoleBindings().Create(ctx, dnsBinding(), create)
			return err
		},
		func() error {
			_, err := s.Client.CoreV1().ConfigMaps(dnsNamespace).Create(ctx,
				&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"Corefile": corefile}}, create)
			return err
		},
		func() error {
			_, err := s.Client.CoreV1().Services(dnsNamespace).Create(ctx,
				&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
					ClusterIP: dnsAddress, Selector: meta.Labels,
					Ports: []corev1.ServicePort{
						{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(5353)},
						{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: 53, TargetPort: intstr.FromInt32(5353)},
					}}}, create)
			return err
		},
		func() error {
			_, err := s.Client.AppsV1().Deployments(dnsNamespace).Create(ctx, dnsDeployment(meta), create)
			return err
		},
	} {
		if err := make(); err != nil {
			return fmt.Errorf("cluster DNS: %w", err)
		}
	}
	err := waitFor(ctx, time.Minute, func() bool {
		d, err := s.Client.AppsV1().Deployments(dnsNamespace).Get(ctx, dnsName, metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas > 0
	})
	if err != nil {
		return fmt.Errorf("cluster DNS: %w", err)
	}
	return nil
}

func dnsRole() *rbacv1.ClusterRole {
	read := []string{"list", "watch"}
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: dnsName}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "pods", "namespaces", "endpoints"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
	}}
}

func dnsBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: dnsName},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: dnsName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: dnsName, Namespace: dnsNamespace}}}
}

func dnsDeployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	pod := corev1.PodSpec{
		ServiceAccountName: dnsName,
		NodeSelector:       map[string]string{"kubernetes.io/hostname": nodeNames[0]}, // tests take the last nodes away
		DNSPolicy:          corev1.DNSDefault,
		Containers: []corev1.Container{{
			Name: dnsName, Image: DNSImage, Args: []string{"-conf", "/etc/coredns/Corefile"},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/coredns"}},
			ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1,
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready",
					Port: intstr.FromInt32(8181)}},
			},
		}},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: dnsName},
			}}}},
	}
	one := int32(1)
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: pod},
	}}
}
