package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostConflicts is how often a write is tried again, at once, that somebody else's
// has crossed.
const mostConflicts = 5

// SetPullSecrets has a service account name the wanted Secrets among its
// imagePullSecrets, and no other that an earlier call has added, but for those
// that keep reports true for. Who else has added one keeps it. It returns which
// it has added and taken off.
//
// The API server takes the list as a whole, so nobody owns a single item of it.
// The account itself therefore notes which are ours, in the same write, and a
// write counts only for the state that was read.
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
	return nil, nil, fmt.Errorf("pull secrets of the service account %s/%s: %w", namespace, account, err)
}

// pullSecretsPatch returns the merge patch that brings an account up to date; nil:
// it is.
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
	var note any // none takes the annotation away
	if len(stay) > 0 {
		note = strings.Join(stay, ",")
	}
	change := map[string]any{
		"metadata": map[string]any{
			"uid": account.UID, "resourceVersion": account.ResourceVersion, "annotations": map[string]any{targets.PullSecretsAnnotation: note},
		},
	}
	if len(added)+len(removed) > 0 {
		change["imagePullSecrets"] = list // null takes the field away
	}
	patch, _ = json.Marshal(change) // names only
	return patch, added, removed
}

// pullSecretsOf returns those of an account's pull Secrets that we have added, in
// ascending order.
func pullSecretsOf(account *corev1.ServiceAccount) []string {
	names := strings.FieldsFunc(account.Annotations[targets.PullSecretsAnnotation], func(r rune) bool { return r == ',' })
	slices.Sort(names)
	return names
}
