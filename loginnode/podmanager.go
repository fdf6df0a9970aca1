package loginnode

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// Pods runs each user's sessions in a pod with only the user's rights. The server then
// only authenticates users: it does not need root's rights, and relays channels to the
// same program in the pod (Gateway).
type Pods struct {
	// Start creates the user's pod unless it exists, and returns it once it runs. It
	// calls state with what it waits for.
	Start func(ctx context.Context, u *auth.User, state func(text string)) (*Pod, error)
	// List returns all pods, of this and other servers.
	List func(ctx context.Context) ([]*Pod, error)
	// Remove deletes a pod. It is not an error if the pod does not exist.
	Remove func(ctx context.Context, name string) error
	// Secret is the secret from which all keys between servers and pods are derived. All
	// replicas have the same one.
	Secret []byte
	// Idle is how long a pod without connections and processes exists; 0: 30 min.
	Idle time.Duration
	// StartTimeout bounds how long a login waits for its pod; 0: 2 min.
	StartTimeout time.Duration
	// Poll is the interval of requests to a pod whether it is idle; 0: a quarter of
	// Idle, between 1 s and 30 s.
	Poll time.Duration
}

func (p *Pods) complete() error {
	if len(p.Secret) < sha256.Size {
		return errors.New("pods: no secret")
	}
	p.Idle, p.StartTimeout = or(p.Idle, 30*time.Minute), or(p.StartTimeout, 2*time.Minute)
	p.Poll = or(p.Poll, max(time.Second, min(p.Idle/4, 30*time.Second)))
	return nil
}

// Pod is a user's pod.
type Pod struct {
	Name    string
	User    string
	UID     int
	Address string // host:port of its server
}

// PodKeys returns the private keys of gateways for a user's pod and of that pod. They
// are derived from the secret, so that replicas do not have to exchange them.
func PodKeys(secret []byte, uid int) (gateway, host ed25519.PrivateKey, err error) {
	derive := func(what string) (ed25519.PrivateKey, error) {
		seed, err := hkdf.Key(sha256.New, secret, nil, "berth login pod "+what+" "+strconv.Itoa(uid), ed25519.SeedSize)
		if err != nil {
			return nil, err
		}
		return ed25519.NewKeyFromSeed(seed), nil
	}
	gateway, err1 := derive("gateway")
	host, err2 := derive("host")
	return gateway, host, errors.Join(err1, err2)
}

// podManager starts pods, sends them the credentials of their users, and deletes idle
// ones.
type podManager struct {
	server *Server
	pods   *Pods
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	managed map[string]*managedPod // by user
	wait    sync.WaitGroup
}

// managedPod is a pod of the manager.
type managedPod struct {
	ready chan struct{} // closed when pod or err is set
	pod   *Pod
	err   error
	done  chan struct{} // closed when it can no longer be used

	mu    sync.Mutex
	state string // what a start waits for
	warm  *warmConn
	ended bool // no warm connection is opened any more
}

func (k *managedPod) say(text string) {
	k.mu.Lock()
	k.state = text
	k.mu.Unlock()
}

