package sacctmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/keyvalue"
)

const listableEntities = `No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",
"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"`

// listable is something that list and show print: a table of the present state,
// or what run prints.
type listable struct {
	name  string
	least int // letters that are enough of it
	table *table
	run   func(*Options, context.Context, []string) error
}

// table is a listing of the present state.
type table struct {
	hint string // what Slurm adds to its refusal of an unknown condition; "": nothing
	rows func(*state, *listing) []row
	// others lists further clusters: those that commands find, and the present one.
	others  func(context.Context, *Options, *listing) []row
	columns string   // without format=
	from    []column // the columns that format= may name; nil: the usual ones
	// private is the error that users get who are not operators; "": everyone may list it.
	private      string
	assocColumns string // those that WithAssoc adds
	// conditions are those that select nothing if they have no value.
	conditions []string
	// words are the keywords without a value that the list knows beside where, set and
	// WithDeleted; others are names.
	words []string
	// numbered: what Slurm reads as names are numbers of records, which do not exist here.
	numbered string
	// printed are the headers of the columns that rows have, not even as spaces others; nil: all.
	printed []string
}

// listables are in Slurm's order.
var listables = []listable{
	{name: "accounts", least: 2, table: accountTable},
	{name: "associations", least: 2, table: &table{rows: listAssociations, columns: assocColumns,
		conditions: []string{"Accounts", "Clusters"}, numbered: "AssocId",
		words: []string{"Tree", "WOLimits", "WOPInfo", "WOPLimits", "WithSubAccounts", "WithRawQOS", "OnlyDefaults"}}},
	{name: "users", least: 1, table: userTable},
	{name: "qos", least: 1, table: &table{hint: hintConstant, rows: listQOS, columns: qosColumns,
		conditions: []string{"Names", "Descriptions", "ID"}}},
	{name: "clusters", least: 2, table: &table{
		hint: hintValue, rows: listCluster, others: listOtherClusters, columns: clusterColumns,
		conditions: []string{"Names", "Clusters"}, words: []string{"WOLimits"}}},
	{name: "wckeys", least: 1, table: &table{
		rows: listWCKeys, columns: wckeyColumns, private: noPrivilege,
		from: wckeyTable}},
	{name: "tres", least: 3, table: &table{hint: hintValue, rows: listTRES, columns: "Type,Name%15,ID",
		conditions: []string{"ID", "Types"}, printed: []string{"Type", "Name", "ID"}}},
	{name: "runawayjobs", least: 2, run: (*Options).showRunawayJobs},
	{name: "events", least: 1, run: (*Options).showEvents},
	{name: "transactions", least: 1, run: (*Options).showTransactions},
	{name: "txn", least: 2, run: (*Options).showTransactions},
	{name: "problems", least: 1, table: &table{
		rows: listProblems, columns: "Cluster,Account,User,Problem", private: accessDenied}},
	{
		name: "resources", least: 4,
		table: &table{hint: hintConstant, rows: listNothing, columns: "Name,Server,Type,Count,Allocated,ServerType"},
	},
	{
		name: "federations", least: 1,
		table: &table{
			rows: listNothing, others: listFederation, columns: "Federation,Cluster,ID%2,Features,FedState",
			conditions: []string{"Names", "Clusters"},
		},
	},
	{name: "configuration", least: 2, run: (*Options).showConfig},
	{name: "stats", least: 2, run: (*Options).showStats},
	{name: "reservations", least: 4, run: (*Options).showReservations},
}

var (
	accountTable = &table{
		hint: hintValue, rows: listAccounts, columns: accountColumns, assocColumns: accountAssocColumns,
		conditions: []string{"Names", "Accounts", "Descriptions", "Organizations"}, words: wordsOfNamed,
	}
	userTable = &table{
		hint: hintValue, rows: listUsers, columns: userColumns, assocColumns: userAssocColumns,
		conditions: []string{"Names", "Users"}, words: wordsOfNamed,
	}
	wordsOfNamed = []string{"WithAssoc", "WithCoordinator", "WOPLimits", "WithRawQOS"}
)

// Slurm's hints after the refusal of a condition. That of the lists of QOS and resources has
// the name of a constant of its source in place of "value".
const (
	hintValue    = " Use keyword 'set' to modify value"
	hintConstant = " Use keyword 'set' to modify SLURM_PRINT_VALUE"
)

// Errors that users get for lists of operators.
const (
	noPrivilege  = "Your user doesn't have privilege to perform this action"
	accessDenied = "Access/permission denied"
)

// showStats refuses the list of the accounting daemon's calls: there is no such daemon.
func (o *Options) showStats(ctx context.Context, _ []string) error {
	operator, err := o.operator(ctx)
	if err != nil {
		return err
	}
	if operator {
		fmt.Fprintln(o.p.Err, "sacctmgr: error: there is no list of stats here: see sdiag")
	} else {
		fmt.Fprintln(o.p.Err, "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_get_stats: RC:2002 "+noPrivilege)
	}
	return failed()
}

