package job

// Bytes returns the approximate size of the Job as JSON: its texts, and a fixed size
// for each entry of a list. It is cheap, and grows with everything that a user can
// enlarge.
func (j *Job) Bytes() int64 {
	n := len(j.Name) + texts(j.Partitions) + len(j.Account) + len(j.QOS) + len(j.Reservation) + len(j.WCKey) +
		len(j.Comment) + len(j.AdminComment) + len(j.Extra) + len(j.Hold) + pairs(j.Options) +
		dependencyBytes*len(j.Dependencies.Items) + texts(j.Mail.Types) + len(j.Mail.User)
	for i := range j.Licenses {
		n += entryBytes + len(j.Licenses[i].Name)
	}
	for i := range j.Shape.GRES {
		g := &j.Shape.GRES[i]
		n += entryBytes + len(g.Name) + len(g.Type) + len(g.Per)
	}
	if j.Array != nil {
		n += len(j.Array.Spec)
	}
	return fixedBytes + int64(n) + j.Placement.bytes() + j.Batch.bytes()
}

// Sizes that do not depend on the texts.
const (
	fixedBytes      = 512 // names of members, numbers
	entryBytes      = 32  // of a list of structs
	dependencyBytes = 48
	textBytes       = 3 // quotes and a comma
)

func (p *Placement) bytes() int64 {
	return int64(texts(p.NodeList) + texts(p.Exclude) + len(p.Constraint) + len(p.Prefer) + len(p.Exclusive) +
		len(p.Segments) + len(p.Batch) + len(p.Distribution) + len(p.Hint))
}

func (b *Batch) bytes() int64 {
	n := len(b.WorkDir) + len(b.SubmitHost) + len(b.SubmitAddress) + len(b.SubmitLine) + texts(b.Args) +
		len(b.Command) + len(b.Output) + len(b.Error) + len(b.Input) +
		len(b.OpenMode) + len(b.Export) + pairs(b.Container) + len(b.Client)
	for name := range b.Rlimits {
		n += entryBytes + len(name)
	}
	if b.Group != nil {
		n += len(b.Group.Name)
	}
	return int64(n)
}

func texts(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s) + textBytes
	}
	return n
}

func pairs(m map[string]string) int {
	n := 0
	for k, v := range m {
		n += len(k) + len(v) + 2*textBytes
	}
	return n
}
