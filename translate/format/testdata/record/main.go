// Command record records how squeue, sinfo and scontrol of Slurm 22.05 print a set of
// jobs, and writes the results as JSON to standard output. Run it as root on a
// machine with such a Slurm and an ordinary user:
//
//	go run ./translate/format/testdata/record -user NAME > translate/format/testdata/listing.json
//
// It submits jobs as that user, most of them held, and cancels them again. With
// -shapes it records the documents of the existing jobs:
//
//	go run ./translate/format/testdata/record -shapes translate/format/testdata/shape
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// answer is what one call printed, and between which two seconds.
type answer struct {
	Args   []string `json:"args"`
	Before int64    `json:"before"`
	After  int64    `json:"after"`
	Out    string   `json:"out"`
	Err    string   `json:"err,omitempty"`
	Code   int      `json:"code,omitempty"`
}

type recording struct {
	Version string          `json:"version"`
	Zone    string          `json:"zone"`
	Jobs    json.RawMessage `json:"jobs"`  // squeue --json
	Nodes   json.RawMessage `json:"nodes"` // sinfo --json
	Calls   []answer        `json:"calls"`
}

func run(args ...string) answer {
	a := answer{Args: args, Before: time.Now().Unix()}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	a.After, a.Out, a.Err, a.Code = time.Now().Unix(), out.String(), errs.String(), cmd.ProcessState.ExitCode()
	return a
}

var number = regexp.MustCompile(`[0-9]+`)

func main() {
	user := flag.String("user", "", "an ordinary user of the cluster")
	directory := flag.String("shapes", "", "a directory: write there which members --json has, and do nothing else")
	flag.Parse()
	if *directory != "" {
		shapes(*directory)
		return
	}
	var ids []string
	submit := func(args ...string) {
		a := run(append([]string{"runuser", "-u", *user, "--", "sbatch", "-D", "/tmp", "-o", "/dev/null"}, args...)...)
		if a.Code != 0 {
			log.Fatalf("%v: %s", args, a.Err)
		}
		ids = append(ids, number.FindString(a.Out))
	}
	for _, args := range jobs {
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "FIRST", append(ids, "")[0])
		}
		submit(args...)
	}
	defer func() { run(append([]string{"scancel"}, ids...)...) }()
	time.Sleep(5 * time.Second)
	run("scontrol", "suspend", ids[1])
	run("scancel", ids[2])
	time.Sleep(2 * time.Second)
	list := strings.Join(ids, ",")
	r := recording{Version: run("squeue", "--version").Out, Zone: "UTC", Jobs: only(ids), Nodes: raw(run("sinfo", "--json").Out)}
	squeue := func(args ...string) {
		a := run(append([]string{"squeue", "-a", "-t", "all", "-j", list}, args...)...)
		a.Args = append([]string{"squeue"}, args...)
		r.Calls = append(r.Calls, a)
	}
	for _, l := range strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "") {
		squeue("-o", "%A|%"+l+"|%.7"+l+"|%7"+l+"|")
	}
	for _, f := range fields {
		squeue("-O", fmt.Sprintf("JobID:|,%s:|,%s:.7|,%s:7|,%s", f, f, f, f))
	}
	squeue()
	squeue("-l")
	squeue("-r")
	squeue("--start")
	squeue("-o", "%all")
	squeue("-O", "all")
	for _, s := range []string{"i", "-i", "j", "P,-t", "M", "-p,i", "S", "-S", "l", "C,D", "u,-j", "T", "e", "L", "V"} {
		squeue("-h", "-S", s, "-o", "%A")
	}
	for _, a := range [][]string{{"-o"}, {}, {"-dd"}} {
		for _, id := range ids {
			r.Calls = append(r.Calls, run(append(append([]string{"scontrol"}, a...), "show", "job", id)...))
		}
	}
	nodes(&r)
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "")
	out.SetEscapeHTML(false)
	if err := out.Encode(r); err != nil {
		log.Fatal(err)
	}
}

// nodes records sinfo and scontrol show of nodes and partitions.
func nodes(r *recording) {
	call := func(args ...string) { r.Calls = append(r.Calls, run(args...)) }
	for _, l := range strings.Split("aAbBcCdDeEfFgGhHiIlLmMnNoOpPrRsStTuUvwXYzZ", "") {
		call("sinfo", "-o", "%"+l+"|%.7"+l+"|%7"+l+"|")
		call("sinfo", "-N", "-o", "%N|%"+l+"|%.7"+l+"|%7"+l+"|")
	}
	for _, f := range nodeFields {
		call("sinfo", "-O", fmt.Sprintf("%s:|,%s:.7|,%s:7|,%s", f, f, f, f))
		call("sinfo", "-N", "-O", fmt.Sprintf("NodeList:|,%s:|,%s:.7|,%s:7|,%s", f, f, f, f))
	}
	for _, a := range [][]string{{}, {"-l"}, {"-N"}, {"-N", "-l"}, {"-s"}, {"-R"}, {"-R", "-l"}, {"-e"}, {"-T"}, {"-o", "%all"}, {"-O", "all"}, {"-o", "%P %F/%C"}, {"-s", "-o", "%P %A"}} {
		call(append([]string{"sinfo"}, a...)...)
	}
	call("scontrol", "show", "partition")
	call("scontrol", "-o", "show", "partition")
	call("scontrol", "show", "node")
	call("scontrol", "-d", "show", "node")
	call("scontrol", "-o", "show", "node")
}

// only is squeue --json of the jobs.
func only(ids []string) json.RawMessage {
	var all struct {
		Jobs []map[string]any `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(run("squeue", "--json").Out), &all); err != nil {
		log.Fatal(err)
	}
	mine := map[string]bool{}
	for _, id := range ids {
		mine[id] = true
	}
	var out []map[string]any
	for _, j := range all.Jobs {
		for _, key := range []string{"job_id", "array_job_id", "het_job_id"} {
			if n, ok := j[key].(float64); ok && mine[fmt.Sprint(int64(n))] {
				out = append(out, j)
				break
			}
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }
