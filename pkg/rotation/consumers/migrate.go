package consumers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/targets"
)

// migrate renews, with one Job, everything that was made with a version, and uses the
// primary for that. It answers whether the migration is complete.
func (c *Consumers) migrate(ctx context.Context, secrets []rotation.Shown, from, to string) rotation.Answer {
	if c.cronJob == "" || c.migrated[from] {
		return rotation.Answer{Open: true}
	}
	job, err := c.job(ctx, secrets, from, to)
	if err != nil {
		return rotation.Answer{Waits: err.Error()}
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			c.migrated[from] = true
			return rotation.Answer{Open: true}
		case batchv1.JobFailed:
			return rotation.Answer{Waits: fmt.Sprintf("job/%s of namespace %s failed (%s); see its log, and delete it so that Syncer creates it again", job.Name, job.Namespace, condition.Reason)}
		}
	}
	return rotation.Answer{Waits: fmt.Sprintf("job/%s of namespace %s", job.Name, job.Namespace)}
}

// job returns the Job of a version. It makes the Job if none exists.
func (c *Consumers) job(ctx context.Context, secrets []rotation.Shown, from, to string) (*batchv1.Job, error) {
	namespace, err := c.home(secrets)
	if err != nil {
		return nil, err
	}
	name := jobName(c.cronJob, c.Set, from)
	jobs := c.Cluster.Batch.Jobs(namespace)
	job, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return job, wrap(err, "reading job/%s of namespace %s", name, namespace)
	}
	job, err = c.makeJob(ctx, namespace, name, map[string]string{"SYNCER_SET": c.Set, "SYNCER_FROM": from, "SYNCER_TO": to})
	if apierrors.IsAlreadyExists(err) { // another leader made it first
		job, err = jobs.Get(ctx, name, metav1.GetOptions{})
	}
	return job, err
}

// makeJob makes a Job from the CronJob's template.
func (c *Consumers) makeJob(ctx context.Context, namespace, name string, env map[string]string, dryRun ...string) (*batchv1.Job, error) {
	cron, err := c.Cluster.Batch.CronJobs(namespace).Get(ctx, c.cronJob, metav1.GetOptions{})
	if err != nil {
		return nil, wrap(err, "reading cronjob/%s of namespace %s", c.cronJob, namespace)
	}
	job, err := c.Cluster.Batch.Jobs(namespace).Create(ctx, newJob(cron, name, env), metav1.CreateOptions{FieldManager: targets.FieldManager, DryRun: dryRun})
	return job, wrap(err, "making job/%s of namespace %s", name, namespace)
}

// jobName derives the name from the set and the version, so that repeated creation yields
// only one Job.
func jobName(cronJob, set, from string) string {
	digest := sha256.Sum256([]byte(set + "\x00" + from))
	return cronJob[:min(len(cronJob), 52)] + "-" + hex.EncodeToString(digest[:5])
}

// newJob returns a Job from a CronJob's template, with additional environment variables
// in its containers.
func newJob(cron *batchv1.CronJob, name string, env map[string]string) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: cron.Namespace, Labels: template.Labels, Annotations: template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob", Name: cron.Name, UID: cron.UID}},
	}, Spec: template.Spec}
	pod := &job.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = withEnv(containers[i].Env, env)
		}
	}
	return job
}

// withEnv returns an environment that starts with these variables, because others may
// refer to them.
func withEnv(old []corev1.EnvVar, env map[string]string) (all []corev1.EnvVar) {
	for _, name := range []string{"SYNCER_SET", "SYNCER_FROM", "SYNCER_TO"} {
		all = append(all, corev1.EnvVar{Name: name, Value: env[name]})
	}
	return append(all, slices.DeleteFunc(old, func(e corev1.EnvVar) bool { _, ours := env[e.Name]; return ours })...)
}

// wrap returns nil for a nil error.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
