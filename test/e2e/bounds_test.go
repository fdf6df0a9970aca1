package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestBounds: values beyond their limits are refused for every client, and are never
// stored.
func TestBounds(t *testing.T) {
	s := newShared(t)
	bob, _ := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	b := &bounded{s, bob, fmt.Sprintf(batchJobs, s.bob.name)}
	t.Run("long texts", b.longTexts)
	t.Run("negative counts", b.negativeCounts)
	t.Run("long lists", b.longLists)
	t.Run("descriptions count", b.descriptionsCount)
	t.Run("scripts", b.scripts)
	t.Run("random values", b.random)
	s.works(t)
}

// bounded is bob, whose requests exceed the limits.
type bounded struct {
	*shared
	api  *caller // as bob
	jobs string  // path of bob's BatchJobs
}

const tooLong = "Pathname of a file, directory or other parameter too long"

// held submits a job that waits, and returns its id and the path of its object.
func (b *bounded) held(t *testing.T) (id, path string) {
	t.Helper()
	id = b.run(t, b.bob, "sbatch", "--parsable", "--hold", "-J", "flood", "-o", "/dev/null", "--wrap", "true")
	admin, _ := callerOf(t, filepath.Join(b.state, "kubeconfig"))
	return id, b.jobs + "/" + b.objectOf(t, admin, b.jobs, id)
}

// refused fails the test if a request was not refused with the text.
func refused(t *testing.T, what string, code int, text, want string) {
	t.Helper()
	if code < 400 || code >= 500 || !strings.Contains(text, want) {
		t.Errorf("%s: %d %.300s\nwant a refusal with %q", what, code, text, want)
	}
}

// raw sends a description with these members as a new object, and as a patch of the held job
// at path; both must be refused.
func (b *bounded) raw(t *testing.T, path, what, want string, members object) {
	t.Helper()
	o := submission(t, 10)
	job := o["spec"].(object)["job"].(object) //nolint:forcetypeassert // submission makes it
	for k, v := range members {
		job[k] = v
	}
	code, text := b.api.do(t, http.MethodPost, b.jobs, o)
	refused(t, "a new object, "+what, code, text, want)
	code, text = b.api.do(t, http.MethodPatch, path, object{"spec": object{"job": members}})
	refused(t, "a patch, "+what, code, text, want)
}

// longTexts sends long texts in objects and to the queue API.
func (b *bounded) longTexts(t *testing.T) {
	id, path := b.held(t)
	long := strings.Repeat("x", 900_000)
	for _, c := range []struct{ member, setting string }{{"name", "JobName"}, {"comment", "Comment"}, {"wckey", "WCKey"}, {"extra", ""}} {
		b.raw(t, path, c.member, tooLong, object{c.member: long})
		if c.setting == "" {
			continue
		}
		code, text := b.api.do(t, http.MethodPost, queueRoot+"/operations",
			object{"verb": "update", "jobs": []string{id}, "set": object{c.setting: long}})
		if code != http.StatusOK && code < 400 || code == http.StatusOK && !strings.Contains(text, tooLong) {
			t.Errorf("update %s=: %d %.300s", c.setting, code, text)
		}
	}
	if out := b.run(t, b.alice, "squeue", "-h", "-j", id, "-o", "%j"); out != "flood" {
		t.Errorf("the job's name, as alice reads it, has %d bytes", len(out))
	}
	b.run(t, b.bob, "scancel", id)
}

func (b *bounded) negativeCounts(t *testing.T) {
	id, path := b.held(t)
	for what, c := range map[string]struct {
		members object
		want    string
	}{
		"licenses": {object{"licenses": []object{{"name": "matlab", "count": -1000}}}, "Invalid license specification"},
		"GRES":     {object{"shape": object{"gres": []object{{"name": "gpu", "count": -4, "per": "node"}}}}, "Invalid generic resource (gres) specification"},
		"CPUs":     {object{"shape": object{"cpusPerTask": -5}}, "More processors requested than permitted"},
		"nodes":    {object{"shape": object{"minNodes": -3}}, "Node count specification invalid"},
		"memory":   {object{"shape": object{"memPerNode": -100}}, "Memory required by task is not available"},
		"time":     {object{"time": object{"limit": -7}}, "Requested time limit is invalid"},
		"begin":    {object{"time": object{"begin": -7}}, "Invalid time specified"},
		"overflow": {object{"shape": object{"tasks": 2_000_000_000, "cpusPerTask": 60_000}}, "More processors requested than permitted"},
	} {
		b.raw(t, path, what, c.want, c.members)
	}
	b.run(t, b.bob, "scancel", id)
}

