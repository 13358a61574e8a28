package targets

import (
	"strings"
	"time"
)

// Workload names a Deployment, StatefulSet or DaemonSet, whose Pods use targets.
type Workload struct {
	Kind            string // in lower case, such as "deployment"
	Namespace, Name string
}

// WorkloadIn returns the workload of a namespace that is written as "kind/name".
func WorkloadIn(namespace, text string) Workload {
	kind, name, _ := strings.Cut(text, "/")
	return Workload{kind, namespace, name}
}

// String returns "kind/name".
func (w Workload) String() string { return w.Kind + "/" + w.Name }

// PodTemplate is the part of a workload that decides whether its Pods are replaced.
type PodTemplate struct {
	// Annotations are the annotations of the workload's Pods.
	Annotations map[string]string
	// Created is the creation time of the workload.
	Created time.Time
	// Version is the workload's resource version, which changes with each write.
	Version string
}
