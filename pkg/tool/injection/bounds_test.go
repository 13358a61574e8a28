package injection

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBounds of a Pod's annotations, as in the admission policy, and of a message.
func TestBounds(t *testing.T) {
	s := &Sidecar{Mounts: []corev1.VolumeMount{{MountPath: "/secrets"}}}
	for less := -1; less <= 1; less++ {
		folder := "/" + strings.Repeat("a", 255+less)
		if wrong := s.wrongFolder(folder); wrong != (less > 0) {
			t.Errorf("a folder of the bound%+d is wrong: %t", less, wrong)
		}
		list := "app," + strings.Repeat(" ", 16384-len("app,")+less)
		if names := namesIn(list); (len(names) == 1) != (less <= 0) {
			t.Errorf("a list of the bound%+d has %q", less, names)
		}
		var names []string
		for i := range 9 + less {
			names = append(names, fmt.Sprint("c", i))
		}
		if short := shortened(names); (len(short) == len(names)) != (less <= 0) || less > 0 && short[1] != "9 other containers" {
			t.Errorf("%d names are shortened to %q", len(names), short)
		}
	}
}
