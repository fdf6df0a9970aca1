package completion

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// known returns the objects of a small cluster.
func known(k option.Kind) []Item {
	switch k {
	case option.Jobs:
		return []Item{
			{Text: "12", State: "PENDING", Own: true},
			{Text: "13", State: "RUNNING"},
			{Text: "14_3", State: "SUSPENDED"},
		}
	case option.Partitions:
		return plain("debug", "gpu", "big")
	case option.Nodes:
		return plain("n1", "n2", "n3", "n10", "login", "rack2-n01", "rack2-n02")
	case option.Features:
		return plain("a100", "h100", "rack1")
	case option.GRES:
		return plain("gpu", "gpu:a100", "fpga")
	case option.Accounts:
		return plain("physics", "chemistry")
	case option.Users:
		return plain("alice", "bob")
	case option.QOS:
		return plain("normal", "urgent")
	case option.JobNames:
		return plain("a,b", "plain", "tab\there", "\u202egnp.exe")
	case option.Steps:
		return plain("13.0", "13.batch")
	}
	return nil
}

func TestComplete(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"squeue|--partition=", "--partition=debug --partition=gpu --partition=big"},
		{"squeue|--partition=g", "--partition=gpu"},
		{"squeue|-p|debug,", "debug,gpu debug,big"},
		{"squeue|-hp|d", "debug"},
		{"squeue|-hpd", "-hpdebug"},
		{"squeue|--part=d", "--part=debug"},
		{"squeue|--st", "--start --states= --steps --steps="},
		{"squeue|--states=x|--st", "--start --steps --steps="},
		{"squeue|--partitions", "--partitions="}, // an alias, as nothing else matches
		{"squeue|--zz", ""},
		{"squeue|-t|p", "pending preempted"},
		{"squeue|-t|PD,PR", "PD,PREEMPTED"},
		{"squeue|-S|-P,+", ""},
		{"squeue|-o|%.18i %", ""},
		{"squeue|--", ""},
		{"squeue|x", ""},
		{"sbatch|--bb", "--bb= --bbf="}, // refused, as nothing else matches
		{"sbatch|-d|after", "after: afterany: afterburstbuffer: aftercorr: afternotok: afterok:"},
		{"sbatch|-d|afterok:12,s", "afterok:12,singleton"},
		{"sbatch|-d|afterok:12:", "afterok:12:13 afterok:12:14_3"},
		{"sbatch|-d|afterany:12?afterok:1", "afterany:12?afterok:12 afterany:12?afterok:13 afterany:12?afterok:14_3"},
		{"sbatch|-C|rack1&(a100|h", ""},
		{"sbatch|--gres=gpu:", "--gres=gpu:a100"},
		{"sbatch|--exclusive=", "--exclusive=user --exclusive=mcs --exclusive=topo"},
		{"sbatch|--signal=B:US", "--signal=B:USR1 --signal=B:USR2"},
		{"sbatch|-N2|--mem", "--mem= --mem-per-cpu= --mem-per-gpu= --mem-bind="},
		{"sbatch|--time=", ""},
		{"sbatch|-w|n1", "n1 n10"},
		{"sinfo|-n|n1,n", "n1,n2 n1,n3 n1,n10 n1,n[2-3,10]"},
		{"sinfo|-n|n[", "n[1 n[2 n[3 n[10 n[1-3,10]"},
		{"sinfo|-n|n[1-2,", "n[1-2,3 n[1-2,10"},
		{"sinfo|-n|n[1-2,3", "n[1-2,3 n[1-2,3]"},
		{"sinfo|-n|login,rack2-n[0", "login,rack2-n[01 login,rack2-n[02"},
		{"sinfo|-n|n[2-", "n[2-1 n[2-3 n[2-10"},
		{"scancel|", "12 13 14_3"},
		{"scancel|12|1", "13 14_3"},
		{"scancel|13.", "13.0 13.batch"},
		{"scancel|-n|", "a,b plain"},
		{"squeue|-n|", "plain"},
		{"scontrol|sh", "show"},
		{"scontrol|hold|", "12"},
		{"scontrol|resume|", "14_3"},
		{"scontrol|hold|jobname=p", "jobname=plain"},
		{"scontrol|show|no", "node"},
		{"scontrol|-o|show|node|log", "login"},
		{"scontrol|show|job=1", "job=12 job=13 job=14_3"},
		{"scontrol|update|", "JobId= NodeName= PartitionName= ReservationName= StepId="},
		{"scontrol|update|jobid=12|Part", "Partition="},
		{"scontrol|update|jobid=12|partition=gpu|Part", ""},
		{"scontrol|update|nodename=n1|State=dr", "State=drain"},
		{"scontrol|update|partition=debug|State=DR", "State=DRAIN"},
		{"scontrol|notify|13|", ""},
		{"scontrol|write|batch_script|1", "12 13 14_3"},
		{"sacctmgr|mod", "modify"},
		{"sacctmgr|modify|user|", "alice bob where set Names= Account= Partitions= Cluster="},
		{"sacctmgr|modify|user|bob|set|DefaultA", "DefaultAccount="},
		{"sacctmgr|modify|user|bob|set|DefaultAccount=p", "DefaultAccount=physics"},
		{"sacctmgr|add|user|new|Account=physics,", "Account=physics,chemistry"},
		{"sacctmgr|modify|qos|normal|set|Flags=No", "Flags=NoDecay Flags=NoReserve"},
		{"sreport|cluster|U", "UserUtilizationByAccount UserUtilizationByWckey Utilization"},
		{"sreport|-t|m", "minute minPer"},
		{"sacct|-o|jobid,elapsedr", "jobid,elapsedraw"},
		{"nosuch|--", ""},
	} {
		words := strings.Split(c.line, "|")
		if strings.Contains(c.line, "a100|h") {
			words = []string{"sbatch", "-C", "rack1&(a100|h"}
			c.want = "rack1&(a100|h100"
		}
		a := Complete(Request{Name: words[0], Words: words[1 : len(words)-1], Current: words[len(words)-1]}, known)
		var got []string
		for _, i := range a.Items {
			got = append(got, i.Text)
		}
		if c.want == "" &&
			(c.line == "squeue|--" || strings.HasPrefix(c.line, "squeue|-S") || strings.HasPrefix(c.line, "squeue|-o")) {
			if len(got) < 15 {
				t.Errorf("%s: only %q", c.line, got)
			}
			continue
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.line, s, c.want)
		}
	}
}

