package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

const floodJobName = "flood"

// floodKind is one way to flood.
type floodKind struct {
	name    string
	workers int
	// send makes one request and reads its answer, or holds it.
	send func(ctx context.Context, c *apiClient, f *floodArgs) (code int, err error)
	// clean: the flood leaves jobs behind.
	clean bool
}

// floodArgs say who floods and which job runs.
type floodArgs struct{ user, job string }

var floodKinds = []floodKind{
	{name: "submissions", workers: 32, clean: true, send: sendSubmission},
	{name: "lists of the queue", workers: 32, send: sendList("")},
	{name: "array ranges", workers: 32, send: sendList(hugeRanges())},
	{name: "node ranges", workers: 32, send: sendList("?nodes=" + strings.Repeat("n1[0-65535],", 50))},
	{name: "dependencies of 40,000 terms", workers: 8, send: sendDependencies},
	{name: "watches", workers: 300, send: sendWatch},
	{name: "jobs waited for", workers: 400, send: sendEvents},
	{name: "connections with a job", workers: 300, send: sendAttach},
	{name: "searches in accounting", workers: 32, send: sendSearch},
	{name: "lists of BatchJobs (API server alone)", workers: 16, send: sendRawList},
}

func hugeRanges() string {
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("%d_[0-3999999]", i+1))
	}
	return "?id=" + url.QueryEscape(strings.Join(ids, ","))
}

// apiClient sends requests as one user.
type apiClient struct {
	http *http.Client
	base string
}

func newAPIClient(kubeconfig string) (*apiClient, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.NextProtos = []string{"http/1.1"} // for upgrades, and many connections
	h, err := rest.HTTPClientFor(rc)
	return &apiClient{h, rc.Host}, err
}

func (c *apiClient) open(
	ctx context.Context, method, path string, body []byte, header ...string,
) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.http.Do(r)
}

