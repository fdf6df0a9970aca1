package namespaces

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

// apiServer answers what the egress policies need: the addresses of the Service
// "kubernetes", and NetworkPolicies, which it stores by path.
type apiServer struct {
	*testing.T
	mu       sync.Mutex
	address  string // of the API server
	policies map[string]*networkingv1.NetworkPolicy
	writes   int
}

const policiesOf = "/apis/networking.k8s.io/v1/namespaces/"

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices":
		s.reply(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[{"ports":[{"port":6443}],"endpoints":[{"addresses":["`+s.address+`"]}]}]}`)
	case path == "/api/v1/namespaces/default/services/kubernetes":
		s.reply(w, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"kubernetes","namespace":"default"},"spec":{"clusterIPs":["10.96.0.1","fd00::1"],"ports":[{"port":443}]}}`)
	case path == "/apis/networking.k8s.io/v1/networkpolicies":
		list := networkingv1.NetworkPolicyList{TypeMeta: metav1.TypeMeta{Kind: "NetworkPolicyList", APIVersion: "networking.k8s.io/v1"}}
		for _, p := range s.policies {
			list.Items = append(list.Items, *p)
		}
		s.encode(w, &list)
	case strings.HasPrefix(path, policiesOf):
		s.policy(w, r)
	default:
		http.NotFound(w, r)
		s.Errorf("%s %s", r.Method, path)
	}
}

func (s *apiServer) policy(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, policiesOf), "/"+EgressPolicyName)
	key = strings.TrimSuffix(key, "/networkpolicies")
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		p := &networkingv1.NetworkPolicy{}
		if err := json.NewDecoder(r.Body).Decode(p); err != nil {
			s.Error(err)
		}
		s.policies[key], s.writes = p, s.writes+1
	case http.MethodDelete:
		delete(s.policies, key)
		s.reply(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		return
	}
	if p := s.policies[key]; p != nil {
		p.TypeMeta = metav1.TypeMeta{Kind: "NetworkPolicy", APIVersion: "networking.k8s.io/v1"}
		s.encode(w, p)
		return
	}
	w.WriteHeader(http.StatusNotFound)
	s.reply(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
}

func (s *apiServer) reply(w http.ResponseWriter, body string) {
	if _, err := w.Write([]byte(body)); err != nil {
		s.Error(err)
	}
}

func (s *apiServer) encode(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.Error(err)
	}
}

// newClient returns a client that knows its kinds without discovery.
func newClient(t *testing.T, url string) client.Client {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	mapper.Add(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), meta.RESTScopeNamespace)
	c, err := client.New(&rest.Config{Host: url, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, client.Options{Scheme: control.NewScheme(), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEgressPolicies creates the policy of a user's namespace, follows the API
// server to another address, and deletes the policy when it is turned off.
func TestEgressPolicies(t *testing.T) {
	s := &apiServer{T: t, address: "192.0.2.1", policies: map[string]*networkingv1.NetworkPolicy{}}
	server := httptest.NewServer(s)
	defer server.Close()
	cluster := &control.Cluster{Client: newClient(t, server.URL)}
	file := filepath.Join(t.TempDir(), "egress.yaml")
	rules := "users:\n- to: [{podSelector: {}}]\n- ports: [{port: 53, protocol: UDP}, {port: 53}]\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	egress, err := ReadEgress(file)
	if err != nil {
		t.Fatal(err)
	}
	m := &Controller{cluster: cluster, settings: Settings{Egress: egress}}
	alice := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: v1alpha1.UserSpec{Namespace: "user-alice"}}
	apply := func(wantChanged bool) string {
		t.Helper()
		changed, err := m.prepareEgress(t.Context())
		if err != nil || changed != wantChanged {
			t.Errorf("changed %v, %v", changed, err)
		}
		if err := m.limitEgress(t.Context(), alice); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(s.policies["user-alice"].Spec)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	want := func(address string) string {
		return `{"podSelector":{},"egress":[{"to":[{"podSelector":{}}]},` +
			`{"ports":[{"protocol":"UDP","port":53},{"protocol":"TCP","port":53}]},` +
			`{"ports":[{"protocol":"TCP","port":443}],"to":[{"ipBlock":{"cidr":"10.96.0.1/32"}},{"ipBlock":{"cidr":"fd00::1/128"}}]},` +
			`{"ports":[{"protocol":"TCP","port":6443}],"to":[{"ipBlock":{"cidr":"` + address + `/32"}}]}],"policyTypes":["Egress"]}`
	}
	if got := apply(true); got != want("192.0.2.1") {
		t.Errorf("the policy is %s\nwant %s", got, want("192.0.2.1"))
	}
	if apply(false); s.writes != 1 {
		t.Errorf("an unchanged policy was written %d times", s.writes)
	}
	s.address = "192.0.2.2"
	if got := apply(true); got != want("192.0.2.2") {
		t.Errorf("the policy is %s\nwant %s", got, want("192.0.2.2"))
	}
	m.settings.Egress = nil
	if _, err := m.prepareEgress(t.Context()); err != nil || len(s.policies) != 0 {
		t.Errorf("%d policies are left, %v", len(s.policies), err)
	}
}

// TestReadEgress refuses what is no list of rules.
func TestReadEgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "egress.yaml")
	if _, err := ReadEgress(file); err == nil {
		t.Error("a file that does not exist was read")
	}
	if err := os.WriteFile(file, []byte("user: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEgress(file); err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("an unknown member: %v", err)
	}
}
