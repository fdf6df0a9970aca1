//go:build e2ereal

package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestPages executes the commands of the pages about installation, certificates, upgrades, backups
// and removal exactly as they are written there.
func TestPages(t *testing.T) {
	if os.Getenv(pagesVariable) == "" {
		t.Skip("without " + pagesVariable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := openSite(t, ctx)
	a := newAdmin(t, ctx, s)
	install, upgrade := readPage(t, "install.md"), readPage(t, "upgrade.md")
	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"install", func(t *testing.T) { a.install(t, install) }},
		{"come from Slurm", func(t *testing.T) { a.migrate(t, readPage(t, "migration.md")) }},
		{"certificates", func(t *testing.T) { a.certificates(t, install) }},
		{"upgrade", func(t *testing.T) {
			a.across(t, upgrade.inline(t, "helm upgrade"), "kubectl -n berth-system rollout status deployment")
		}},
		{"copy", func(t *testing.T) { a.copy(t, upgrade) }},
		{"uninstall and install", func(t *testing.T) { a.across(t, install.inline(t, "helm uninstall"), install.block(t, "helm install")) }},
		{"remove", func(t *testing.T) { a.remove(t, install) }},
		{"restore", func(t *testing.T) { a.restore(t, install, upgrade) }},
	} {
		if !t.Run(step.name, step.do) {
			return // each continues from the previous one
		}
	}
}

// page has the commands in a page for administrators.
type page struct {
	name  string
	shown []string // blocks of commands
	named []string // commands within sentences and tables
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../docs/admin", name))
	if err != nil {
		t.Fatal(err)
	}
	p := page{name: name}
	fence := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	for _, m := range fence.FindAllStringSubmatch(string(b), -1) {
		if m[1] == "" {
			p.shown = append(p.shown, m[2])
		}
	}
	for _, m := range regexp.MustCompile("`((?:kubectl|helm|berth import) [^`]+)`").FindAllStringSubmatch(fence.ReplaceAllString(string(b), ""), -1) {
		p.named = append(p.named, strings.ReplaceAll(strings.ReplaceAll(m[1], `\|`, "|"), "\n", " "))
	}
	return p
}

// block returns the only block that contains a text.
func (p page) block(t *testing.T, with string) string { return only(t, p.name, p.shown, with) }

// inline returns the only command in a sentence that contains a text.
func (p page) inline(t *testing.T, with string) string { return only(t, p.name, p.named, with) }

func only(t *testing.T, page string, commands []string, with string) string {
	t.Helper()
	var found []string
	for _, c := range commands {
		if strings.Contains(c, with) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %q in %d places, want one: %q", page, with, len(found), found)
	}
	return found[0]
}

// admin is an administrator at a shell, in a directory with the files of a release and a
// site.yaml.
type admin struct {
	ctx    context.Context
	site   *Site
	dir    string
	before string // the objects of the cluster before the installation
	last   string // id of the newest job
	copied string // the newest one in the copies
}

func newAdmin(t *testing.T, ctx context.Context, s *Site) *admin {
	t.Helper()
	a := &admin{ctx: ctx, site: s, dir: t.TempDir()}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "examples", "records.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	records := strings.Replace(string(b), "docker.io/library/debian:stable-slim", SystemImage, 1)
	in := func(name string) string { return filepath.Join(a.dir, name) }
	if err := errors.Join(
		os.Symlink(filepath.Join(root, "deploy"), in("deploy")), s.writeValues(in("site.yaml")),
		os.Mkdir(in("bin"), 0o755), os.Symlink(s.tools.Kubectl, in("bin/kubectl")), os.Symlink(s.tools.Helm, in("bin/helm")),
		os.Mkdir(in("examples"), 0o755), os.WriteFile(in("examples/records.yaml"), []byte(records), 0o644),
		s.addVolume(ctx),
	); err != nil {
		t.Fatal(err)
	}
	a.before = a.everything(t)
	return a
}