// do sends a request and reads its answer to the end.
func (c *apiClient) do(ctx context.Context, method, path string, body []byte) (int, error) {
	resp, err := c.open(ctx, method, path, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// get returns an answer to the administrator.
func (c *apiClient) get(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %.200s", path, resp.StatusCode, text)
	}
	return text, err
}

// heap returns the size of the process's live heap, in bytes: the least after three
// garbage collections, because each counts what is allocated while it runs as well.
func (c *apiClient) heap(ctx context.Context) (least int64, err error) {
	for range 3 {
		if _, err := c.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
		n, err := c.metric(ctx, "go_gc_heap_live_bytes")
		if err != nil {
			return 0, err
		}
		if least == 0 || int64(n) < least {
			least = int64(n)
		}
	}
	return least, nil
}

// metric returns a metric of the process without labels.
func (c *apiClient) metric(ctx context.Context, name string) (float64, error) {
	text, err := c.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	return strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
}

// fill submits that number of jobs for the user.
func (c *apiClient) fill(ctx context.Context, user string, n int, hold bool) error {
	next := make(chan int)
	errs := make([]error, submitters)
	var wg sync.WaitGroup
	for i := range submitters {
		wg.Go(func() {
			for range next {
				var code int
				for code = 429; code == 429 && errs[i] == nil; {
					code, errs[i] = c.do(ctx, http.MethodPost, batchJobsOf(user), newBatchJob("bench", hold, 200))
				}
				if errs[i] == nil && code != http.StatusCreated {
					errs[i] = fmt.Errorf("a submission was answered %d", code)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

func batchJobsOf(user string) string {
	return "/apis/berth.hpc/v1alpha1/namespaces/user-" + user + "/batchjobs"
}

var packer = func() *zstd.Encoder {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}()

// newBatchJob returns a submission whose script has that number of bytes, which do not
// compress.
func newBatchJob(name string, hold bool, noise int) []byte {
	random := make([]byte, noise)
	_, _ = rand.Read(random) // it never fails
	script := packer.EncodeAll(fmt.Appendf(nil, "#!/bin/sh\n# %s\ntrue\n", base64.StdEncoding.EncodeToString(random)),
		nil)
	j := map[string]any{"name": name, "shape": map[string]any{"minNodes": 1, "tasks": 1},
		"batch": map[string]any{"workDir": "/tmp", "output": "/dev/null"}}
	if hold {
		j["hold"] = "user"
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "berth.hpc/v1alpha1", "kind": "BatchJob",
		"metadata": map[string]any{"name": "j-" + strings.ToLower(rand.Text()[:20])},
		"spec":     map[string]any{"job": j, "script": script},
	})
	if err != nil {
		panic(err) // plain values
	}
	return body
}

func sendSubmission(ctx context.Context, c *apiClient, f *floodArgs) (int, error) {
	return c.do(ctx, http.MethodPost, batchJobsOf(f.user), newBatchJob(floodJobName, true, 1000))
}

func sendList(query string) func(context.Context, *apiClient, *floodArgs) (int, error) {
	return func(ctx context.Context, c *apiClient, _ *floodArgs) (int, error) {
		return c.do(ctx, http.MethodGet, wire.QueueRoot+"/jobs"+query, nil)
	}
}

func sendDependencies(ctx context.Context, c *apiClient, f *floodArgs) (int, error) {
	terms := make([]string, 40000)
	for i := range terms {
		terms[i] = "afterok:" + strconv.Itoa(i+1)
	}
	body, err := json.Marshal(map[string]any{"verb": "update", "jobs": []string{f.job},
		"set": map[string]string{"Dependency": strings.Join(terms, ",")}})
	if err != nil {
		return 0, err
	}
	return c.do(ctx, http.MethodPost, wire.QueueRoot+"/operations", body)
}

// hold keeps a stream open for a while.
func hold(ctx context.Context, c *apiClient, path string, header ...string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resp, err := c.open(ctx, http.MethodGet, path, nil, header...)
	if err != nil {
		return 0, err
	}
	// The end of ctx does not end the body of an upgraded connection.
	defer context.AfterFunc(ctx, func() { resp.Body.Close() })()
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // until ctx ends
	return resp.StatusCode, nil
}

func sendWatch(ctx context.Context, c *apiClient, _ *floodArgs) (int, error) {
	return hold(ctx, c, wire.QueueRoot+"/jobs?watch=true")
}

func sendEvents(ctx context.Context, c *apiClient, f *floodArgs) (int, error) {
	return hold(ctx, c, wire.QueueRoot+"/jobs/"+f.job+"/attach")
}

func sendAttach(ctx context.Context, c *apiClient, f *floodArgs) (int, error) {
	return hold(ctx, c, wire.QueueRoot+"/jobs/"+f.job+"/attach", "Connection", "Upgrade", "Upgrade",
		wire.AttachProtocol)
}

func sendSearch(ctx context.Context, c *apiClient, _ *floodArgs) (int, error) {
	query, err := json.Marshal(&status.RecordQuery{Start: 1}) // everybody's records since 1970
	if err != nil {
		return 0, err
	}
	return c.do(ctx, http.MethodGet, wire.QueueRoot+"/records?q="+url.QueryEscape(string(query)), nil)
}

func sendRawList(ctx context.Context, c *apiClient, f *floodArgs) (int, error) {
	return c.do(ctx, http.MethodGet, batchJobsOf(f.user), nil)
}

// floodClient sends requests until it is stopped, and prints how they were answered.
func floodClient(ctx context.Context, kindName string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	if flag.NArg() != 3 {
		return errors.New("usage: -suite=flood-client -only=KIND KUBECONFIG USER JOB")
	}
	c, err := newAPIClient(flag.Arg(0))
	if err != nil {
		return err
	}
	args := &floodArgs{user: flag.Arg(1), job: flag.Arg(2)}
	for _, kind := range floodKinds {
		if kind.name == kindName {
			kind.run(ctx, c, args)
			return nil
		}
	}
	return fmt.Errorf("there is no flood %q", kindName)
}

func (k *floodKind) run(ctx context.Context, c *apiClient, args *floodArgs) {
	var served, refused, failed atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range k.workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				code, err := k.send(ctx, c, args)
				switch {
				case code == http.StatusTooManyRequests:
					refused.Add(1)
				case code == http.StatusSwitchingProtocols, code >= 200 && code < 300:
					served.Add(1)
				case err != nil && ctx.Err() != nil: // the end
				default:
					if failed.Add(1) == 1 {
						fmt.Fprintf(os.Stderr, "%s: answered %d, %v\n", k.name, code, err)
					}
				}
			}
		})
	}
	wg.Wait()
	s := time.Since(began).Seconds()
	fmt.Fprintf(os.Stdout, "%d clients: %.0f/s served, %.0f/s refused with 429, %.0f/s otherwise", k.workers,
		float64(served.Load())/s, float64(refused.Load())/s, float64(failed.Load())/s)
}
