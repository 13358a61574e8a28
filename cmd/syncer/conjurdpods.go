package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/kube"
)

// pods gives conjurd's authn-k8s access to the Pods of a cluster.
type pods struct{ *kube.Client }

// Pod implements conjurd.Pods.
func (p pods) Pod(ctx context.Context, namespace, name string) (*conjurd.Pod, error) {
	live, err := p.Core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	home, err := p.Core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := &conjurd.Pod{NamespaceLabels: home.Labels, ServiceAccount: live.Spec.ServiceAccountName}
	for _, containers := range [][]corev1.Container{live.Spec.InitContainers, live.Spec.Containers} {
		for _, container := range containers {
			pod.Containers = append(pod.Containers, container.Name)
		}
	}
	pod.Controllers, err = p.controllers(ctx, namespace, live.OwnerReferences)
	return pod, err
}

// controllers returns the owners and their owners.
func (p pods) controllers(ctx context.Context, namespace string, owners []metav1.OwnerReference) (all []string, err error) {
	for _, owner := range owners {
		all = append(all, strings.ToLower(owner.Kind)+"/"+owner.Name)
		var above metav1.Object
		switch owner.Kind {
		case "ReplicaSet":
			above, err = p.Apps.ReplicaSets(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		case "ReplicationController":
			above, err = p.Core.ReplicationControllers(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, owner := range above.GetOwnerReferences() {
			all = append(all, strings.ToLower(owner.Kind)+"/"+owner.Name)
		}
	}
	return all, nil
}

// Exec implements conjurd.Pods.
func (p pods) Exec(ctx context.Context, namespace, name, container string, script []byte) error {
	return p.Client.Exec(ctx, namespace, name, container, "sh", script)
}
