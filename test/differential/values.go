package main

import (
	"math/rand/v2"
	"strings"

	"github.com/berth-hpc/berth/translate/option"
)

// grammar are values by option name or, below, by kind of value: the usual ones, those at
// the edge of what is accepted, and wrong ones, separated by bars. "·" is a space and ”
// the empty value. Words in braces are jobs of the prepared queue.
var grammar = map[string]string{
	"account":               "science other | SCIENCE '' | nosuch science,other",
	"array":                 "0-3 1,2,5 0-7:2 1-4%2 | 0 0-0 3,1,1 1-3% 01 %1 '' | x 1- 3-1 0-10001 1-3:0 -1 1-4%x",
	"comment":               "hi two·words | '' a=b",
	"dependency":            "afterany:{held} afterok:{held} singleton after:{running}+5 afternotok:{held} afterany:{held},singleton aftercorr:{array} afterok:{held}?afterany:{begin} | afterok:{failed} after:{held} '' afterany:{held}:{begin} afterburstbuffer:{held} expand:{running} | afterok x:1 afterok:x afterok:99999999 afterok:{held}+x ,",
	"job-name":              "abc two·words | '' a/b a%b -",
	"licenses":              " | '' | nosuch nosuch:1 :1 a:b:c",
	"mail-type":             "END ALL BEGIN,END NONE TIME_LIMIT_80 | all begin '' ARRAY_TASKS | x END,x",
	"mail-user":             "me me@example.org | ''",
	"nice":                  "5 100 0 | -5 2147483645 '' 1.5 | x 9999999999",
	"priority":              "5 TOP | 0 -1 '' 4294967294 | x 4294967296",
	"cpus-per-task":         "1 2 4 | 0 5 100 | x 1.5 '' -1 2x",
	"extra-node-info":       "1 1:2 1:4:1 * *:2 | 0 1-2 2:1 1:*:* | x 1:x 1:2:3:4 ''",
	"nodes":                 "1 2 1-2 2-4 4 | 0 5 4-1 1-1 1k 2,3 1-9 | x '' -1 1- -2 1.5",
	"ntasks":                "1 2 4 8 | 0 16 17 | x '' -1 1.5 2x",
	"ntasks-per-node":       "1 2 4 | 0 5 | x '' -1",
	"mem":                   "100 1G 500M 2000 | 0 4000 4001 1T 1k 1GB 100m | x -1 '' 1.5G 1X G",
	"mem-per-cpu":           "100 500M 1G | 0 1001 4001 1k | x -1 '' 1.5G",
	"mem-per-gpu":           "100 1G | 0 | x -1 ''",
	"tmp":                   "100 1G 500M | 0 1000 1001 | x -1 ''",
	"gres":                  "gpu:1 gpu gpu:tesla:1 none gpu:2 gpu:tesla | gpu:0 gpu:3 gpu:1,gpu:1 '' gpu:1K GPU:1 | foo gpu:x gpu:a100:1 gpu: gpu:-1 :1 gpu=1",
	"gpus":                  "1 2 tesla:1 | 0 4 5 tesla:2,1 tesla | x -1 '' a100:1",
	"gpu-bind":              "none closest single:1 map_gpu:0,1 mask_gpu:0x1 per_task:1 verbose,closest | verbose single:0 | x single:x map_gpu map_gpu:x ''",
	"gpu-freq":              "low medium,memory=high | 900 verbose | x low,low ''",
	"constraint":            "fast slow fast&red slow|fast [fast|slow] fast*1 [fast*1&slow*1] | (fast) fast&slow '' fast,red | nosuch fast& |fast [fast (fast FAST",
	"distribution":          "block cyclic block:cyclic plane=2 cyclic:fcyclic *:block pack | nopack block,nopack *:*:* plane plane=0 block:block:block arbitrary | x '' block:x plane=x 1",
	"exclusive":             "user | '' | x mcs no",
	"hint":                  "compute_bound memory_bound multithread nomultithread | | x '' COMPUTE_BOUND",
	"switches":              "1 2@10 1@1:00 | 0 1@ | x -1 ''",
	"core-spec":             "1 0 | 4 5 | x -1 ''",
	"thread-spec":           "1 0 | 4 5 | x -1 ''",
	"time":                  "1 10 90:00 1-00 1-1:30 1:2:3 1-2:3:4 INFINITE UNLIMITED | 0 -1 0:30 00:00:01 1-25 30 31 infinite 365-0 | x 1x 1- :: 1:2:3:4 '' 1.5",
	"begin":                 "now+1hour now+2days tomorrow 2030-01-01 2030-01-01T12:00 now+60 now+1week 12/31/29 | now midnight noon teatime fika today 2020-01-01 now-1hour now+0 23:59 1230 now+1HOUR | x '' 2030-13-01 25:00 now+x now+ 2030-01-01T25:00 tomorow",
	"deadline":              "now+1hour now+2days 2030-01-01 | now now+30 2020-01-01 | x '' 2030-13-01",
	"signal":                "USR1 10@60 B:USR1@30 SIGTERM R:USR1@100 | usr1 KILL 64 0 USR1@0 B:9 | x USR1@x @10 '' 65 B: USR1@100000 -1",
	"immediate":             "1 | 0 | x -1",
	"chdir":                 "/tmp / | . '' /nonexistent | ",
	"output":                "/dev/null out-%j.txt none | %A_%a.out '' dir/%x.%u a%%b %4j | ",
	"open-mode":             "append truncate a t | A '' | x",
	"export":                "NONE ALL HOME ALL,A=b NIL | A=b '' NONE,A=1 | ",
	"propagate":             "ALL NONE CORE NOFILE,CORE | '' all | x CORE,x",
	"kill-on-bad-exit":      "0 1 | 2 | x -1",
	"wait":                  "0 10 | | x -1 ''",
	"relative":              "0 1 | 9 | x -1 ''",
	"mpi":                   "none pmi2 | '' | x",
	"cpu-bind":              "none cores threads rank map_cpu:0,1 mask_cpu:0x1 verbose quiet,cores | map_cpu mask_cpu:x verbose,quiet | x ''",
	"mem-bind":              "none local prefer,local map_mem:0 | verbose | x '' map_mem",
	"threads":               "1 8 | 0 | x -1",
	"acctg-freq":            "5 task=5 energy=30 task=3,energy=5 | 0 task=0 30 task=60 | x task=x '' -1",
	"profile":               "none all task energy,task | NONE '' | x",
	"power":                 "level | '' | x",
	"cpu-freq":              "low medium high highm1 Performance 1000-2000 1000-2000:OnDemand | 1000 LOW 2000-1000 | x '' 1-x",
	"clusters":              "{cluster} | | nosuch",
	"uid":                   " | | nosuch 0",
	"gid":                   " | | nosuch 0",
	"gres-flags":            "disable-binding enforce-binding | '' | x",
	"kill-command":          "TERM 9 | | x",
	"wait-all-nodes":        "0 1 | 2 | x -1",
	"requeue":               " | | x",
	"no-kill":               "off | | x set",
	"states":                "PENDING R,PD all RUNNING COMPLETED pd CD,F,CA TIMEOUT | pending '' ALL R,all | x R,x ,",
	"state":                 "PENDING RUNNING SUSPENDED R,PD | pd '' | x COMPLETED R,x",
	"jobs":                  "{running} {held} {array} {array}_1 {het}+1 {het} {running},{held} {failed} {done} | 0 1 99999999 {array}_[1-2] {array}_99 '' {held},{held} | x 1x -1 {held},x ,",
	"steps":                 "{running}.0 {steps} {steps}.0 {steps}.batch {steps}.0,{running}.batch | 0 99999999.1 {steps}.9 | x {steps}.x -1",
	"user":                  "{user} {other} root {user},{other} | 0 5001 '' | nosuch {user},nosuch",
	"name":                  "abc run steps | '' | nosuch",
	"starttime":             "today now-1hour midnight 2020-01-01 | now now+1hour '' 00:00 | x 2020-13-01",
	"endtime":               "now tomorrow now+1hour | 2020-01-01 '' | x 2020-13-01",
	"ncpus":                 "1 1-4 | 0 4-1 | x -1",
	"nnodes":                "1 1-4 | 0 4-1 | x -1",
	"units":                 "K M G | T P | x k KM ''",
	"delimiter":             "; : | '' ab \\t | ",
	"timelimit-min":         "1 10 1:00:00 | 0 | x",
	"timelimit-max":         "10 1:00:00 | 0 | x",
	"squeue sort":           "i -i P,t,-p +u,i N,j j,t,M V,-e | '' a,b,c - ? 1 | i,, % ii",
	"sinfo sort":            "P,-t N t,N -N D,c | '' # | ? % ,",
	"sprio sort":            "i -i y,u u,-y | '' | ? %",
	"squeue format":         "%i·%P·%j %.18i·%.9P·%.8j %i|%T|%r %A·%F·%K %b·%C·%D·%m %u·%U·%a·%q·%G %l·%L·%M %S·%e·%V %n·%N·%x·%R %o·%Z·%k·%w %h·%f·%E %H·%I·%J·%X·%Y·%z %c·%d·%W·%y·%v | %5i %-5i %.i %i%% abc %0i %.3j|%3j %ij %·i %1i%1i '' | % %? %1 %.  %!i",
	"sinfo format":          "%P·%a·%l·%D·%t·%N %n·%T·%c·%m %N·%G·%f %C·%F·%A %X·%Y·%Z·%z %h·%r·%g·%s·%p %R·%w·%b %B·%I·%o·%E·%u | %5P %.9P|%-9P %a%% abc %.3D '' | % %? %1 %!",
	"sprio format":          "%i·%u %.10i·%r | %5i %% '' | % %?",
	"time-unit":             "Hours minper Minutes Percent | h '' | x",
	"tres":                  "cpu mem cpu,mem ALL node gres/gpu | '' CPU | x",
	"kind number":           "1 2 4 | 0 5 100 | x '' -1 1.5",
	"kind Partitions":       "debug batch debug,batch batch,debug | DEBUG debug,debug '' debug, | nosuch debug,nosuch",
	"kind Nodes":            "n1 n[1-2] n1,n3 n[1,3-4] | n1,n1 n4,n3 '' n[1-4] N1 n[1 | nosuch n5 n[1-9] n[3-1] n[] ,",
	"kind Accounts":         "science other | science,other '' SCIENCE | nosuch",
	"kind QOS":              "normal fast | normal,fast '' NORMAL | nosuch",
	"kind Reservations":     "later | '' later,later | nosuch",
	"kind Users":            "{user} {other} root {user},{other} | 0 '' | nosuch",
	"kind Features":         "fast slow | fast&red '' | nosuch",
	"kind WCKeys":           "key | '' | ",
	"kind Licenses":         " | '' | nosuch",
	"kind GRES":             "gpu:1 gpu | | x",
	"kind NodeStates":       "idle alloc mix,idle down IDLE all i,a drained resp | '' idle&mixed idle,x maint ~idle 0 | x nosuch",
	"kind File":             "/dev/null | '' /nonexistent/x | ",
	"kind Dir":              "/tmp | '' /nonexistent | ",
	"kind Environment":      "ALL NONE HOME | '' | ",
	"kind Jobs":             "{running} {held} | 0 99999999 | x",
	"kind Signals":          "TERM USR1 9 SIGKILL | 0 usr1 64 | x SIGX -1 ''",
	"kind JobNames":         "abc run | '' | nosuch",
	"kind Clusters":         "{cluster} | | nosuch",
	"kind Dependencies":     "singleton afterany:{held} | '' | x",
	"kind Free":             "1 2 abc | 0 '' | x -1",
	"scontrol job":          "{running} {held} {array} {array}_2 {het} {het}+1 {failed} {steps} {done} {held},{running} | 99999999 {array}_99 {array}_[1-2] {held}.0 '' | x -1 1x",
	"update job":            "{new} | {new}_1 99999999 {new},99999999 | x",
	"verbs":                 "hold uhold release requeue requeuehold suspend resume top",
	"key contiguous":        "yes no 1 0 | YES '' | x",
	"key oversubscribe":     "yes no ok | YES | x",
	"key requeue":           "0 1 | 2 | x yes",
	"key arraytaskthrottle": "1 0 | | x -1",
	"key starttime":         "now+1hour tomorrow 2030-01-01 | now | x 2030-13-01",
	"key numtasks":          "1 2 4 | 0 17 | x -1",
	"key priority":          "5 0 | 4294967295 | x -1",
	"key userid":            "{user} | root 0 | nosuch",
	"key workdir":           "/tmp | relative '' | ",
	"key stdout":            "/dev/null | '' | ",
}

