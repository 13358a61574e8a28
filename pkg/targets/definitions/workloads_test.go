package definitions

import (
	"strings"
	"testing"
)

func TestParseWorkloads(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
		errs []string
	}{
		{"", "", nil},
		{"deployment/app", "deployment/app", nil},
		{" deployment/app , statefulset/db,\nDaemonSet/log.v1\n", "deployment/app statefulset/db daemonset/log.v1", nil},
		{"deployment/b,deployment/a,deployment/b", "deployment/b deployment/a", nil},
		{"app", "", []string{`"app" is not a workload; write deployment/`}},
		{"job/x,deployment/app,cronjob/y", "deployment/app", []string{`"job/x" is not`, `"cronjob/y" is not`}},
		{"deployment/", "", []string{`"deployment/" is not a workload: the name ""`}},
		{"deployment/other/app", "", []string{`the name "other/app" is not one of`}},
		{"deployment/" + strings.Repeat("a", 300), "", []string{"longer than 253"}},
	} {
		got, err := ParseWorkloads(c.text)
		var told []string
		if err != nil {
			told = strings.Split(err.Error(), "\n")
		}
		ok := len(told) == len(c.errs)
		for i := 0; ok && i < len(told); i++ {
			ok = strings.Contains(told[i], c.errs[i])
		}
		if !ok || strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, %q; want %q, %q", c.text, got, told, c.want, c.errs)
		}
	}
}
