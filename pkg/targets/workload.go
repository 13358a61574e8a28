package targets

import (
	"cmp"
	"encoding/json"
	"slices"
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

// RestartMemo remembers, at a Secret, the last revision of its data for which a workload
// needs no restart. The owner of a workload may overwrite the annotations of its Pod
// template, so the template alone cannot remember it.
type RestartMemo struct {
	Revision string `json:"revision"`
	// Restarts counts the restarts for the revision. 0 means that none was needed.
	Restarts int `json:"restarts,omitempty"`
}

// NeverRevised is the revision of a Secret that Syncer has not written.
const NeverRevised = "0"

// RestartMemos are the memos of a Secret, by workload as "kind/name".
type RestartMemos map[string]RestartMemo

// ParseRestartMemos parses RestartsAnnotation. Text that is not from Syncer counts as none.
func ParseRestartMemos(text string) RestartMemos {
	memos := RestartMemos{}
	if json.Unmarshal([]byte(text), &memos) != nil || memos == nil {
		return RestartMemos{}
	}
	return memos
}

// String returns the text of RestartsAnnotation.
func (m RestartMemos) String() string {
	text, _ := json.Marshal(m) // strings and numbers only
	return string(text)
}

// Revised adds the change from one revision to the next. Each named workload then needs a
// restart. The memo of an earlier change stays. A workload that is no
// longer named needs none, not even if it is named again. previous is "" for a Secret
// that Syncer never revised.
func (m RestartMemos) Revised(named []string, previous, next string) {
	for w := range m {
		if !slices.Contains(named, w) {
			m[w] = RestartMemo{Revision: next}
		}
	}
	for _, w := range named {
		if _, known := m[w]; !known {
			m[w] = RestartMemo{Revision: cmp.Or(previous, NeverRevised)}
		}
	}
}

// PodTemplate is the part of a workload that decides whether its Pods are replaced.
type PodTemplate struct {
	// Annotations are the annotations of the workload's Pods.
	Annotations map[string]string
	// Created is the creation time of the workload.
	Created time.Time
	// Version is the workload's resource version, which changes with each write.
	Version string
}
