package definitions

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/secretsync/syncer/pkg/targets"
)

// ParseConfigMapRef reads the location of a group's template in the cluster: the name of
// a ConfigMap, a slash and a key of its data. Without a key, it is the name of the
// group's template file, "{group}.tpl". The ConfigMap is always in the given namespace;
// the text cannot name another one.
func ParseConfigMapRef(text, group, namespace string) (targets.ConfigMapKey, error) {
	name, key, hasKey := strings.Cut(text, "/")
	if !hasKey {
		key = group + ".tpl"
	}
	if strings.Contains(key, "/") {
		return targets.ConfigMapKey{}, fmt.Errorf("%q has more than one slash; write the name of a ConfigMap of the same namespace, a slash and a key of it", clip(text))
	}
	if err := CheckObjectName(name); err != nil {
		return targets.ConfigMapKey{}, fmt.Errorf("%w; write the name of a ConfigMap, a slash and a key of it", err)
	}
	if err := CheckDataKey(key); err != nil {
		return targets.ConfigMapKey{}, fmt.Errorf("%w; write the name of a ConfigMap, a slash and a key of it", err)
	}
	return targets.ConfigMapKey{Namespace: namespace, Name: name, Key: key}, nil
}

// CheckObjectName returns why a Kubernetes object, such as a ConfigMap, a Secret or a
// Deployment, cannot have a name. The name must be a DNS subdomain (RFC 1123).
func CheckObjectName(name string) error {
	switch {
	case len(name) > validation.DNS1123SubdomainMaxLength:
		return fmt.Errorf("the name %q is longer than %d characters", clip(name), validation.DNS1123SubdomainMaxLength)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("the name %q is not one of lower-case letters, digits, - and ., which begins and ends in a letter or a digit", clip(name))
	}
	return nil
}

// CheckDataKey returns why the data of a ConfigMap or a Secret cannot contain a key.
func CheckDataKey(key string) error {
	if fault := targets.DataKeyFault(key); fault != "" && key != targets.ConjurMapKey {
		return fmt.Errorf("the data key %q %s", clip(key), fault)
	}
	return nil
}
