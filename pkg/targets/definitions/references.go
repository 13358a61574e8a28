package definitions

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/targets"
)

// restartWorkloads is the annotation of a Kubernetes Secret that lists the workloads to
// restart after a change of the Secret's data.
const restartWorkloads = "conjur.org/restart-workloads"

// workloadKinds are the kinds of workloads that Syncer can restart.
var workloadKinds = [...]string{"deployment", "statefulset", "daemonset"}

// ParseWorkloads reads a list of workloads, "deployment/app, statefulset/db", with commas
// or line breaks between them. It returns each once, in the order of the text, with the
// kind in lower case. The error joins the problems of invalid items, which are omitted.
func ParseWorkloads(text string) (workloads []string, err error) {
	items, err := namesIn(text)
	errs := []error{err}
	for _, item := range items {
		kind, name, _ := strings.Cut(item, "/")
		kind = strings.ToLower(kind)
		fault := CheckObjectName(name)
		switch workload := kind + "/" + name; {
		case !slices.Contains(workloadKinds[:], kind):
			errs = append(errs, fmt.Errorf("%q is not a workload; write deployment/, statefulset/ or daemonset/ and its name", brief.Input(item)))
		case fault != nil:
			errs = append(errs, fmt.Errorf("%q is not a workload: %w", brief.Input(item), fault))
		case !slices.Contains(workloads, workload):
			workloads = append(workloads, workload)
		}
	}
	return workloads, errors.Join(errs...)
}

// pullSecretFor is the annotation of a Kubernetes Secret that lists the service accounts
// that use it as an image pull secret.
const pullSecretFor = "conjur.org/pull-secret-for"

// ParseAccounts reads a list of service accounts, "default, builder", with commas or line
// breaks between them. It returns each once, in the order of the text. The error joins
// the problems of invalid items, which are omitted.
func ParseAccounts(text string) (accounts []string, err error) {
	items, err := namesIn(text)
	errs := []error{err}
	for _, item := range items {
		if slices.Contains(accounts, item) {
			continue
		}
		if fault := CheckObjectName(item); fault != nil {
			errs = append(errs, fmt.Errorf("%q is not a service account: %w", brief.Input(item), fault))
			continue
		}
		accounts = append(accounts, item)
	}
	return accounts, errors.Join(errs...)
}

// namesIn splits a list at commas or line breaks. It returns an error for more than
// targets.MaxNames names.
func namesIn(text string) (names []string, err error) {
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if item = strings.TrimSpace(item); item != "" {
			names = append(names, item)
		}
	}
	if len(names) > targets.MaxNames {
		return nil, fmt.Errorf("%d names are listed, and a Secret may list %d; divide them among several Secrets", len(names), targets.MaxNames)
	}
	return names, nil
}

// CheckPullType returns an error unless a Secret of the type can be an image pull secret.
func CheckPullType(kind string) error {
	if kind == "kubernetes.io/dockerconfigjson" || kind == "kubernetes.io/dockercfg" {
		return nil
	}
	return fmt.Errorf("nothing is pulled with a Secret of type %q; make it with the type kubernetes.io/dockerconfigjson", kind)
}

// Endpoint is an address at which consumers of a set answer.
type Endpoint struct {
	URL string // of one consumer; empty: each Pod of a workload answers
	// Workload is "deployment/app". Its Pods answer at the port and the path.
	Workload, Port, Path string
}

// ParseEndpoint reads an endpoint, a URL or "deployment/app:8080/keys".
func ParseEndpoint(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
	case u.User != nil:
		return Endpoint{}, errors.New("the URL has a user or password in it; remove them")
	default:
		return Endpoint{URL: text}, nil
	}
	workload, rest, _ := strings.Cut(text, ":")
	port, path, _ := strings.Cut(rest, "/")
	n, err := strconv.ParseUint(port, 10, 16)
	workloads, fault := ParseWorkloads(workload)
	if err != nil || n == 0 || fault != nil || len(workloads) != 1 {
		return Endpoint{}, fmt.Errorf("%s is neither a URL nor the port of a workload; write it as deployment/app:8080/keys", brief.Address(text))
	}
	return Endpoint{Workload: workloads[0], Port: port, Path: "/" + path}, nil
}

// ParseCronJob reads "cronjob/name" and returns the name.
func ParseCronJob(text string) (string, error) {
	kind, name, _ := strings.Cut(text, "/")
	if kind != "cronjob" || CheckObjectName(name) != nil {
		return "", fmt.Errorf("%q is not a CronJob; write cronjob/NAME", brief.Input(text))
	}
	return name, nil
}

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
		return targets.ConfigMapKey{}, fmt.Errorf("%q has more than one slash; write the name of a ConfigMap of the same namespace, a slash and a key of it", brief.Input(text))
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
		return fmt.Errorf("the name %q is longer than %d characters", brief.Input(name), validation.DNS1123SubdomainMaxLength)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("the name %q is not one of lower-case letters, digits, - and ., which begins and ends in a letter or a digit", brief.Input(name))
	}
	return nil
}

// CheckDataKey returns why the data of a ConfigMap or a Secret cannot contain a key.
func CheckDataKey(key string) error {
	if fault := targets.DataKeyFault(key); fault != "" && key != targets.ConjurMapKey {
		return fmt.Errorf("the data key %q %s", brief.Input(key), fault)
	}
	return nil
}
