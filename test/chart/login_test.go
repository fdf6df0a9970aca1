package chart

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// loginObjects are the tested parts of the login node.
type loginObjects struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		ExternalTrafficPolicy string
		Template              struct {
			Spec struct {
				Containers []struct {
					SecurityContext struct {
						Capabilities struct{ Drop, Add []string }
					}
				}
			}
		}
	}
}

// renderLogin renders the chart and returns an object named berth-login by kind.
func renderLogin(t *testing.T, set ...string) func(kind string) loginObjects {
	t.Helper()
	args := append([]string{"--set", "login.hostKeysSecret=mine"}, alice...)
	for _, s := range set {
		args = append(args, "--set", s)
	}
	out, output, err := template(t, args...)
	if err != nil {
		t.Fatalf("%v %s", err, output)
	}
	return func(kind string) loginObjects {
		for text := range strings.SplitSeq(out, "\n---\n") {
			var o loginObjects
			if yaml.Unmarshal([]byte(text), &o) == nil && o.Kind == kind && o.Metadata.Name == "berth-login" {
				return o
			}
		}
		t.Fatalf("no %s berth-login in %s", kind, set)
		return loginObjects{}
	}
}

// The login node sees the addresses of its clients, or its configuration states that it
// does not.
func TestLoginNodeSeesAddressesOfClients(t *testing.T) {
	for _, c := range []struct {
		set    []string
		policy string
		shared bool
	}{
		{nil, "Local", false},
		{[]string{"login.service.type=NodePort"}, "Local", false},
		{[]string{"login.service.type=ClusterIP"}, "", false},
		{[]string{"login.service.externalTrafficPolicy=Cluster"}, "Cluster", true},
		{[]string{"login.service.externalTrafficPolicy=Cluster", "login.config.proxyProtocolFrom={10.0.0.0/8}"}, "Cluster", false},
	} {
		object := renderLogin(t, c.set...)
		if got := object("Service").Spec.ExternalTrafficPolicy; got != c.policy {
			t.Errorf("%v: externalTrafficPolicy %q, want %q", c.set, got, c.policy)
		}
		var config struct{ SharedSources []string }
		if err := yaml.Unmarshal([]byte(object("ConfigMap").Data["loginnode.yaml"]), &config); err != nil {
			t.Fatal(err)
		}
		if (len(config.SharedSources) == 2) != c.shared {
			t.Errorf("%v: sharedSources %v", c.set, config.SharedSources)
		}
	}
}

// The login node's pod has the capabilities that it needs (loginnode's
// TestCapabilitiesOfThePodAreExact tries them), and with users' pods none.
func TestCapabilitiesOfLoginNode(t *testing.T) {
	for set, want := range map[string][]string{
		"login.replicas=1": {"SETUID", "SETGID", "CHOWN", "KILL"},
		"login.pods.enabled=true,home.volume.persistentVolumeClaim.claimName=homes": nil,
	} {
		got := renderLogin(t, set)("StatefulSet").Spec.Template.Spec.Containers[0].SecurityContext.Capabilities
		if !slices.Equal(got.Drop, []string{"ALL"}) || !slices.Equal(got.Add, want) {
			t.Errorf("%s: %+v", set, got)
		}
	}
}
