package kube

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestTheValuesOfASecretThatWasReadAreWiped(t *testing.T) {
	value, conjurMap := []byte("canary"), []byte("k: app/k")
	s := strip(&corev1.Secret{Data: map[string][]byte{"k": value, targets.ConjurMapKey: conjurMap}})
	if !bytes.Equal(value, make([]byte, len(value))) {
		t.Errorf("%q is left", value)
	}
	if text, _ := s.ConjurMap(); text != "k: app/k" {
		t.Errorf("the map is %q", text)
	}
}
