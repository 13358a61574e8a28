package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
)

func TestAnObjectInALogLineIsNotPrinted(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	log := newLogger(zap.New(core)).WithValues("held", &corev1.Secret{StringData: map[string]string{"k": "canary"}})
	secret := corev1.Secret{Data: map[string][]byte{"k": []byte("canary")}}
	log.Error(errors.New("reset"), "Unable to understand watch event", "reflector", "secrets", "event", secret, "raw", []byte("canary"), "count", 7, "without a value")
	log.Info("closed", "object", &secret)
	lines := fmt.Sprint(logs.All())
	for _, entry := range logs.All() {
		lines += fmt.Sprint(entry.ContextMap())
	}
	if strings.Contains(lines, "canary") || strings.Contains(lines, "99 97 110 97 114 121") {
		t.Errorf("a value is in the log: %s", lines)
	}
	for _, want := range []string{"Unable to understand watch event", "reflector:secrets", "v1.Secret", "count:7", "reset", "closed"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is not in the log: %s", want, lines)
		}
	}
}

func TestALogLineThatRepeatsIsThereOnce(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	log := newLogger(zap.New(core))
	for i := range 100 {
		log.Error(fmt.Errorf("try %d", i), "Unable to rotate token")
	}
	log.V(2).Info("details")
	log.Info("closed")
	if n := logs.Len(); n != 1 {
		t.Errorf("%d lines, want one", n)
	}
}
