package kubesecrets

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// callTimeout bounds one request, so that an API server that hangs does not block a
// worker.
const callTimeout = 30 * time.Second

// get reads the target's Secret. It returns nil if there is none.
func (k *Sink) get(ctx context.Context, t *targets.Target) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	live, err := k.cluster.secrets(t.Secret.Namespace).Get(ctx, t.Secret.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return live, nil
	case isNoSecret(err):
		return nil, nil
	}
	return nil, callError("get", t, err)
}

func (k *Sink) patch(ctx context.Context, t *targets.Target, kind types.PatchType, body []byte, o metav1.PatchOptions) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return k.cluster.secrets(t.Secret.Namespace).Patch(ctx, t.Secret.Name, kind, body, o)
}

// ownAlone makes our field manager the only owner of the keys, and returns the new
// resource version. It changes no data. Afterwards one write can both remove the
// keys and make all other changes. If that write never follows, nothing is lost. If
// the Secret changed since it was read, ownAlone returns a conflict.
func (k *Sink) ownAlone(ctx context.Context, t *targets.Target, live *corev1.Secret, keys []string) (string, error) {
	entries, err := takeOver(live.ManagedFields, keys, metav1.NewTime(k.now()))
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.ResourceVersion, "managedFields": entries,
	}})
	if err != nil {
		return "", err
	}
	after, err := k.patch(ctx, t, types.MergePatchType, body, metav1.PatchOptions{FieldManager: targets.FieldManager})
	if err != nil {
		return "", callError("patch", t, err)
	}
	clearData(after.Data)
	return after.ResourceVersion, nil
}

// write makes the edit and returns the resulting Secret. If a role grants update
// and not patch, as the Secrets Provider's does, an update makes the changes that
// it can (decision 007).
func (k *Sink) write(ctx context.Context, r records.Record, live *corev1.Secret, e *secretEdit) (*corev1.Secret, error) {
	t := r.Spec
	after, err := k.patchData(ctx, r, live, e)
	if _, refused := errors.AsType[*unpatchableError](err); !refused {
		if err == nil {
			k.wrote(t.Secret.Namespace, nil)
		}
		return after, err
	}
	if e.known {
		return nil, errConflict // an update needs all data
	}
	after, updateErr := k.update(ctx, r, live, e)
	if live.UID != "" && apierrors.IsForbidden(updateErr) {
		return nil, err // only patch could do it
	}
	if updateErr == nil {
		k.wrote(t.Secret.Namespace, errors.New("Secrets are written by update, because no role grants the verb patch; grant patch, so that a concurrent change needs no second request"))
	}
	return after, updateErr
}

// wrote remarks whether writes to the Secrets of a namespace are limited.
func (k *Sink) wrote(namespace string, err error) {
	if k.Remarker != nil {
		k.Remarker.Remark("writing secrets of namespace "+namespace, err)
	}
}

// patchData makes the edit by a server-side apply. It first becomes the only owner
// of keys to remove.
func (k *Sink) patchData(ctx context.Context, r records.Record, live *corev1.Secret, e *secretEdit) (*corev1.Secret, error) {
	t := r.Spec
	if len(e.shared) > 0 {
		var err error
		if live.ResourceVersion, err = k.ownAlone(ctx, t, live, e.shared); err != nil {
			return nil, err
		}
	}
	body, err := k.applyConfiguration(r, live, e)
	if err != nil {
		return nil, err
	}
	force := true // a key that the definition names is ours; its former manager becomes a rival
	after, err := k.patch(ctx, t, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: targets.FieldManager, Force: &force})
	switch answer, ok := errors.AsType[*apierrors.StatusError](err); {
	case err == nil:
		return after, nil
	case ok && live.UID == "" && hasCause(answer.ErrStatus, "type"):
		return nil, errConflict // another client created it
	}
	return nil, callError("patch", t, err)
}

