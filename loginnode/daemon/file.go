package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/session"
)

// File is the configuration file, in YAML. Unknown fields are errors, because a misspelt
// restriction would restrict nothing. docs/login-node.md explains each field.
type File struct {
	Listen  []string `json:"listen"`
	Metrics string   `json:"metrics,omitempty"`
	// HostKeys is a directory of private keys in OpenSSH's or PEM format. GenerateHostKeys
	// creates an Ed25519 and an RSA key if it is empty. NextHostKeys is a directory of
	// keys that are announced to clients in advance.
	HostKeys         string `json:"hostKeys"`
	NextHostKeys     string `json:"nextHostKeys,omitempty"`
	GenerateHostKeys bool   `json:"generateHostKeys,omitempty"`
	RunDir           string `json:"runDir,omitempty"`
	Audit            string `json:"audit,omitempty"` // a file, or "-" for standard output
	Banner           string `json:"banner,omitempty"`

	Users          []UserSource `json:"users"`
	AllowUsers     []string     `json:"allowUsers,omitempty"`
	PermitRoot     bool         `json:"permitRootLogin,omitempty"`
	KeyFiles       []string     `json:"authorizedKeysFiles,omitempty"`
	StrictModes    *bool        `json:"strictModes,omitempty"`
	KeysCommand    []string     `json:"authorizedKeysCommand,omitempty"`
	CommandUser    string       `json:"commandUser,omitempty"`
	TrustedCAs     string       `json:"trustedUserCAKeys,omitempty"`
	Principals     string       `json:"authorizedPrincipalsFile,omitempty"`
	PrincipalsCmd  []string     `json:"authorizedPrincipalsCommand,omitempty"`
	RevokedKeys    string       `json:"revokedKeys,omitempty"`
	MaxAuthTries   int          `json:"maxAuthTries,omitempty"`
	LoginGraceTime Duration     `json:"loginGraceTime,omitempty"`

	MaxStartups *Startups  `json:"maxStartups,omitempty"`
	Penalties   *Penalties `json:"perSourcePenalties,omitempty"`
	ProxyFrom   []string   `json:"proxyProtocolFrom,omitempty"`

	// SharedSources are blocks of addresses behind which there are many clients.
	SharedSources []string `json:"sharedSources,omitempty"`

	MaxSessions   int      `json:"maxSessions,omitempty"`
	MaxUserConns  int      `json:"maxUserConnections,omitempty"`
	MaxUserChans  int      `json:"maxUserChannels,omitempty"`
	UserLogins    *Rate    `json:"userLogins,omitempty"`
	UserSessions  *Rate    `json:"userSessions,omitempty"`
	AliveInterval Duration `json:"clientAliveInterval,omitempty"`
	AliveCountMax int      `json:"clientAliveCountMax,omitempty"`
	DrainGrace    Duration `json:"drainGrace,omitempty"`
	DrainMessage  string   `json:"drainMessage,omitempty"`
	// EndWithInput: the login node drains and ends when its standard input is closed, which
	// the end of the process that started it does.
	EndWithInput bool `json:"endWithInput,omitempty"`

	AcceptEnv       []string          `json:"acceptEnv,omitempty"`
	Path            string            `json:"path,omitempty"`
	LoginPath       string            `json:"loginPath,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	UserEnvironment bool              `json:"permitUserEnvironment,omitempty"`
	NewPrivileges   bool              `json:"allowNewPrivileges,omitempty"`
	MakeHome        bool              `json:"makeHome,omitempty"`
	Skeleton        string            `json:"skeleton,omitempty"`
	// WritePasswd gives users names that the image's /etc/passwd does not have.
	WritePasswd bool              `json:"writePasswd,omitempty"`
	SFTP        string            `json:"sftp,omitempty"` // "", "internal", "off", or a program
	Limits      map[string]string `json:"limits,omitempty"`
	Cgroup      *Cgroup           `json:"cgroup,omitempty"`
	// UserProcesses and UserMemory limit one user: an amount, a percentage of the pod's
	// limit such as 25%, or unlimited.
	UserProcesses string `json:"userProcesses,omitempty"`
	UserMemory    string `json:"userMemory,omitempty"`

	MOTD        []string `json:"motd,omitempty"`
	MOTDCommand []string `json:"motdCommand,omitempty"`

	Forwarding Forwarding `json:"forwarding,omitempty"`
	Pods       *Pods      `json:"pods,omitempty"`
	OIDC       *OIDC      `json:"oidc,omitempty"`
	Passwords  *Passwords `json:"passwords,omitempty"`
	Cluster    *Cluster   `json:"cluster,omitempty"`
}

// UserSource is one source of users; exactly one of its fields is set.
type UserSource struct {
	Files   *Files `json:"files,omitempty"`
	Getent  bool   `json:"getent,omitempty"`
	Cluster bool   `json:"cluster,omitempty"`
}

// Files are passwd(5) and group(5).
type Files struct {
	Passwd string `json:"passwd"`
	Group  string `json:"group"`
}

// Rate is limit.Rate.
type Rate struct {
	PerSecond float64 `json:"perSecond,omitempty"`
	Burst     int     `json:"burst,omitempty"`
}

func (r *Rate) rate() limit.Rate {
	if r == nil {
		return limit.Rate{}
	}
	return limit.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

// Startups is limit.Startups.
type Startups struct {
	Begin     int `json:"begin,omitempty"`
	Rate      int `json:"rate,omitempty"`
	Full      int `json:"full,omitempty"`
	PerSource int `json:"perSource,omitempty"`
}

// Penalties is limit.Penalties.
type Penalties struct {
	Off      bool     `json:"disabled,omitempty"`
	AuthFail Duration `json:"authFail,omitempty"`
	NoAuth   Duration `json:"noAuth,omitempty"`
	Grace    Duration `json:"graceExceeded,omitempty"`
	Crash    Duration `json:"crash,omitempty"`
	Min      Duration `json:"min,omitempty"`
	Max      Duration `json:"max,omitempty"`
	Trust    Duration `json:"trust,omitempty"`
	Exempt   []string `json:"exempt,omitempty"`
}

// Forwarding is forward.Policy.
type Forwarding struct {
	Off   bool     `json:"disabled,omitempty"`
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Cgroup names the delegated cgroup2 directory below which users have theirs.
type Cgroup struct {
	Parent string `json:"parent"`
	CPUs   string `json:"cpus,omitempty"` // cpu.max, such as "200000 100000"
	Memory string `json:"memory,omitempty"`
	PIDs   string `json:"pids,omitempty"`
	// Required: the server does not start if these limits are not possible.
	Required bool `json:"required,omitempty"`
}

// Cluster has the settings of the connection to the cluster.
type Cluster struct {
	Kubeconfig    string   `json:"kubeconfig,omitempty"`
	KeysNamespace string   `json:"keysNamespace,omitempty"`
	Server        string   `json:"server,omitempty"`
	TokenLife     Duration `json:"tokenLife,omitempty"`
	// NoNodes keeps users from reaching the nodes of their jobs through here.
	NoNodes bool `json:"noNodes,omitempty"`
}

// OIDC is an OpenID provider at which people log in by the device flow.
type OIDC struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// ClientSecretFile holds the secret of a confidential client.
	ClientSecretFile string   `json:"clientSecretFile,omitempty"`
	Scopes           []string `json:"scopes,omitempty"`
	UsernameClaim    string   `json:"usernameClaim,omitempty"`
	UsernamePattern  string   `json:"usernamePattern,omitempty"`
	RequiredGroups   []string `json:"requiredGroups,omitempty"`
	GroupsClaim      string   `json:"groupsClaim,omitempty"`
	Timeout          Duration `json:"timeout,omitempty"`
}

// Passwords lets users log in with what a directory verifies, beside keys.
type Passwords struct {
	// LDAP is a ldapsource.Config. The password is that with which the user may bind.
	LDAP map[string]any `json:"ldap"`
	// Prompts are shown one after the other, and the answers joined; nil: "Password: ".
	Prompts []string `json:"prompts,omitempty"`
	// Rate bounds the attempts for one user.
	Rate *Rate `json:"rate,omitempty"`
}

// Pods gives each user a pod of their own, in which their sessions run.
type Pods struct {
	// Namespace of the pods; "": berth-login-pods.
	Namespace string `json:"namespace,omitempty"`
	// Spec is the pods' spec; its first container has the image and resources.
	Spec map[string]any `json:"spec"`
	// Program is this program's path in the image; "": /berth/bin/loginnode.
	Program string `json:"program,omitempty"`
	Port    int    `json:"port,omitempty"` // 0: 2222
	// RunDir is the pods' memory for credentials and sockets; "": /run/berth-login.
	RunDir       string   `json:"runDir,omitempty"`
	Idle         Duration `json:"idle,omitempty"`
	StartTimeout Duration `json:"startTimeout,omitempty"`
}

// Duration is written like 30s or 5m.
type Duration = metav1.Duration

// Read reads a configuration file.
func Read(name string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f File
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &f, nil
}

// config returns the server's configuration for the file, except what needs the cluster.
func (f *File) config(p *peersOf) (loginnode.Config, error) {
	c := loginnode.Config{
		Banner:             f.Banner,
		LoginGrace:         f.LoginGraceTime.Duration,
		MaxAuthTries:       f.MaxAuthTries,
		MaxSessions:        f.MaxSessions,
		MaxUserConnections: f.MaxUserConns,
		MaxUserChannels:    f.MaxUserChans,
		KeepAlive:          f.AliveInterval.Duration,
		KeepAliveMax:       f.AliveCountMax,
		RunDir:             f.RunDir,
	}
	var errs [8]error
	if f.NextHostKeys != "" {
		c.NextHostKeys, errs[7] = hostKeys(f.NextHostKeys, false)
	}
	errs[6] = f.OIDC.config(&c)
	c.Auth, errs[0] = f.auth(p)
	c.Session, errs[1] = f.session(p.warn)
	c.Policy, errs[2] = f.Forwarding.policy()
	c.HostKeys, errs[3] = hostKeys(f.HostKeys, f.GenerateHostKeys)
	c.ProxyFrom, errs[4] = prefixes(f.ProxyFrom)
	errs[5] = f.limits(&c)
	return c, errors.Join(errs[:]...)
}

func (f *File) limits(c *loginnode.Config) error {
	c.LoginRate, c.SessionRate = f.UserLogins.rate(), f.UserSessions.rate()
	for name, r := range map[string]limit.Rate{"userLogins": c.LoginRate, "userSessions": c.SessionRate} {
		if r.PerSecond < 0 || r.Burst < 0 {
			return fmt.Errorf("%s: a rate must not be negative", name)
		}
	}
	var err error
	if c.SharedSources, err = prefixes(f.SharedSources); err != nil {
		return fmt.Errorf("sharedSources: %w", err)
	}
	if m := f.MaxStartups; m != nil {
		c.Startups = limit.Startups{Begin: m.Begin, Rate: m.Rate, Full: m.Full, PerSource: m.PerSource}
	}
	m := f.Penalties
	if m == nil {
		return nil
	}
	exempt, err := prefixes(m.Exempt)
	c.Penalties = limit.Penalties{
		Off:      m.Off,
		AuthFail: m.AuthFail.Duration,
		NoAuth:   m.NoAuth.Duration,
		Grace:    m.Grace.Duration,
		Crash:    m.Crash.Duration,
		Min:      m.Min.Duration,
		Max:      m.Max.Duration,
		Trust:    m.Trust.Duration,
		Exempt:   exempt,
	}
	return err
}

func (f *File) auth(p *peersOf) (*auth.Config, error) {
	users, err := f.directory(p)
	if err != nil {
		return nil, err
	}
	a := &auth.Config{
		Users:             users,
		KeyFiles:          f.KeyFiles,
		LaxModes:          f.StrictModes != nil && !*f.StrictModes,
		KeysCommand:       f.KeysCommand,
		TrustedCAs:        f.TrustedCAs,
		PrincipalsFile:    f.Principals,
		PrincipalsCommand: f.PrincipalsCmd,
		RevokedKeys:       f.RevokedKeys,
		PermitRoot:        f.PermitRoot,
		AllowUsers:        f.AllowUsers,
		Remote:            f.Pods != nil,
		Log:               p.authLog,
	}
	if f.CommandUser != "" {
		u, err := users.Lookup(context.Background(), f.CommandUser)
		if err != nil {
			u, err = auth.Getent{}.Lookup(context.Background(), f.CommandUser)
		}
		if err != nil {
			return nil, fmt.Errorf("commandUser %s: %w", f.CommandUser, err)
		}
		a.KeysCommandUser = asuser.User{UID: u.UID, GID: u.GID, Groups: u.Groups}
	}
	return a, nil
}

func (f *File) directory(p *peersOf) (auth.Directory, error) {
	var all auth.First
	for i, s := range f.Users {
		switch {
		case s.Files != nil && !s.Getent && !s.Cluster:
			all = append(all, auth.Files{Passwd: s.Files.Passwd, Group: s.Files.Group})
		case s.Getent && s.Files == nil && !s.Cluster:
			all = append(all, auth.Getent{})
		case s.Cluster && s.Files == nil && !s.Getent:
			if p.cluster == nil {
				return nil, errors.New("users: the cluster is a source, but there is no `cluster:` in the file")
			}
			all = append(all, auth.DirectoryFunc(p.cluster.Lookup))
		default:
			return nil, fmt.Errorf("users: entry %d is not one of files, getent and cluster", i+1)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("users: no source of users")
	}
	return all, nil
}

const debianSFTP = "/usr/lib/openssh/sftp-server"

func (f *File) session(warn func(string)) (session.Config, error) {
	c := session.Config{
		Child:     []string{"/proc/self/exe", session.ChildCommand},
		AcceptEnv: f.AcceptEnv, Path: f.Path, LoginPath: f.LoginPath, PermitUserEnvironment: f.UserEnvironment,
		AllowNewPrivileges: f.NewPrivileges, MakeHome: f.MakeHome, Skeleton: f.Skeleton,
		MOTD: session.MOTD{Files: f.MOTD, Command: f.MOTDCommand},
	}
	switch f.SFTP {
	case "":
		if _, err := os.Stat(debianSFTP); err == nil {
			c.SFTPServer = debianSFTP
		}
	case "internal":
	case "off":
		c.SFTPOff = true
	default:
		c.SFTPServer = f.SFTP
	}
	if len(f.Env) > 0 {
		var env []string
		for name, value := range f.Env {
			env = append(env, name+"="+value)
		}
		c.Prepare = func(context.Context, *auth.Login) ([]string, func(), error) { return env, nil, nil }
	}
	if f.WritePasswd {
		c.Register = (&names{dir: "/etc", warn: warn}).add
	}
	return c, f.sessionLimits(&c, warn)
}

// sessionLimits sets the limits of a user's processes: a cgroup if there is one, and
// resource limits. Limits in the file itself take precedence.
func (f *File) sessionLimits(c *session.Config, warn func(string)) error {
	own, err := f.userLimits(readCapacity("/"))
	if err != nil {
		return err
	}
	if c.Limits, err = limits(f.Limits); err != nil {
		return err
	}
	if f.Cgroup == nil {
		c.Limits = append(c.Limits, missing(own.rlimits(os.Geteuid() == 0), c.Limits)...)
		return nil
	}
	group := *f.Cgroup
	own.fill(&group)
	groups, standIns, err := group.groups(warn)
	if groups != nil {
		c.Place, c.EndAll = groups.Place, groups.Kill
	}
	c.Limits = append(c.Limits, missing(standIns, c.Limits)...)
	return err
}

func (f *Forwarding) policy() (forward.Policy, error) {
	p := forward.Policy{Off: f.Off}
	for _, part := range []struct {
		from []string
		to   *[]forward.Rule
	}{{f.Allow, &p.Allow}, {f.Deny, &p.Deny}} {
		for _, s := range part.from {
			r, err := forward.ParseRule(s)
			if err != nil {
				return p, err
			}
			*part.to = append(*part.to, r...)
		}
	}
	return p, nil
}

func prefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil && !strings.Contains(s, "/") {
			var a netip.Addr
			if a, err = netip.ParseAddr(s); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// drainGrace is the default time that sessions may continue after SIGTERM.
const drainGrace = 10 * time.Minute