func TestFallbacks(t *testing.T) {
	for _, c := range []struct {
		line   string
		want   Fallback
		prefix string
		from   int
	}{
		{"sbatch|", Files, "", 0}, {"sbatch|-n2|job.sh|", Files, "", 0}, {"sbatch|--output=", Files, "--output=", 0},
		{"sbatch|-D", Directories, "-D", 0},
		{"srun|-n|2|", Commands, "", 2}, {"srun|-n|2|ls|-", Command, "", 2}, {"srun|ls|:|--|cat|x", Command, "", 3},
		{"salloc|--|", Commands, "", 1}, {"squeue|", Nothing, "", 0},
	} {
		words := strings.Split(c.line, "|")
		a := Complete(Request{Name: words[0], Words: words[1 : len(words)-1], Current: words[len(words)-1]}, nil)
		if a.Fallback != c.want || a.Prefix != c.prefix || a.Fallback >= Commands && a.From != c.from {
			t.Errorf("%s: %+v, want %+v", c.line, a, c)
		}
	}
}

// TestOptionsAreThoseOfTheHelpText checks that each option of a help text is completed
// unless it is refused.
func TestOptionsAreThoseOfTheHelpText(t *testing.T) {
	for _, c := range []option.Command{option.Sbatch, option.Srun, option.Salloc} {
		check(t, c.String(), option.Help(c))
	}
	for _, s := range []*option.CommandOptions{option.Squeue, option.Sinfo, option.Scancel, option.Scontrol, option.Sacct, option.Sacctmgr, option.Sshare, option.Sprio, option.Sreport} {
		check(t, s.Name, s.Help())
	}
}

