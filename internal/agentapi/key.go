package agentapi

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/wire"
)

// KeySecret is the Secret in wire.SystemNamespace that the jobs' keys are
// derived from. Deleting it changes the keys of jobs that start later.
const KeySecret = "berth-agent-key"

const keyName = "key"

// key is the cluster's secret, read when it is first needed and made if there
// is none.
type key struct {
	client client.Client

	mu    sync.Mutex
	bytes []byte
}

var errShortKey = errors.New("the Secret " + wire.SystemNamespace + "/" + KeySecret +
	" holds no key of 32 bytes; delete it, and another is made")

func (k *key) get(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bytes != nil {
		return k.bytes, nil
	}
	var s corev1.Secret
	err := k.client.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: KeySecret}, &s)
	if apierrors.IsNotFound(err) {
		s, err = k.create(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the agents' key: %w", err)
	}
	if len(s.Data[keyName]) < sha256.Size {
		return nil, errShortKey
	}
	k.bytes = s.Data[keyName]
	return k.bytes, nil
}

// create creates the Secret. If another process was faster, its Secret counts.
func (k *key) create(ctx context.Context) (corev1.Secret, error) {
	random := make([]byte, sha256.Size)
	if _, err := rand.Read(random); err != nil {
		return corev1.Secret{}, err
	}
	s := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: KeySecret},
		Data:       map[string][]byte{keyName: random},
	}
	err := k.client.Create(ctx, &s)
	if apierrors.IsAlreadyExists(err) {
		err = k.client.Get(ctx, client.ObjectKeyFromObject(&s), &s)
	}
	return s, err
}

// certificate derives the attempt's key and self-signed certificate from the
// cluster's secret: every agent of the attempt gets the same bytes from every
// process, and no other attempt does.
func certificate(secret []byte, uid types.UID, at attempt) (cert, private []byte, err error) {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "berth agents v1\x00%s\x00%d\x00%d", uid, at.id, at.n)
	pair := ed25519.NewKeyFromSeed(mac.Sum(nil))
	template := &x509.Certificate{
		SerialNumber: new(big.Int).Add(new(big.Int).Lsh(big.NewInt(at.id), 32), big.NewInt(int64(at.n))),
		Subject: pkix.Name{
			CommonName: "berth-job-" + strconv.FormatInt(at.id, 10) + "-" + strconv.Itoa(int(at.n)),
		},
		// The certificate is compared as a whole; it dies with the job. The
		// bounds are constants so that it is always the same.
		NotBefore:             time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(nil, template, template, pair.Public(), pair) // Ed25519 takes no randomness
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of job %d: %w", at.id, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		return nil, nil, fmt.Errorf("key of job %d: %w", at.id, err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return cert, private, nil
}
