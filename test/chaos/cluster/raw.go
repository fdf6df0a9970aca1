package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// listFrom are options of a watch that begins after a list.
func listFrom(version string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: version}
}

// rawGet gets a path of the API server.
func rawGet(ctx context.Context, cfg *rest.Config, path string) (string, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return string(text), err
}
