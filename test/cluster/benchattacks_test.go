//go:build long

package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// hostilities are what a namespace, or a Pod, does to delay others. Each goes on
// until ctx ends, or until it has made all that it makes. What takes the time of
// this process, in which the Conjur server is too, is prepared before. Both may be nil.
var hostilities = []struct {
	name    string
	do      func(ctx context.Context, w *world, namespace string)
	prepare func(namespace string) []*corev1.Secret
}{
	{name: "2,707 ConfigMap references in each of 2 Secrets", do: func(_ context.Context, w *world, namespace string) {
		for i := range 2 {
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), nil, func(s *corev1.Secret) {
				for j := range 2707 { // short, so that all fit into the annotations of a Secret
					s.Annotations[fmt.Sprintf("conjur.org/conjur-secrets.%x", j)] = "- a: a"
					s.Annotations[fmt.Sprintf("conjur.org/secret-file-template-configmap.%x", j)] = fmt.Sprintf("m%d-%x/t", i, j)
				}
			})
		}
	}},
	{name: "81,000 forged ids in each of 10 Secrets", prepare: func(namespace string) (all []*corev1.Secret) {
		for i := range 10 {
			ids := make([]string, 81_000)
			for j := range ids {
				ids[j] = fmt.Sprintf("v%d", j)
			}
			all = append(all, forged(namespace, fmt.Sprintf("bad-%d", i), ids))
		}
		return all
	}},
	{name: "5,000 Secrets with a missing variable", do: func(ctx context.Context, w *world, namespace string) {
		for i := range 5000 {
			if ctx.Err() == nil {
				w.secretIn(namespace, fmt.Sprintf("bad-%d", i), map[string]string{"a": "missing"})
			}
		}
	}},
	{name: "10 Secrets of 960 KiB, renewed each second", do: func(ctx context.Context, w *world, namespace string) {
		content, conjurMap := map[string][]byte{}, map[string]string{}
		for i := range 15 {
			id := fmt.Sprintf("large/%d", i)
			content[id], conjurMap[strconv.Itoa(i)] = []byte(strings.Repeat("x", 64<<10)), id
		}
		w.Declare(slices.Collect(maps.Keys(content))...)
		w.Set(content)
		for i := range 10 {
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), conjurMap)
		}
		each(ctx, time.Second, func(i int) {
			for id := range content {
				content[id] = []byte(strings.Repeat(string(rune('a'+i%26)), 64<<10))
			}
			w.Set(content)
		})
	}},
	{name: "60 maps of 1 MiB", do: func(_ context.Context, w *world, namespace string) { w.large(namespace, 60, 1<<20-1000) }},
	{name: "17,523 missing workloads in 3 Secrets, 5,000 in 100", do: func(_ context.Context, w *world, namespace string) {
		w.names(namespace, "conjur.org/restart-workloads", "deployment/", 3, 5841, nil)
		w.names(namespace, "conjur.org/restart-workloads", "deployment/", 100, 50, nil)
	}},
	{name: "59,489 missing service accounts in a Secret, 5,000 in 100", do: func(_ context.Context, w *world, namespace string) {
		pull := func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeDockerConfigJson
			s.Data[corev1.DockerConfigJsonKey] = []byte("{}")
		}
		w.names(namespace, "conjur.org/pull-secret-for", "", 1, 59_489, pull) // as many as fit
		w.names(namespace, "conjur.org/pull-secret-for", "", 100, 50, pull)
	}},
	{name: "a fight on a key, 50 writes/s", do: func(ctx context.Context, w *world, namespace string) {
		w.secretIn(namespace, "bad", map[string]string{"a": "shared"})
		each(ctx, 20*time.Millisecond, func(i int) {
			w.merge(ctx, namespace, "bad", fmt.Sprintf(`{"data":{"a":%q}}`, base64.StdEncoding.EncodeToString(fmt.Append(nil, "theirs", i))))
		})
	}},
	{name: "a flood of changes, each for an Event, 100/s", do: func(ctx context.Context, w *world, namespace string) {
		w.secretIn(namespace, "bad", map[string]string{"a": "shared"})
		each(ctx, 10*time.Millisecond, func(i int) {
			w.merge(ctx, namespace, "bad", fmt.Sprintf(`{"stringData":{"conjur-map":"a: shared\nbad-%d: 17\n"}}`, i))
		})
	}},
	{name: "12,764 half-sent requests to the metrics, again and again", do: func(ctx context.Context, w *world, _ string) { w.halfSend(ctx, 12_764) }},
}

// names makes Secrets whose annotation lists names that are nobody's.
func (w *world) names(namespace, annotation, prefix string, secrets, each int, change func(*corev1.Secret)) {
	w.Helper()
	for i := range secrets {
		names := make([]string, each)
		for j := range names {
			names[j] = prefix + strconv.FormatInt(int64(each*i+j), 36)
		}
		w.secretIn(namespace, fmt.Sprintf("bad-%d-%d", each, i), map[string]string{"a": "shared"}, func(s *corev1.Secret) {
			s.Annotations[annotation] = strings.Join(names, ",")
			if change != nil {
				change(s)
			}
		})
	}
}

// each calls do at each tick until ctx ends.
func each(ctx context.Context, tick time.Duration, do func(i int)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
			do(i)
		case <-ctx.Done():
			return
		}
	}
}

// halfSend opens connections to the probes' port, sends a part of a request on
// each, and begins anew when there are n.
func (w *world) halfSend(ctx context.Context, n int) {
	var open []net.Conn
	closeAll := func() {
		for _, c := range open {
			_ = c.Close()
		}
		open = nil
	}
	defer closeAll()
	for ctx.Err() == nil {
		var dialer net.Dialer
		if c, err := dialer.DialContext(ctx, "tcp", w.address); err == nil {
			open = append(open, c)
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
		}
		if len(open) == n {
			closeAll()
		}
	}
}