// longLists: 20,000 partitions and 5,000 dependencies would cost 10^8 checks in each plan.
func (b *bounded) longLists(t *testing.T) {
	id, path := b.held(t)
	partitions, dependencies := make([]string, 20_000), make([]object, 5000)
	for i := range partitions {
		partitions[i] = "debug"
	}
	for i := range dependencies {
		dependencies[i] = object{"type": "afterany", "jobID": 1_000_000 + i}
	}
	b.raw(t, path, "partitions", tooLong, object{"partitions": partitions})
	b.raw(t, path, "the same partition twice", tooLong, object{"partitions": partitions[:2]})
	b.raw(t, path, "dependencies", "Job dependency problem", object{"dependencies": object{"items": dependencies}})
	terms := make([]string, 40_000)
	for i := range terms {
		terms[i] = "afterany:" + strconv.Itoa(1_000_000+i)
	}
	code, text := b.api.do(t, http.MethodPost, queueRoot+"/operations",
		object{"verb": "update", "jobs": []string{id}, "set": object{"Dependency": strings.Join(terms, ",")}})
	if code == http.StatusOK && !strings.Contains(text, "Job dependency problem") || code >= 500 {
		t.Errorf("update Dependency=: %d %.300s", code, text)
	}
	b.run(t, b.bob, "scancel", id)
}

// descriptionsCount: descriptions count against the limit of stored bytes as scripts do,
// also where an update makes them larger.
func (b *bounded) descriptionsCount(t *testing.T) {
	admin, _ := callerOf(t, filepath.Join(b.state, "kubeconfig"))
	user := "/apis/berth.hpc/v1alpha1/users/" + b.bob.name
	if code, text := admin.do(t, http.MethodPatch, user, object{"spec": object{"maxBytes": 300 << 10}}); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	id, path := b.held(t)
	items := make([]object, 2000) // 96 KB
	for i := range items {
		items[i] = object{"type": "afterany", "jobID": 1_000_000 + i}
	}
	members := object{"dependencies": object{"items": items}}
	o := submission(t, 10)
	o["spec"].(object)["job"].(object)["dependencies"] = members["dependencies"] //nolint:forcetypeassert // submission makes it
	stored := 0
	for range 5 {
		o["metadata"] = submission(t, 10)["metadata"]
		code, text := b.api.do(t, http.MethodPost, b.jobs, o)
		if code == http.StatusCreated {
			stored++
		} else {
			refused(t, "a new object", code, text, "beyond the limit of 300 KiB")
		}
	}
	if stored != 3 {
		t.Errorf("%d descriptions of 96 KB are stored", stored)
	}
	code, text := b.api.do(t, http.MethodPatch, path, object{"spec": object{"job": members}})
	refused(t, "a patch", code, text, "beyond the limit of 300 KiB")
	code, text = b.api.do(t, http.MethodPatch, path, object{"metadata": object{"annotations": object{"example.org/note": strings.Repeat("x", 100_000)}}})
	refused(t, "an annotation", code, text, "beyond the limit of 300 KiB")
	if code, text := admin.do(t, http.MethodPatch, user, object{"spec": object{"maxBytes": nil}}); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	b.run(t, b.bob, "scancel", id)
	b.run(t, b.bob, "scancel", "-n", "flood")
}

// scripts: 4 MB are accepted if they compress well; a script that does not fit into an object
// is refused with a message that names the limit.
func (b *bounded) scripts(t *testing.T) {
	path := filepath.Join(b.bob.home, "big.sh")
	write := func(size int, line string) {
		t.Helper()
		text := "#!/bin/sh\ntrue\n" + strings.Repeat(line, size/len(line))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // bob reads it
			t.Fatal(err)
		}
	}
	write(4_000_000, "# a line of a long script\n")
	b.run(t, b.bob, "sbatch", "--hold", "-J", "flood", "-o", "/dev/null", path)
	write(4_300_000, "# a line of a long script\n")
	if _, errs := b.fails(t, b.bob, "sbatch", "--hold", "-o", "/dev/null", path); !strings.Contains(errs, tooLong) {
		t.Errorf("4.3 MB: %s", errs)
	}
	code, text := b.api.do(t, http.MethodPost, b.jobs, submission(t, 1_000_000))
	refused(t, "1 MB that do not compress", code, text, "bytes of script and environment, compressed: at most 786432")
	b.run(t, b.bob, "scancel", "-n", "flood")
}

// fails runs a user's command, which must not succeed.
func (s *shared) fails(t *testing.T, a account, args ...string) (stdout, stderr string) {
	t.Helper()
	line := a.command(s.bin, args...)
	var out, errs bytes.Buffer
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if cmd.Run() == nil {
		t.Errorf("%v succeeds: %s", args, out.String())
	}
	return out.String(), errs.String()
}
