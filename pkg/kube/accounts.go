package kube

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostConflicts limits the immediate retries of a write that conflicted with another
// writer's.
const mostConflicts = 5

// SetPullSecrets adds the wanted Secrets to the imagePullSecrets of a service account. It
// removes the others that an earlier call has added, except those for which keep reports
// true. Entries that somebody else has added stay. It returns the added and the removed
// Secrets.
//
// The API server replaces the list as a whole, so a single item has no owner. Therefore
// the account itself notes, in the same write, which items Syncer added. A write is valid
// only for the state that was read.
func (c *Client) SetPullSecrets(ctx context.Context, namespace, account string, wanted []string, keep func(secret string) bool) (added, removed []string, err error) {
	accounts := c.Core.ServiceAccounts(namespace)
	for range mostConflicts {
		var found *corev1.ServiceAccount
		if found, err = accounts.Get(ctx, account, metav1.GetOptions{}); err != nil {
			break
		}
		var patch []byte
		if patch, added, removed = pullSecretsPatch(found, wanted, keep); patch == nil {
			return nil, nil, nil
		}
		_, err = accounts.Patch(ctx, account, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: targets.FieldManager})
		if err == nil {
			return added, removed, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return nil, nil, explain("pull secrets of the service account "+namespace+"/"+account, err, right{namespace, "serviceaccounts", "get and patch"})
}

// pullSecretsPatch returns the merge patch that brings an account up to date; nil if it
// is up to date.
func pullSecretsPatch(account *corev1.ServiceAccount, wanted []string, keep func(secret string) bool) (patch []byte, added, removed []string) {
	ours := pullSecretsOf(account)
	has := func(secret string) bool {
		return slices.ContainsFunc(account.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == secret })
	}
	var list []corev1.LocalObjectReference
	var stay []string
	for _, secret := range ours {
		if has(secret) && (slices.Contains(wanted, secret) || keep(secret)) {
			stay = append(stay, secret)
		}
	}
	for _, r := range account.ImagePullSecrets {
		if slices.Contains(ours, r.Name) && !slices.Contains(stay, r.Name) {
			removed = append(removed, r.Name)
		} else {
			list = append(list, r)
		}
	}
	for _, secret := range wanted {
		if !has(secret) {
			list, added, stay = append(list, corev1.LocalObjectReference{Name: secret}), append(added, secret), append(stay, secret)
		}
	}
	slices.Sort(stay)
	if len(added)+len(removed) == 0 && slices.Equal(stay, ours) {
		return nil, nil, nil
	}
	var note any // nil removes the annotation
	if len(stay) > 0 {
		note = strings.Join(stay, ",")
	}
	change := map[string]any{
		"metadata": map[string]any{
			"uid": account.UID, "resourceVersion": account.ResourceVersion, "annotations": map[string]any{targets.PullSecretsAnnotation: note},
		},
	}
	if len(added)+len(removed) > 0 {
		change["imagePullSecrets"] = list // null removes the field
	}
	patch, _ = json.Marshal(change) // contains only names
	return patch, added, removed
}

// pullSecretsOf returns the pull Secrets of an account that Syncer has added, in
// ascending order.
func pullSecretsOf(account *corev1.ServiceAccount) []string {
	names := strings.FieldsFunc(account.Annotations[targets.PullSecretsAnnotation], func(r rune) bool { return r == ',' })
	slices.Sort(names)
	return names
}
