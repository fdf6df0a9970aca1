package status

// Token is the body of POST tokens, which requests a token, and the response to it.
type Token struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// User is whose requests are made with the token; empty: the caller.
	User string `json:"user,omitempty"`
	// Life is its lifetime in seconds. The response has that of the token, which may be
	// shorter.
	Life int64 `json:"lifeSeconds"`
	// Token is empty in a request.
	Token string `json:"token,omitempty"`
}

// Bounds of the lifetime of a token in seconds.
const (
	MinTokenLife     = 600            // the shortest that the API server issues
	DefaultTokenLife = 1800           // scontrol(1)
	MaxTokenLife     = 30 * 24 * 3600 // of a user's own, unless the Cluster says otherwise
)
