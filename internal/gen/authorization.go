package gen

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/authz"
)

// authorizationFile is the path of the page about rights.
const authorizationFile = "docs/authorization.md"

const authorizationHead = `# Who may do what

This page is generated from the tables with which admission, the queue API and accounting decide (` + "`internal/authz`" + `; ` + "`make generate`" + `). The same
rules apply to all clients: the commands, ` + "`kubectl`" + ` and other clients of the API server, and processes inside jobs.

## Callers

| caller | identified by | may act as |
|---|---|---|
| user | the identities of a User object (` + "`spec.identities`" + `) | the user; *operator* or *administrator* by ` + "`spec.adminLevel`" + ` |
| process in a job | the token of its pod: the ServiceAccount ` + "`berth-job`" + ` of the user's namespace, bound to that pod | the user, with everything that the user may. **A job of an administrator is an administrator of Berth**: the author of its script, of its image or of a file that it runs controls the cluster. Administrators should submit jobs as another user |
| login node | its own ServiceAccount | nobody: it has no permissions for jobs. But it requests the tokens of users' ServiceAccounts from the API server, so **an attacker who controls a login node can act as every user who may log in there**, operators and administrators included. If that is too much, give users with an ` + "`adminLevel`" + ` a second User for daily work |
| agent | its pod's token and the key of its job | it may report about its own job, and nothing else ([0001](decisions/0001-pod-tokens-authenticate-agents.md)) |
| coordinator | ` + "`spec.coordinators`" + ` of an Account, which includes the accounts below it | the owner of the jobs of these accounts, where the table says so; clients of the API server also need a RoleBinding in the users' namespaces |
| administrator | ` + "`adminLevel: Administrator`" + `, or the group ` + "`system:masters`" + ` | everything in Berth except running programs as another user |
| Berth's processes | the identities that the scheduler is started with | everything |
| Kubernetes' controllers | ` + "`system:kube-controller-manager`" + `, ServiceAccounts of kube-system | delete jobs, and change their metadata |
| anonymous | | nothing: the API server refuses |

Kubernetes' own rules (RBAC) apply before these: a user may read, create, change and delete BatchJobs in the user's own namespace. A user cannot create pods, write
statuses, or read other users' objects. Others see only the rows of a job in the queue API, without script and environment.

## Actions

*yes*; *no*; *unless private*: unless ` + "`PrivateData`" + ` has the word; *if set*: with the parameter named; *bounded*: as the note says.

`

const fieldsHead = `
## Fields of a job

The fields of a BatchJob's ` + "`spec`" + `, and their names in ` + "`scontrol update`" + `. *At submission* says who may set a value, *later* who may change it (with ` + "`scontrol update`" + ` or by a
change of the object). The owner's column also applies to coordinators and to the tokens of the owner's jobs. *Checked*: the job must be one that its user could submit now
(partition, account, QOS, reservation, licenses, paths, size); an operator may choose any QOS.

| field | scontrol | at submission | later | while | bounds |
|---|---|---|---|---|---|
`

// columns are the roles of the table of actions.
var columns = []authz.Role{authz.User, authz.Owner, authz.Coordinator, authz.Operator, authz.Administrator}

// authorization returns the page about rights.
func authorization() string {
	var b strings.Builder
	b.WriteString(authorizationHead)
	b.WriteString(
		"| object | action | another user | owner | coordinator | operator | administrator | note |\n|---|---|---|---|---|---|---|---|\n",
	)
	for _, r := range authz.Rules() {
		fmt.Fprintf(&b, "| %s | %s |", r.Object, r.Action)
		for _, role := range columns {
			fmt.Fprintf(&b, " %s |", granted(r.Grant(authz.Of(authz.Anyone, role))))
		}
		fmt.Fprintf(&b, " %s |\n", note(&r))
	}
	b.WriteString(fieldsHead)
	for _, f := range authz.Fields() {
		if len(f.Paths) > 0 {
			fmt.Fprintf(
				&b,
				"| `%s` | %s | %s | %s | %s | %s |\n",
				strings.Join(f.Paths, "`, `"),
				strings.Join(f.Keys, ", "),
				f.Set,
				f.Change,
				while(&f),
				f.Bound,
			)
		}
	}
	return b.String()
}

func granted(g authz.Grant) string {
	return map[authz.Grant]string{authz.Deny: "no", authz.Public: "unless private", authz.Optional: "if set",
		authz.Limited: "bounded", authz.Allow: "yes"}[g]
}

func note(r *authz.Rule) string {
	var list []string
	if r.Private != "" {
		list = append(list, "`PrivateData="+r.Private+"`")
	}
	if r.Option != "" {
		list = append(list, "`"+r.Option+"`")
	}
	if r.Note != "" {
		list = append(list, r.Note)
	}
	return strings.Join(list, "; ")
}

func while(f *authz.Field) string {
	switch {
	case f.Change == authz.Nobody:
		return ""
	case f.While == authz.Waiting && f.Checked:
		return "it waits; checked"
	case f.While == authz.Waiting:
		return "it waits"
	case f.Checked:
		return "checked while it waits"
	}
	return ""
}