// update makes the edit by replacing the Secret. If the Secret changed since it was
// read, update returns a conflict.
func (k *Sink) update(ctx context.Context, r records.Record, live *corev1.Secret, e *secretEdit) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t, wanted := r.Spec, *live
	wanted.Data = e.data
	wanted.Annotations = maps.Clone(live.Annotations)
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	if e.members != nil {
		delete(wanted.Annotations, targets.MembersAnnotation)
	}
	if e.sets != nil {
		delete(wanted.Annotations, targets.RotationAnnotation)
	}
	maps.Copy(wanted.Annotations, k.metadata(r, live, e).Annotations)
	secrets := k.cluster.secrets(t.Secret.Namespace)
	if live.UID == "" {
		after, err := secrets.Create(ctx, &wanted, metav1.CreateOptions{FieldManager: targets.FieldManager})
		if err != nil {
			return nil, callError("create", t, err)
		}
		return after, nil
	}
	// An update owns the fields that it changes. Take over fields that already have
	// the wanted value.
	var foreign []string
	for key := range e.keys {
		if !e.owned.has("data", key) {
			foreign = append(foreign, key)
		}
	}
	var err error
	if wanted.ManagedFields, err = takeOver(live.ManagedFields, foreign, metav1.NewTime(k.now())); err != nil {
		return nil, err
	}
	after, err := secrets.Update(ctx, &wanted, metav1.UpdateOptions{FieldManager: targets.FieldManager})
	if err != nil {
		return nil, callError("update", t, err)
	}
	return after, nil
}

// neverVersion is a resource version that no Secret has. An apply with it creates a
// Secret, or is a conflict if the Secret exists.
const neverVersion = "1"

// applyMeta is the metadata of an apply. With a UID the apply changes only that
// Secret and never creates one. With a resource version it fails if the Secret
// changed since. A resource version alone would permit creation. Therefore a late
// write of a former leader does not replace newer content.
type applyMeta struct {
	Name            string            `json:"name"`
	UID             types.UID         `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// metadata lists the metadata that we own after the edit. The revision increases
// when the data changes.
func (k *Sink) metadata(r records.Record, live *corev1.Secret, e *secretEdit) applyMeta {
	isNew := live.UID == ""
	meta := applyMeta{
		Name: live.Name, UID: live.UID, ResourceVersion: cmp.Or(live.ResourceVersion, neverVersion),
		Labels:      among(live.Labels, e.owned.names("metadata", "labels"), isNew),
		Annotations: among(live.Annotations, e.owned.names("metadata", "annotations"), isNew),
	}
	if e.changed {
		stamp := nextStamp(r, live.Annotations, e.content(live.Type), e.first, k.now())
		setStamp(meta.Annotations, stamp)
		noteRestarts(meta.Annotations, r, live.Annotations, stamp)
	}
	if e.members != nil {
		delete(meta.Annotations, targets.MembersAnnotation)
		maps.Copy(meta.Annotations, membersAnnotation(e.members))
	}
	if e.sets != nil {
		delete(meta.Annotations, targets.RotationAnnotation)
		if *e.sets != "" {
			meta.Annotations[targets.RotationAnnotation] = *e.sets
		}
	}
	return meta
}

// applyConfiguration returns the body of a server-side apply. It lists every field
// that we own after the edit: an apply removes each field that we owned and that
// it does not list.
//
// It writes the values directly into the body, because encoding/json would keep
// them in an internal buffer. The body cannot be cleared: net/http may read it even
// after the response.
func (k *Sink) applyConfiguration(r records.Record, live *corev1.Secret, e *secretEdit) ([]byte, error) {
	head, err := json.Marshal(k.metadata(r, live, e))
	if err != nil {
		return nil, err
	}
	size := len(head) + 200
	for key, value := range e.keys {
		size += len(key) + base64.StdEncoding.EncodedLen(len(value)) + len(`"":"",`)
	}
	body := append(make([]byte, 0, size), `{"apiVersion":"v1","kind":"Secret","metadata":`...)
	body = append(body, head...)
	if live.UID == "" || e.owned.has("type") {
		// Omitting a type that we own would remove it, which the API server
		// rejects.
		body = append(body, `,"type":"`+string(live.Type)+`"`...)
	}
	for i, key := range slices.Sorted(maps.Keys(e.keys)) {
		body = append(body, [...]string{`,"data":{"`, `,"`}[min(i, 1)]+key+`":"`...)
		body = base64.StdEncoding.AppendEncode(body, e.keys[key])
		body = append(body, '"')
	}
	if len(e.keys) > 0 {
		body = append(body, '}')
	}
	return append(body, '}'), nil
}

// among returns the values with the names, or all values.
func among(values map[string]string, names map[string]bool, all bool) map[string]string {
	picked := map[string]string{}
	for name, value := range values {
		if all || names[name] {
			picked[name] = value
		}
	}
	return picked
}