// show prints what the first word names.
func (o *Options) show(ctx context.Context, words []string) error {
	if len(words) > 0 {
		for i := range listables {
			l := &listables[i]
			switch {
			case !keyvalue.Abbreviates(words[0], l.name, l.least):
			case l.run != nil:
				return l.run(o, ctx, words[1:])
			default:
				return o.showTable(ctx, l.table, words[1:])
			}
		}
	}
	fmt.Fprintln(o.p.Err, listableEntities)
	return failed()
}

// listing has the arguments after the name of a list.
type listing struct {
	format                                string // "": the usual columns
	withAssoc, withCoordinators, tree     bool
	withoutParents                        bool
	withoutLimits, onlyDefaults           bool
	empty                                 []string // the conditions without a value
	users, accounts, names, qos           []string
	ids, types                            []string
	partitions, clusters, parents, wckeys []string
	descriptions, organizations           []string
}

func appendList(field func(*listing) *[]string) func(*listing, keyvalue.Pair) error {
	return func(l *listing, p keyvalue.Pair) error {
		*field(l) = append(*field(l), p.List()...)
		return nil
	}
}

func appendLowerList(field func(*listing) *[]string) func(*listing, keyvalue.Pair) error {
	return func(l *listing, p keyvalue.Pair) error {
		*field(l) = append(*field(l), p.LowerList()...)
		return nil
	}
}

func enableListing(field func(*listing) *bool) func(*listing, keyvalue.Pair) error {
	return func(l *listing, _ keyvalue.Pair) error {
		*field(l) = true
		return nil
	}
}

func listingNames(l *listing) *[]string { return &l.names }

// keywords returns the listingWords that the list knows.
func (t *table) keywords() keyvalue.Table[*listing] {
	return slices.DeleteFunc(slices.Clone(listingWords), func(k keyvalue.Keyword[*listing]) bool {
		common := k.Name == "" || k.Name == "where" || k.Name == "set" || k.Name == "WithDeleted"
		if k.Form == keyvalue.Word {
			return !common && !slices.Contains(t.words, k.Name)
		}
		return t.numbered != "" && k.Name == "Names"
	})
}

// checkNumbers returns the refusal of names where Slurm reads numbers.
func (t *table) checkNumbers(l *listing) error {
	if t.numbered == "" {
		return nil
	}
	var lines []string
	for _, w := range slices.Concat(l.names, l.ids) {
		if strings.Trim(w, "0123456789") != "" {
			lines = append(lines, "sacctmgr: error: Invalid value for "+t.numbered+" ("+strings.ToLower(w)+")")
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &refusal{text: strings.Join(lines, "\n")}
}

// listingWords are in Slurm's order. Those that are ignored add or leave out
// what does not exist here.
var listingWords = keyvalue.Table[*listing]{
	{Name: "where", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*listing]},
	{Name: "set", Least: 3, Form: keyvalue.Word, Set: keyvalue.Ignored[*listing]},
	{
		Name: "WithAssoc", Least: 5, Form: keyvalue.Word,
		Set: enableListing(func(l *listing) *bool { return &l.withAssoc }),
	},
	{
		Name: "WithCoordinator", Least: 5, Form: keyvalue.Word,
		Set: enableListing(func(l *listing) *bool { return &l.withCoordinators }),
	},
	{Name: "Tree", Least: 4, Form: keyvalue.Word, Set: enableListing(func(l *listing) *bool { return &l.tree })},
	{
		Name: "WOLimits", Least: 4, Form: keyvalue.Word,
		Set: enableListing(func(l *listing) *bool { return &l.withoutLimits }),
	},
	{
		Name: "WOPInfo", Least: 4, Form: keyvalue.Word,
		Set: enableListing(func(l *listing) *bool { return &l.withoutParents }),
	},
	{
		Name: "WOPLimits", Least: 4, Form: keyvalue.Word,
		Set: enableListing(func(l *listing) *bool { return &l.withoutLimits }),
	},
	{Name: "WithSubAccounts", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*listing]},
	{Name: "WithDeleted", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*listing]},
	{Name: "WithRawQOS", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*listing]},
	{
		Name: "OnlyDefaults", Least: 5, Form: keyvalue.Word,
		Set: enableListing(func(l *listing) *bool { return &l.onlyDefaults }),
	},
	keyvalue.Any(appendList(listingNames)),
	{Name: "Format", Least: 3, Set: func(l *listing, p keyvalue.Pair) error {
		l.format = p.Value
		return nil
	}},
	condition("Names", 1, appendList(listingNames)),
	condition("Users", 1, appendList(func(l *listing) *[]string { return &l.users })),
	condition("Accounts", 2, appendLowerList(func(l *listing) *[]string { return &l.accounts })),
	condition("Clusters", 1, appendLowerList(func(l *listing) *[]string { return &l.clusters })),
	{Name: "Partitions", Least: 4, Set: appendList(func(l *listing) *[]string { return &l.partitions })},
	{Name: "Parent", Least: 4, Set: appendLowerList(func(l *listing) *[]string { return &l.parents })},
	{Name: "QosLevel", Least: 1, Set: appendLowerList(func(l *listing) *[]string { return &l.qos })},
	condition("Descriptions", 3, appendList(func(l *listing) *[]string { return &l.descriptions })),
	condition("Organizations", 1, appendList(func(l *listing) *[]string { return &l.organizations })),
	{Name: "WCKeys", Least: 2, Set: appendList(func(l *listing) *[]string { return &l.wckeys })},
	condition("ID", 1, appendList(func(l *listing) *[]string { return &l.ids })),
	condition("Types", 1, appendList(func(l *listing) *[]string { return &l.types })),
}

