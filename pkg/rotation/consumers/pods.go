package consumers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/targets"
)

// pods are the Pods in the namespaces of a set's Secrets and its workloads.
type pods struct {
	cluster   *kube.Client
	home      string // the namespace of the workloads
	running   map[string][]corev1.Pod
	selectors []labels.Selector // of the workloads seen so far
}

// lookAtPods adds the Pods of the workloads to a snapshot, and other Pods that use a
// Secret of the set.
func (c *Consumers) lookAtPods(ctx context.Context, s *snapshot, secrets []rotation.Shown) error {
	c.listed = time.Now()
	home, err := c.home(secrets)
	if err != nil {
		return err
	}
	p := pods{cluster: c.Cluster, home: home, running: map[string][]corev1.Pod{}}
	for _, namespace := range namespaces(home, secrets) {
		listed, err := c.Cluster.Pods(ctx, namespace)
		if err != nil {
			s.broken = append(s.broken, err.Error())
		}
		p.running[namespace] = slices.DeleteFunc(listed, func(pod corev1.Pod) bool { return !runs(pod) })
	}
	for _, e := range c.parsed.pods {
		theirs, _, err := p.of(ctx, targets.WorkloadIn("", e.Workload))
		if err != nil {
			s.broken = append(s.broken, err.Error())
			continue
		}
		g := group{name: "Pods of " + e.Workload, answers: true}
		for _, pod := range theirs {
			g.members = append(g.members, member{name: pod.Name, address: podURL(pod.Status.PodIP, e)})
		}
		s.groups = append(s.groups, g)
	}
	if err := c.lookAtRestarts(ctx, s, &p, secrets); err != nil {
		s.broken = append(s.broken, err.Error())
	}
	c.unasked = p.others(secrets)
	s.unasked = c.unasked
	return nil
}

// lookAtRestarts adds the Pods of workloads that must be restarted.
func (c *Consumers) lookAtRestarts(ctx context.Context, s *snapshot, p *pods, secrets []rotation.Shown) error {
	if len(c.restarted) == 0 {
		return nil
	}
	revisions, err := c.revisions(ctx, p.home, secrets)
	if err != nil {
		return err
	}
	for _, w := range c.restarted {
		theirs, complete, err := p.of(ctx, w)
		if err == nil && !complete {
			err = fmt.Errorf("the rollout of %s is not complete", w)
		}
		if err != nil {
			s.broken = append(s.broken, err.Error())
		}
		g := group{name: "Pods of " + w.String()}
		for _, pod := range theirs {
			g.members = append(g.members, member{name: pod.Name, old: revisions.before(pod)})
		}
		s.groups = append(s.groups, g)
	}
	return nil
}

// of returns the running Pods of a workload in the home namespace, and whether its
// rollout is complete.
func (p *pods) of(ctx context.Context, w targets.Workload) (theirs []corev1.Pod, complete bool, err error) {
	w.Namespace = p.home
	rollout, err := p.cluster.Rollout(ctx, w)
	if err != nil {
		return nil, false, err
	}
	p.selectors = append(p.selectors, rollout.Selector)
	for _, pod := range p.running[p.home] {
		if rollout.Selector.Matches(labels.Set(pod.Labels)) {
			theirs = append(theirs, pod)
		}
	}
	return theirs, rollout.Complete, nil
}

// others returns the Pods that use a Secret of the set but belong to none of the
// workloads.
func (p *pods) others(secrets []rotation.Shown) (names []string) {
	for namespace, all := range p.running {
		for _, pod := range all {
			covered := namespace == p.home && slices.ContainsFunc(p.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) })
			if !covered && slices.ContainsFunc(secrets, func(s rotation.Shown) bool { return s.Namespace == namespace && uses(pod.Spec, s.Name) }) {
				names = append(names, namespace+"/"+pod.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// runs reports whether a Pod's containers may run: it has a node and is not finished.
// Pods that start or terminate count, and so do Pods on a dead node.
func runs(pod corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// home returns the namespace of the workloads.
func (c *Consumers) home(secrets []rotation.Shown) (string, error) {
	if c.Namespace != "" {
		return c.Namespace, nil
	}
	switch all := namespaces("", secrets); len(all) {
	case 0:
		return "", errors.New("no Secret of the set is known, and so no namespace of its workloads; set namespace")
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("the set's Secrets are in the namespaces %s; set namespace to that of the workloads", brief.List(all))
	}
}

// namespaces returns the namespaces of the Secrets, and home.
func namespaces(home string, secrets []rotation.Shown) (all []string) {
	if home != "" {
		all = append(all, home)
	}
	for _, s := range secrets {
		all = append(all, s.Namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// revisions are the revisions of the set's Secrets in a namespace, by the Pod annotation
// that records them.
type revisions map[string]notify.Revision

func (c *Consumers) revisions(ctx context.Context, namespace string, secrets []rotation.Shown) (revisions, error) {
	all := revisions{}
	for _, s := range secrets {
		if s.Namespace != namespace {
			continue
		}
		annotations, err := c.Cluster.Annotations(ctx, namespace, s.Name)
		if err != nil {
			return nil, err
		}
		number, ok := annotations[targets.RevisionAnnotation]
		if !ok {
			continue // Syncer never changed this Secret
		}
		r, err := notify.ParseRevision(number, annotations[targets.RevisedAnnotation])
		if err != nil {
			return nil, err
		}
		all[notify.TemplateAnnotation(s.Name)] = r
	}
	return all, nil
}

// before reports whether a Pod may have started before one of the Secrets received its
// present data. That is so if the Pod has no annotation of a restart for this revision
// and was not created after it.
func (all revisions) before(pod corev1.Pod) bool {
	for annotation, r := range all {
		noted, _ := strconv.ParseInt(pod.Annotations[annotation], 10, 64)
		if noted < r.Number && !pod.CreationTimestamp.After(r.At) {
			return true
		}
	}
	return false
}

// uses reports whether the containers of a Pod use a Secret. Secrets for pulling images
// do not count.
func uses(pod corev1.PodSpec, secret string) bool {
	for _, v := range pod.Volumes {
		if v.Secret != nil && v.Secret.SecretName == secret {
			return true
		}
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
			return p.Secret != nil && p.Secret.Name == secret
		}) {
			return true
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if fromEnvironment(c.Env, c.EnvFrom, secret) {
			return true
		}
	}
	return slices.ContainsFunc(pod.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return fromEnvironment(c.Env, c.EnvFrom, secret) })
}

func fromEnvironment(env []corev1.EnvVar, from []corev1.EnvFromSource, secret string) bool {
	return slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name == secret
	}) || slices.ContainsFunc(from, func(e corev1.EnvFromSource) bool { return e.SecretRef != nil && e.SecretRef.Name == secret })
}
