package limits

import "testing"

func TestEnforced(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  Enforcement
	}{
		{nil, Enforcement{Associations: true, Limits: true, QOS: true}},
		{[]string{"none"}, Enforcement{}},
		{[]string{"associations"}, Enforcement{Associations: true}},
		{[]string{"qos"}, Enforcement{Associations: true, QOS: true}},
		{[]string{"wckeys"}, Enforcement{Associations: true, WCKeys: true}},
		{[]string{"safe"}, Enforcement{Associations: true, Limits: true, Safe: true}},
		{[]string{"all"}, Enforcement{true, true, true, true, true}},
	} {
		if got := Enforced(c.words); got != c.want {
			t.Errorf("%q: %+v", c.words, got)
		}
	}
}
