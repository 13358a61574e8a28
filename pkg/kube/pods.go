package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods lists the present Pods of a namespace, without a cache.
func (c *Client) Pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	all, err := pages(ctx, func(ctx context.Context, options metav1.ListOptions) ([]corev1.Pod, metav1.ListMeta, error) {
		page, err := c.Core.Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		return page.Items, page.ListMeta, nil
	})
	if err != nil {
		return nil, explain("listing the pods of namespace "+namespace, err, right{namespace, "pods", "list"})
	}
	return all, nil
}