// run runs commands as they are, each of which has to succeed.
func (a *admin) run(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(a.ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = a.dir
	cmd.Env = append(a.site.adminEnv(), "PATH="+filepath.Join(a.dir, "bin")+":"+a.site.Bin+":"+os.Getenv("PATH"))
	began := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("%.1f s: %s\n%s", time.Since(began).Seconds(), commands, out)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, commands, out)
	}
	return string(out)
}

// awaitAPI waits until users can submit.
func (a *admin) awaitAPI(t *testing.T) {
	t.Helper()
	if err := a.site.waitAnswers(a.ctx); err != nil {
		t.Fatal(err)
	}
}

// job runs a job, which must succeed.
func (a *admin) job(t *testing.T) {
	t.Helper()
	a.last = submit(t, a.ctx, a.site, "-o", "/dev/null", "--wrap", "true")
	waitForState(t, a.ctx, a.site, a.last, "COMPLETED")
}

// install installs Berth and runs the checks of the page.
func (a *admin) install(t *testing.T, p page) {
	a.run(t, p.block(t, "helm install"))
	for _, command := range p.named {
		if strings.HasPrefix(command, "kubectl ") {
			a.run(t, command)
		}
	}
	if err := a.site.addKubeconfigs(); err != nil {
		t.Fatal(err)
	}
	a.awaitAPI(t)
	a.job(t)
}