func check(t *testing.T, name, help string) {
	t.Helper()
	var offered []string
	for _, i := range Complete(Request{Name: name, Current: "--"}, nil).Items {
		offered = append(offered, strings.TrimSuffix(i.Text, "="))
	}
	n := 0
	for l := range strings.Lines(help) {
		_, rest, ok := strings.Cut(l, "--")
		if !ok || l[0] != ' ' || strings.Contains(l, "not possible") {
			continue
		}
		word := "--" + strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("=[: \n", r) })[0]
		// Long lines of the help text continue on the next one.
		if o := find(name, word[2:]); o == nil || refused(name, o) {
			continue
		}
		if n++; !slices.Contains(offered, word) {
			t.Errorf("%s does not complete %s", name, word)
		}
	}
	if n < 8 {
		t.Errorf("%s: only %d options in the help text", name, n)
	}
}

func find(name, word string) *option.Option {
	list, _ := option.Of(name)
	for _, o := range list {
		if o.Name == word {
			return o
		}
	}
	return nil
}

func refused(name string, o *option.Option) bool {
	s, _ := o.StatusIn(name)
	return s == option.Refused
}

const breaks = " \t\n\"'@><=;|&(:"

func TestSplitBash(t *testing.T) {
	for _, c := range []struct{ line, words, kept string }{
		{"squeue -p ", "squeue|-p|", ""},
		{"squeue -p de", "squeue|-p|de", ""},
		{"squeue --partition=de", "squeue|--partition=de", "--partition="},
		{"sbatch -d afterok:1", "sbatch|-d|afterok:1", "afterok:"},
		{`scancel --name="my j`, "scancel|--name=my j", "--name="},
		{`scancel --name="my"j`, "scancel|--name=myj", "--name="},
		{`scancel -n my\ j`, "scancel|-n|my j", ""},
		{`scancel -n a\=b`, "scancel|-n|a=b", ""},
		{`scancel -n 'a"b`, `scancel|-n|a"b`, ""},
		{`scancel -n "a\"b$`, `scancel|-n|a"b$`, ""},
		{`scancel '' ""`, "scancel||", ""},
		{"cd x; squeue -u", "squeue|-u", ""},
		{"echo $(squeue -u", "squeue|-u", ""},
		{"", "", ""},
	} {
		l := SplitBash(c.line, breaks)
		if got := strings.Join(l.Words, "|"); got != c.words || l.kept != c.kept {
			t.Errorf("%s: %s, keeps %q; want %s, %q", c.line, got, l.kept, c.words, c.kept)
		}
	}
}

// FuzzBash checks that bash parses the typed and inserted text as the completed word,
// whatever it contains.
func FuzzBash(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("bash is not installed")
	}
	for _, s := range []string{"plain", "my job; rm -rf $HOME", `it's "a" $(b) ` + "`c`", "a!b", "--name=x y", "ä ö", `back\slash`, "~user", "[1-3]*", "{a,b}", "#x", "=", "a:b@c"} {
		f.Add(s, uint8(2), uint8(0))
		f.Add(s, uint8(0), uint8(1))
		f.Add(s, uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, word string, cut, style uint8) {
		if !isSafe(word) || strings.Contains(word, "\x00") {
			return
		}
		at := int(cut) % (len(word) + 1)
		for at > 0 && at < len(word) && word[at]&0xc0 == 0x80 {
			at--
		}
		open := []string{"", "'", `"`}[style%3]
		head := BashLine{quote: 0}
		if open != "" {
			head.quote = open[0]
		}
		typed, ok := head.Reply(word[:at])
		if !ok {
			return
		}
		line := "c " + open + typed
		l := SplitBash(line, breaks)
		if len(l.Words) != 2 || l.Words[1] != word[:at] {
			t.Fatalf("%q is read as %q, want the word %q", line, l.Words, word[:at])
		}
		reply, ok := l.Reply(word)
		if !ok {
			return
		}
		// readline replaces the text after kept.
		kept, _ := head.Reply(l.kept)
		if open != "" {
			kept = open + kept
		}
		out, err := exec.Command(bash, "--norc", "-c", "printf '%s' "+kept+reply+open).Output()
		if err != nil || string(out) != word {
			t.Errorf("typed %q, inserted %q: bash reads %q (%v), want %q", open+typed, reply, out, err, word)
		}
	})
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{`my\ job`: "my job", `"my jo`: "my jo", `'it\'s`: "it's", `a"b c"d`: "ab cd", `"a\$b`: "a$b", `x\`: `x\`} {
		if got := Unquote(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