func newPodManager(s *Server) *podManager {
	k := &podManager{server: s, pods: s.cfg.Pods, managed: map[string]*managedPod{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.wait.Add(1)
	go func() {
		defer k.wait.Done()
		defer s.recoverPanic()
		k.adopt()
	}()
	return k
}

func (k *podManager) close() {
	k.stop()
	k.wait.Wait()
}

// adopt starts to manage the pods of an earlier server, which nobody else would end.
func (k *podManager) adopt() {
	for k.ctx.Err() == nil {
		pods, err := k.pods.List(k.ctx)
		if err == nil {
			for _, p := range pods {
				u := &auth.User{Name: p.User, UID: p.UID}
				k.get(u, p)
			}
			return
		}
		k.server.cfg.Log.Warn("pods of an earlier server", "error", err)
		select {
		case <-k.ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// get returns a user's managed pod. If there is none, it starts to manage existing, or
// a new pod if that is nil.
func (k *podManager) get(u *auth.User, existing *Pod) *managedPod {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.managed[u.Name]; e != nil {
		return e
	}
	e := &managedPod{ready: make(chan struct{}), done: make(chan struct{})}
	k.managed[u.Name] = e
	k.wait.Add(1)
	go func() {
		defer k.wait.Done()
		defer k.server.recoverPanic()
		defer k.drop(u.Name, e)
		k.manage(u, e, existing)
	}()
	return e
}

func (k *podManager) drop(user string, e *managedPod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.managed[user] == e {
		delete(k.managed, user)
	}
	close(e.done)
}

// manage starts a pod and manages it until it ends.
func (k *podManager) manage(u *auth.User, e *managedPod, existing *Pod) {
	control, err := k.start(u, e, existing)
	if err != nil {
		e.err = err
		close(e.ready)
		k.server.metrics.Add("berth_login_pod_failures_total", 1)
		k.server.cfg.Log.Error("the pod of a user cannot be started", "user", u.Name, "error", err)
		return
	}
	defer func() { _ = control.Close() }()
	defer e.closeWarm()
	k.server.metrics.Add("berth_login_pods", 1)
	defer k.server.metrics.Add("berth_login_pods", -1)
	renew := k.credential(u, control)
	close(e.ready)
	lost := make(chan struct{})
	go func() { _ = control.Wait(); close(lost) }()
	poll := time.NewTicker(k.pods.Poll)
	defer poll.Stop()
	for {
		next := time.NewTimer(time.Until(renew))
		select {
		case <-k.ctx.Done():
			next.Stop()
			return
		case <-lost:
			next.Stop()
			k.server.cfg.Log.Warn("the pod of a user is lost", "user", u.Name, "pod", e.pod.Name)
			return
		case <-next.C:
			renew = k.credential(u, control)
		case <-poll.C:
			next.Stop()
			if k.retire(e.pod, control) {
				return
			}
		}
	}
}

// start starts the pod and connects to it.
func (k *podManager) start(u *auth.User, e *managedPod, existing *Pod) (_ *ssh.Client, err error) {
	defer func() {
		if r := recover(); r != nil {
			k.server.reportPanic(r)
			err = errors.New("an internal error; see the log")
		}
	}()
	ctx, cancel := context.WithTimeout(k.ctx, k.pods.StartTimeout)
	defer cancel()
	var failed error
	for range maxStartAttempts {
		e.pod = existing
		if existing == nil {
			var err error
			if e.pod, err = k.pods.Start(ctx, u, e.say); err != nil {
				return nil, errors.Join(failed, err)
			}
		}
		existing = nil
		control, err := k.dialUntilReady(ctx, e.pod)
		if err == nil {
			return control, nil
		}
		failed = err
	}
	return nil, failed
}

// A pod that runs but does not answer within dialTimeout may have ended at once; then
// another one is started.
const (
	maxStartAttempts = 3
	dialTimeout      = 15 * time.Second
)

// dialUntilReady connects to a pod's server as soon as it answers.
func (k *podManager) dialUntilReady(ctx context.Context, pod *Pod) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		conn, chans, err := k.dial(ctx, pod)
		if err == nil {
			go refuseAll(chans)
			none := make(chan *ssh.Request)
			close(none)
			return ssh.NewClient(conn, nil, none), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func refuseAll(chans <-chan ssh.NewChannel) {
	for nc := range chans {
		_ = nc.Reject(ssh.Prohibited, "not on this connection")
	}
}

// dial opens a connection to a pod, whose host key is known. It discards the pod's own
// requests.
func (k *podManager) dial(ctx context.Context, pod *Pod) (ssh.Conn, <-chan ssh.NewChannel, error) {
	gateway, host, err := PodKeys(k.pods.Secret, pod.UID)
	if err != nil {
		return nil, nil, err
	}
	signer, err1 := ssh.NewSignerFromKey(gateway)
	key, err2 := ssh.NewPublicKey(host.Public())
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", pod.Address)
	if err != nil {
		return nil, nil, err
	}
	end := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer end()
	conn, chans, requests, err := ssh.NewClientConn(c, pod.Address, &ssh.ClientConfig{
		User: pod.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(key),
		ClientVersion: "SSH-2.0-Berth", Config: ssh.Config{KeyExchanges: keyExchanges, Ciphers: ciphers, MACs: macs},
	})
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	go ssh.DiscardRequests(requests)
	return conn, chans, nil
}

// credential sends the pod a credential of its user, and returns when to do so again.
func (k *podManager) credential(u *auth.User, control *ssh.Client) time.Time {
	identity := k.server.cfg.Identity
	if identity == nil {
		return time.Now().Add(never)
	}
	ctx, cancel := context.WithTimeout(k.ctx, identityTimeout)
	defer cancel()
	cred, err := identity(ctx, u)
	if cred != nil {
		err = errors.Join(err, request(control, requestCredential, cred))
	}
	if err != nil {
		k.server.metrics.Add("berth_login_credential_errors_total", 1)
		k.server.cfg.Log.Error("no credential for the cluster", "user", u.Name, "error", err)
		return time.Now().Add(retryAfter)
	}
	if cred.Renew.IsZero() {
		return time.Now().Add(never)
	}
	return cred.Renew
}

// errRefused reports that a pod refused a request.
var errRefused = errors.New("the pod refuses")

// request sends a request to a pod's server.
func request(to ssh.Conn, name string, what any) error {
	payload, err := json.Marshal(what)
	if err != nil {
		return err
	}
	ok, _, err := to.SendRequest(name, true, payload)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", errRefused, name)
	}
	return err
}

// retire deletes a pod that has been idle for long enough.
func (k *podManager) retire(pod *Pod, control *ssh.Client) bool {
	if request(control, requestRetire, retireRequest{Idle: k.pods.Idle}) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), identityTimeout)
	defer cancel()
	if err := k.pods.Remove(ctx, pod.Name); err != nil {
		k.server.cfg.Log.Warn("an idle pod cannot be removed", "pod", pod.Name, "error", err)
	}
	k.server.audit.Write(audit.Record{Event: "pod-retired", User: pod.User, UID: &pod.UID, Target: pod.Name})
	return true
}

// link connects to the user's pod for a client. It calls say with what it waits for.
func (k *podManager) link(
	ctx context.Context,
	u *auth.User,
	a *Admission,
	say func(text string),
) (ssh.Conn, <-chan ssh.NewChannel, error) {
	ctx, cancel := context.WithTimeout(ctx, k.pods.StartTimeout)
	defer cancel()
	for {
		e := k.get(u, nil)
		if err := e.wait(ctx, say); err != nil {
			return nil, nil, err
		}
		conn, chans, err := k.admitted(ctx, e, a)
		if err == nil {
			return conn, chans, nil
		}
		// The pod is ending or lost; try the next one.
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(time.Second):
		}
	}
}

// firstReport is the time after which the state of a start is reported. A faster start
// is not.
const firstReport = 200 * time.Millisecond

// wait waits for the pod, and calls say with what it waits for.
func (k *managedPod) wait(ctx context.Context, say func(string)) error {
	tick := time.NewTicker(firstReport)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-k.ready:
			return k.err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		k.mu.Lock()
		state := k.state
		k.mu.Unlock()
		if state != "" && state != said {
			said = state
			say(state)
		}
	}
}