// migrate applies the objects that berth import makes of a slurm.conf, and runs a job in its
// partition.
func (a *admin) migrate(t *testing.T, p page) {
	conf := fmt.Sprintf("ClusterName=old\nNodeName=n[1-3] CPUs=%d\nPartitionName=batch Nodes=n[2-3] MaxTime=60\n", runtime.NumCPU())
	if err := os.WriteFile(filepath.Join(a.dir, "slurm.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	a.run(t, "mkdir old; cd old; "+strings.ReplaceAll(only(t, p.name, p.named, "--values"), "slurm.conf", "../slurm.conf")+
		"; helm template berth ../deploy/chart --namespace berth-system --kube-version 1.36.3 --values site.yaml > /dev/null")
	a.run(t, "berth import slurm.conf > slurm.yaml")
	a.run(t, p.inline(t, "kubectl apply"))
	if err := waitFor(a.ctx, time.Minute, func() bool {
		out, err := a.site.As(a.ctx, user, user.Home(), "sinfo", "-h", "-p", "batch", "-o", "%D")
		return err == nil && out == "2\n"
	}); err != nil {
		t.Fatal(err)
	}
	id := submit(t, a.ctx, a.site, "-p", "batch", "-N2", "-o", "batch.out", "--wrap", "srun hostname | sort")
	waitForState(t, a.ctx, a.site, id, "COMPLETED")
	if out := output(t, "batch.out"); out != "n2\nn3\n" {
		t.Errorf("the job wrote %q", out)
	}
}

// certificates reads the CA and renews it, while a job is pending.
func (a *admin) certificates(t *testing.T, p page) {
	held := submit(t, a.ctx, a.site, "-H", "-o", "/dev/null", "--wrap", "true")
	ends := p.block(t, "openssl x509")
	authority := `kubectl -n berth-system get secret berth-api-tls -o jsonpath='{.data.tls\.crt}'`
	if out := a.run(t, ends); !strings.HasPrefix(out, "notAfter=") {
		t.Errorf("the output is %q", out)
	}
	old := a.run(t, authority)
	a.run(t, p.block(t, "delete secret berth-api-tls"))
	a.awaitAPI(t)
	if a.run(t, authority) == old {
		t.Error("the certificate authority was not renewed")
	}
	a.release(t, held)
	a.job(t)
}

// across runs commands, one after the other, while a job runs and another waits.
func (a *admin) across(t *testing.T, commands ...string) {
	held := submit(t, a.ctx, a.site, "-H", "-o", "/dev/null", "--wrap", "true")
	running := submit(t, a.ctx, a.site, "-o", "running-%j.out", "--wrap", "echo started; until [ -e go-$SLURM_JOB_ID ]; do sleep 0.1; done")
	waitForOutput(t, a.ctx, "running-"+running+".out", "started\n")
	a.run(t, commands[0])
	writeHome(t, "go-"+running, "")
	for _, c := range commands[1:] {
		a.run(t, c)
	}
	a.awaitAPI(t)
	waitForState(t, a.ctx, a.site, running, "COMPLETED")
	a.release(t, held)
	a.job(t)
}

// release releases a held job, which must succeed.
func (a *admin) release(t *testing.T, id string) {
	t.Helper()
	if _, err := a.site.As(a.ctx, user, user.Home(), "scontrol", "release", id); err != nil {
		t.Fatal(err)
	}
	waitForState(t, a.ctx, a.site, id, "COMPLETED")
}

// copy copies objects and records.
func (a *admin) copy(t *testing.T, p page) {
	a.copied = a.last
	a.run(t, p.inline(t, "> objects.json"))
	a.run(t, p.block(t, "cp records:/records records"))
	if !exists(filepath.Join(a.dir, "records", "accounting.db")) {
		t.Error("there is no copy of the records")
	}
	a.run(t, "kubectl -n berth-system rollout status deployment")
	a.awaitAPI(t)
	a.job(t)
}

// remove removes all of Berth, which leaves the cluster as it was.
func (a *admin) remove(t *testing.T, p page) {
	submit(t, a.ctx, a.site, "-H", "-o", "/dev/null", "--wrap", "true")
	a.run(t, p.block(t, "delete batchjobs"))
	var now string
	if err := waitFor(a.ctx, time.Minute, func() bool {
		now = a.everything(t)
		return now == a.before
	}); err != nil {
		t.Errorf("before the installation the cluster had\n%s\nand now\n%s", a.before, now)
	}
}

// restore starts with only the copies, and continues after the newest job in them.
func (a *admin) restore(t *testing.T, install, upgrade page) {
	files, err := filepath.Glob(filepath.Join(recordsDir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no old records", err)
	}
	for _, f := range files {
		if err := os.RemoveAll(f); err != nil {
			t.Fatal(err)
		}
	}
	a.run(t, `kubectl patch persistentvolume records --type=merge -p '{"spec": {"claimRef": null}}'`)
	a.run(t, install.block(t, "helm install"))
	restore := upgrade.block(t, "exec records -- sh")
	commands := upgrade.block(t, "cp records:/records records")
	const copyOut = "kubectl -n berth-system cp records:/records records\n"
	if !strings.Contains(commands, copyOut) {
		t.Fatalf("the page has no command %q: %s", copyOut, commands)
	}
	a.run(t, strings.Replace(commands, copyOut, restore, 1))
	a.run(t, "kubectl -n berth-system rollout status deployment")
	a.run(t, upgrade.inline(t, "-f objects.json"))
	a.awaitAPI(t)
	a.job(t)
	out, err := a.site.As(a.ctx, operator, operator.Home(), "sacct", "-a", "-n", "-X", "-P", "-o", "JobID,State", "-j", a.copied+","+a.last)
	if want := a.copied + "|COMPLETED\n" + a.last + "|COMPLETED\n"; err != nil || out != want || a.copied == a.last {
		t.Errorf("sacct prints %q, %v; want %q, two jobs", out, err, want)
	}
}

// everything returns the cluster's objects of the kinds that an installation creates,
// except those in Berth's own namespaces.
func (a *admin) everything(t *testing.T) string {
	t.Helper()
	return a.run(t, `kubectl get -A -o name namespaces,customresourcedefinitions,apiservices,clusterroles,clusterrolebindings,roles,rolebindings,priorityclasses,mutatingwebhookconfigurations,validatingwebhookconfigurations,mutatingadmissionpolicies,mutatingadmissionpolicybindings,networkpolicies,persistentvolumes | sort`)
}