// condition returns a row of listingWords whose empty value is recorded.
func condition(name string, least int, set func(*listing, keyvalue.Pair) error) keyvalue.Keyword[*listing] {
	return keyvalue.Keyword[*listing]{Name: name, Least: least, Set: func(l *listing, p keyvalue.Pair) error {
		if p.Value == "" {
			l.empty = append(l.empty, name)
		}
		return set(l, p)
	}}
}

// selectsNone reports whether a condition that the table applies has no value.
func (l *listing) selectsNone(t *table) bool {
	return slices.ContainsFunc(l.empty, func(name string) bool { return slices.Contains(t.conditions, name) })
}

// unknownCondition returns Slurm's refusal of a condition.
func (t *table) unknownCondition(p keyvalue.Pair) error {
	text := " Unknown condition: " + p.Text
	if t.hint != "" {
		text += "\n" + t.hint
	}
	return &refusal{text: text}
}

// showTable prints a table of the present state.
func (o *Options) showTable(ctx context.Context, t *table, words []string) error {
	l := &listing{withAssoc: o.assocs}
	known := t.keywords()
	for _, p := range keyvalue.ParseAll(words) {
		if known, err := known.Set(l, p); err != nil || !known {
			return o.explain(cmp.Or(err, t.unknownCondition(p)))
		}
	}
	if err := t.checkNumbers(l); err != nil {
		return o.explain(err)
	}
	if t == accountTable || t == userTable {
		l.names = lowerCase(l.names)
	}
	usual := t.columns
	if l.withoutLimits && usual == assocColumns {
		usual = "Cluster,Account,User,Partition"
	}
	names := cmp.Or(l.format, usual)
	coordinators := l.withCoordinators && l.format == ""
	if coordinators && t == userTable {
		names += ",Coordinators"
	}
	if l.withAssoc && l.format == "" {
		names += t.assocColumns
	}
	if coordinators && t == accountTable { // as in Slurm, which has them last only here
		names += ",Coordinators"
	}
	from := t.from
	if from == nil {
		from = columns
	}
	selected, err := selectColumns(from, names)
	if err != nil {
		return o.explain(err)
	}
	if l.tree {
		selected.widenTree()
	}
	if t.private != "" {
		if err := o.checkOperator(ctx, t.private); err != nil {
			return err
		}
	}
	s, err := o.readState(ctx)
	if err != nil {
		return err
	}
	s.addRootUser([]string{rootUser})
	selected.printed = t.printed
	if l.selectsNone(t) {
		return o.print(selected, nil)
	}
	rows := t.rows(s, l)
	if t.others != nil {
		rows = append(rows, t.others(ctx, o, l)...)
	}
	return o.print(selected, rows)
}

// checkOperator returns an error unless the caller is an operator.
func (o *Options) checkOperator(ctx context.Context, message string) error {
	operator, err := o.operator(ctx)
	if err != nil || operator {
		return err
	}
	fmt.Fprintf(o.p.Err, "sacctmgr: error: %s\n Error with request: %s\n", message, accessDenied)
	return failed()
}

// widenTree makes room for the tree of accounts, on the left, as Slurm does.
func (s *selection) widenTree() {
	for i := range s.fields {
		if f := &s.fields[i]; f.Name == "Account" && f.Width == 10 {
			f.Width, f.Left = 20, true
		}
	}
}

// matches reports whether v is in the list; an empty list has everything.
func matches(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

// showConfig prints the configuration of accounting; scontrol show config prints
// the rest.
func (o *Options) showConfig(ctx context.Context, _ []string) error {
	c, err := o.server()
	if err != nil {
		return err
	}
	present, err := c.Associations(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("Configuration data as of " + o.p.Now().Format("2006-01-02T15:04:05") + "\n")
	for _, kv := range [][2]string{
		{"AccountingStorageHost", cmp.Or(present.Host, "(null)")},
		{"AccountingStorageType", "accounting_storage/berth"},
		{"AuthType", "auth/kubernetes"}, {"ClusterName", present.Cluster}, {"SLURM_VERSION", build.Slurm},
	} {
		fmt.Fprintf(&b, "%-22s = %s\n", kv[0], kv[1])
	}
	return o.p.Print(b.String())
}
