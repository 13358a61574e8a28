package sinks

import (
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
)

// callTimeout bounds one request, so that an API server that hangs does not
// hold a worker.
const callTimeout = 30 * time.Second

// get reads the target's Secret; nil when there is none.
func (k *KubeSecrets) get(ctx context.Context, t *targets.Target) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	live, err := k.secrets.Secrets(t.Secret.Namespace).Get(ctx, t.Secret.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return live, nil
	case isNoSecret(err):
		return nil, nil
	}
	return nil, callError("get", t, err)
}

func (k *KubeSecrets) patch(ctx context.Context, t *targets.Target, kind types.PatchType, body []byte, o metav1.PatchOptions) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return k.secrets.Secrets(t.Secret.Namespace).Patch(ctx, t.Secret.Name, kind, body, o)
}

// ownAlone makes our field manager the only owner of the keys, and gives the
// Secret's resource version then. It changes no data, so that the removal of
// the keys and all else that changes can be one write; nothing is lost when
// that never comes. It meets the Secret as it was read, or is a conflict.
func (k *KubeSecrets) ownAlone(ctx context.Context, t *targets.Target, live *corev1.Secret, keys []string) (string, error) {
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

// write applies the edit and gives the Secret as it is then.
func (k *KubeSecrets) write(ctx context.Context, t *targets.Target, live *corev1.Secret, e *secretEdit) (*corev1.Secret, error) {
	body, err := k.applyConfiguration(live, e)
	if err != nil {
		return nil, err
	}
	force := true
	after, err := k.patch(ctx, t, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: targets.FieldManager, Force: &force})
	switch answer, ok := errors.AsType[*apierrors.StatusError](err); {
	case err == nil:
		return after, nil
	case ok && live.UID == "" && hasCause(answer.ErrStatus, "type"):
		return nil, errConflict // somebody else has created it meanwhile
	}
	return nil, callError("patch", t, err)
}

// applyMeta is the metadata of what is applied. With a UID the Secret must be
// that very one, and is not created; with a resource version it must not have
// changed since, which alone would not keep it from being created.
type applyMeta struct {
	Name            string            `json:"name"`
	UID             types.UID         `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// metadata names what is to be ours afterwards besides the data. The revision
// is raised when the data change.
func (k *KubeSecrets) metadata(live *corev1.Secret, e *secretEdit) applyMeta {
	isNew := live.UID == ""
	meta := applyMeta{
		Name: live.Name, UID: live.UID,
		Labels:      among(live.Labels, e.owned.names("metadata", "labels"), isNew),
		Annotations: among(live.Annotations, e.owned.names("metadata", "annotations"), isNew),
	}
	if e.changed {
		key := targets.KubeSecretKey(live.Namespace, live.Name)
		maps.Copy(meta.Annotations, k.revisions.next(key, live.Annotations, e.content(live.Type), e.first, k.now()))
	}
	if e.kept || len(e.removed) > 0 {
		meta.ResourceVersion = live.ResourceVersion
	}
	return meta
}

// applyConfiguration is the body of a server-side apply. It names all that is
// to be ours afterwards: what was ours and is not named is removed.
//
// The values are written straight into it, for encoding/json would keep them
// in a buffer of its own. The body cannot be cleared: net/http may read it
// even after the answer has come.
func (k *KubeSecrets) applyConfiguration(live *corev1.Secret, e *secretEdit) ([]byte, error) {
	head, err := json.Marshal(k.metadata(live, e))
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
		// Left out, a type that is ours would be removed, which cannot be.
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

// among picks what has one of the names, or all.
func among(values map[string]string, names map[string]bool, all bool) map[string]string {
	picked := map[string]string{}
	for name, value := range values {
		if all || names[name] {
			picked[name] = value
		}
	}
	return picked
}
