package realnode

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addClass creates the storage class of the site's volume. Nothing provisions it: its
// only volume exists.
func (s *Site) addClass(ctx context.Context) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: storageClass}, Provisioner: "kubernetes.io/no-provisioner",
	}
	_, err := s.Client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