// value returns a value of the option for a command, of any of the three classes.
func value(r *rand.Rand, command string, o *option.Option) string {
	for _, key := range []string{command + " " + o.Name, o.Name} {
		if g, ok := grammar[key]; ok {
			return pick(r, g)
		}
	}
	d := option.DomainOf(command, o)
	if d.Kind == option.Words {
		return word(r, d)
	}
	if name, ok := kinds[d.Kind]; ok {
		return pick(r, grammar["kind "+name])
	}
	if o.Meta == "N" || strings.HasSuffix(o.Meta, "SIZE") {
		return pick(r, grammar["kind number"])
	}
	return pick(r, grammar["kind Free"])
}

var kinds = map[option.Kind]string{
	option.File: "File", option.Dir: "Dir", option.Environment: "Environment", option.Signals: "Signals",
	option.Dependencies: "Dependencies", option.NodeStates: "NodeStates", option.Jobs: "Jobs",
	option.JobNames: "JobNames", option.Partitions: "Partitions", option.Nodes: "Nodes", option.Accounts: "Accounts",
	option.QOS: "QOS", option.Reservations: "Reservations", option.Users: "Users", option.Features: "Features",
	option.GRES: "GRES", option.Licenses: "Licenses", option.WCKeys: "WCKeys", option.Clusters: "Clusters",
}

// word returns a word of the domain, in another case, cut short, two of them, or a wrong one.
func word(r *rand.Rand, d option.Domain) string {
	w := d.Words[r.IntN(len(d.Words))]
	switch r.IntN(10) {
	case 0:
		return strings.ToUpper(w)
	case 1:
		return w[:1+r.IntN(len(w))]
	case 2:
		return w + "," + d.Words[r.IntN(len(d.Words))]
	case 3:
		return "nosuch"
	}
	return w
}

// pick returns a value of a grammar: usual ones in six of ten cases, those at the edge in
// two, wrong ones in two.
func pick(r *rand.Rand, text string) string {
	classes := classesOf(text)
	for {
		list := classes[[]int{0, 0, 0, 0, 0, 0, 1, 1, 2, 2}[r.IntN(10)]]
		if len(list) == 0 {
			continue
		}
		v := list[r.IntN(len(list))]
		if v == "''" {
			return ""
		}
		return strings.ReplaceAll(v, "·", " ")
	}
}

// classesOf splits a grammar into its three classes.
func classesOf(text string) (classes [3][]string) {
	i := 0
	for _, w := range strings.Fields(text) {
		if w == "|" {
			i++
			continue
		}
		classes[i] = append(classes[i], w)
	}
	return classes
}
