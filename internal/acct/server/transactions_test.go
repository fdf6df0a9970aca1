package server

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func TestTransactionsSayWhatChanged(t *testing.T) {
	named := metav1.ObjectMeta{Name: "x"}
	account := func(description, parent string) client.Object {
		return &v1alpha1.Account{
			ObjectMeta: named,
			Spec:       v1alpha1.AccountSpec{Description: description, Parent: parent},
		}
	}
	user := func(level string, accounts ...string) client.Object {
		u := &v1alpha1.User{ObjectMeta: named, Spec: v1alpha1.UserSpec{AdminLevel: level, Accounts: accounts}}
		if len(accounts) > 0 {
			u.Spec.DefaultAccount = accounts[0]
		}
		return u
	}
	qos := &v1alpha1.QOS{ObjectMeta: named, Spec: v1alpha1.QOSSpec{Priority: 5}}
	for name, c := range map[string]struct {
		old, now client.Object
		want     []string
	}{
		"new account":        {nil, account("d", "root"), []string{"Add Accounts x description='d'", "Add Associations account=x parent='root'"}},
		"account described":  {account("d", ""), account("e", ""), []string{"Modify Accounts x description='e'"}},
		"account moved":      {account("d", ""), account("d", "a"), []string{"Modify Associations account=x parent='a'"}},
		"nothing":            {account("d", ""), account("d", ""), nil},
		"account gone":       {account("d", ""), nil, []string{"Remove Accounts x ", "Remove Associations account=x "}},
		"user's first":       {user(""), user("", "a"), []string{"Add Users x default account=a", "Add Associations account=a user=x "}},
		"user's second":      {user("", "a"), user("", "a", "b"), []string{"Add Associations account=b user=x "}},
		"user's last":        {user("", "a"), user(""), []string{"Remove Associations account=a user=x ", "Remove Users x "}},
		"user of a level":    {user("", "a"), user("Admin", "a"), []string{"Modify Users x adminLevel='Admin'"}},
		"new QOS":            {nil, qos, []string{"Add QOS x priority='5'"}},
		"QOS without change": {qos, qos, nil},
	} {
		var got []string
		for _, x := range transactionsOf(&target{old: c.old, now: c.now}) {
			got = append(got, x.Action+" "+x.Where+" "+x.Info)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
