// Package priority computes job priorities as Slurm's priority/multifactor
// plugin does: fair share over the tree of accounts (Fair Tree and the classic
// algorithm), age, size, partition, QOS, association, TRES, nice. It is pure:
// the usage and the time are arguments.
package priority

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// Root is the account above all others.
const Root = "root"

// node is an account or an association in the tree.
type node struct {
	account, user string
	parent        *node
	children      []*node

	shares     int64 // raw
	priority   int64 // of the association
	ownUsage   float64
	totalUsage float64 // its own and that of all nodes below

	normShares, normUsage   float64 // relative to the root
	levelShares, levelUsage float64 // relative to the siblings
	effectiveUsage          float64 // of the classic algorithm
	levelFS                 float64
	factor                  float64
}

func (n *node) isUser() bool { return n.user != "" }

// Tree is the tree of accounts with the fair share of every association.
type Tree struct {
	root    *node
	users   map[status.AssociationKey]*node
	maxPrio int64
	classic bool
}

// NewTree returns the tree. usage is what each association has used, decayed, in
// billing-seconds; associations that exist only there are added. classic selects the
// algorithm of PriorityFlags=NO_FAIR_TREE.
func NewTree(
	accounts []*v1alpha1.Account, users []*v1alpha1.User, usage map[status.AssociationKey]float64, classic bool,
) *Tree {
	t := &Tree{root: &node{account: Root}, users: map[status.AssociationKey]*node{}, classic: classic}
	byName := map[string]*node{Root: t.root}
	for _, a := range accounts {
		if a.Name != Root {
			byName[a.Name] = &node{account: a.Name, shares: shares(&a.Spec.Limits), priority: a.Spec.Limits.Priority}
		}
	}
	for _, a := range accounts {
		if n := byName[a.Name]; n != t.root {
			addChild(parentOf(byName, a, t.root), n)
		}
	}
	for _, u := range users {
		t.addUser(byName, u)
	}
	t.addRoot()
	for k, used := range usage {
		if n := t.users[k]; n != nil {
			n.ownUsage = used
		} else if byName[k.Account] != nil && k.User != "" {
			t.addAssociation(byName[k.Account], k, 1, 0).ownUsage = used
		}
	}
	t.root.sumUsage()
	t.root.normShares, t.root.normUsage = 1, 1
	t.root.normalize(t.root.totalUsage)
	t.computeFactors()
	return t
}

func shares(l *v1alpha1.Limits) int64 {
	if l.Share == 0 {
		return 1
	}
	return l.Share
}

// parentOf returns the account above a, or root if that is unknown or the accounts form
// a cycle.
func parentOf(byName map[string]*node, a *v1alpha1.Account, root *node) *node {
	p := byName[a.Spec.Parent]
	if p == nil {
		return root
	}
	for up := p; up != nil; up = up.parent {
		if up.account == a.Name {
			return root
		}
	}
	return p
}

func addChild(parent, n *node) {
	n.parent = parent
	parent.children = append(parent.children, n)
}

// addUser adds the user's associations, one with each of its accounts.
func (t *Tree) addUser(byName map[string]*node, u *v1alpha1.User) {
	names := slices.Clone(u.Spec.Accounts)
	if d := u.Spec.DefaultAccount; d != "" && !slices.Contains(names, d) {
		names = append(names, d)
	}
	for i := range u.Spec.Associations {
		if a := u.Spec.Associations[i].Account; !slices.Contains(names, a) {
			names = append(names, a)
		}
	}
	for _, name := range names {
		parent, key := byName[name], status.AssociationKey{Account: name, User: u.Name}
		if parent == nil || t.users[key] != nil {
			continue
		}
		share, prio := int64(1), int64(0)
		for i := range u.Spec.Associations {
			if a := &u.Spec.Associations[i]; a.Account == name && a.Partition == "" {
				share, prio = shares(&a.Limits), a.Limits.Priority
			}
		}
		t.addAssociation(parent, key, share, prio)
	}
}

// addRoot adds the association that slurmdbd makes with every cluster, of the user root
// with the account root. Without accounts there is no tree.
func (t *Tree) addRoot() {
	k := status.AssociationKey{Account: Root, User: Root}
	if len(t.root.children) > 0 && t.users[k] == nil {
		t.addAssociation(t.root, k, 1, 0)
	}
}

func (t *Tree) addAssociation(parent *node, k status.AssociationKey, shares, prio int64) *node {
	n := &node{account: k.Account, user: k.User, shares: shares, priority: prio}
	addChild(parent, n)
	t.users[k] = n
	t.maxPrio = max(t.maxPrio, prio)
	return n
}

// sumUsage sets and returns the total usage of n and of all nodes below, and sorts the
// children: the users of an account come before the accounts in it, as in sshare.
func (n *node) sumUsage() float64 {
	n.totalUsage = n.ownUsage
	for _, c := range n.children {
		n.totalUsage += c.sumUsage()
	}
	slices.SortFunc(n.children, func(a, b *node) int {
		return cmp.Or(
			compareUsersFirst(a, b), strings.Compare(a.account, b.account), strings.Compare(a.user, b.user))
	})
	return n.totalUsage
}

// compareUsersFirst orders users before accounts.
func compareUsersFirst(a, b *node) int {
	switch {
	case a.isUser() == b.isUser():
		return 0
	case a.isUser():
		return -1
	}
	return 1
}

// members returns n's children. An account with Fairshare=parent is replaced by its
// members.
func (n *node) members() []*node {
	var out []*node
	for _, c := range n.children {
		if !c.isUser() && c.shares == v1alpha1.FairshareParent {
			out = append(out, c.members()...)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// normalize sets the normalized shares and usage of all nodes below n. total is the usage
// of the root.
func (n *node) normalize(total float64) {
	if n.parent == nil || n.shares != v1alpha1.FairshareParent {
		all := n.members()
		var shares, usage float64
		for _, c := range all {
			if c.shares != v1alpha1.FairshareParent {
				shares += float64(c.shares)
			}
			usage += c.totalUsage
		}
		for _, c := range all {
			c.normalizeIn(n, shares, usage, total)
		}
	}
	for _, c := range n.children {
		if !c.isUser() {
			if c.shares == v1alpha1.FairshareParent {
				c.normShares, c.normUsage, c.effectiveUsage = n.normShares, n.normUsage, n.effectiveUsage
			}
			c.normalize(total)
		}
	}
}

// normalizeIn sets the normalized shares and usage of n, a member of the account. shares
// and usage are the sums of all members, total is the usage of the root.
func (n *node) normalizeIn(account *node, shares, usage, total float64) {
	if n.shares == v1alpha1.FairshareParent {
		n.levelShares, n.levelUsage = 1, 1
		n.normShares, n.normUsage = account.normShares, account.normUsage
		n.effectiveUsage, n.levelFS = account.effectiveUsage, account.levelFS
		return
	}
	if shares > 0 {
		n.levelShares = float64(n.shares) / shares
	}
	if usage > 0 {
		n.levelUsage = n.totalUsage / usage
	}
	if total > 0 {
		n.normUsage = n.totalUsage / total
	}
	n.normShares = n.levelShares * account.normShares
	n.effectiveUsage = n.normUsage
	if account.parent != nil {
		n.effectiveUsage += (account.effectiveUsage - n.normUsage) * n.levelShares
	}
	switch {
	case n.levelShares == 0:
		n.levelFS = 0
	case n.levelUsage == 0:
		n.levelFS = math.Inf(1)
	default:
		n.levelFS = n.levelShares / n.levelUsage
	}
}

// computeFactors sets the fair-share factor of every association.
func (t *Tree) computeFactors() {
	if t.classic {
		for _, n := range t.users {
			n.factor = 0
			if n.normShares > 0 {
				n.factor = math.Exp2(-n.effectiveUsage / n.normShares)
			}
		}
		return
	}
	r := ranking{total: len(t.users), next: len(t.users), rank: len(t.users)}
	r.walk(t.root.members(), false)
}

// ranking assigns the ranks of Fair Tree (Slurm's fair_tree page): to users in the order
// of a depth-first walk, the best level fair share first. Equal users have the same rank.
type ranking struct{ total, next, rank int }

// walk ranks one level. tied reports whether its first member has the same level fair
// share as the node before it.
func (r *ranking) walk(level []*node, tied bool) {
	level = slices.Clone(level)
	slices.SortStableFunc(level, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.levelFS, a.levelFS), compareUsersFirst(a, b))
	})
	for i := 0; i < len(level); i++ {
		n := level[i]
		same := tied
		if i > 0 {
			same = level[i-1].levelFS == n.levelFS
		}
		if n.isUser() {
			if !same {
				r.rank = r.next
			}
			n.factor = float64(r.rank) / float64(r.total)
			r.next--
			continue
		}
		// Accounts that are tied are merged.
		merged := n.members()
		for i+1 < len(level) && !level[i+1].isUser() && level[i+1].levelFS == n.levelFS {
			i++
			merged = append(merged, level[i].members()...)
		}
		r.walk(merged, same)
	}
}

// Factor returns the association's fair-share factor, between 0 and 1. Without an
// association it is 0, or 1 if the cluster has no accounts at all.
func (t *Tree) Factor(k status.AssociationKey) float64 {
	if n := t.users[k]; n != nil {
		return n.factor
	}
	if len(t.root.children) == 0 {
		return 1
	}
	return 0
}

// Association returns the priority of the association, normalized and raw.
func (t *Tree) Association(k status.AssociationKey) (normalized float64, raw int64) {
	n := t.users[k]
	if n == nil || t.maxPrio == 0 {
		return 0, 0
	}
	return float64(n.priority) / float64(t.maxPrio), n.priority
}

// FairTree reports whether the algorithm is Fair Tree, not the classic one.
func (t *Tree) FairTree() bool { return !t.classic }

// Shares returns the tree as sshare shows it.
func (t *Tree) Shares() []status.Share {
	return t.root.list(nil, 0, t.classic)
}

func (n *node) list(out []status.Share, depth int, classic bool) []status.Share {
	s := status.Share{
		Account: n.account, User: n.user, Depth: depth,
		Parent: n.shares == v1alpha1.FairshareParent, RawShares: n.shares,
		NormShares: n.levelShares, RawUsage: n.totalUsage, NormUsage: n.normUsage, EffectvUse: n.levelUsage,
		FairShare: n.factor, LevelFS: n.levelFS,
	}
	if n.parent == nil {
		s.EffectvUse = 1
	}
	if classic {
		s.NormShares, s.EffectvUse = n.normShares, n.effectiveUsage
		if !n.isUser() && n.normShares > 0 {
			s.FairShare = math.Exp2(-n.effectiveUsage / n.normShares)
		}
	}
	if math.IsInf(s.LevelFS, 1) {
		s.LevelFS = -1
	}
	out = append(out, s)
	for _, c := range n.children {
		out = c.list(out, depth+1, classic)
	}
	return out
}
