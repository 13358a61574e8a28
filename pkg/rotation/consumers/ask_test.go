package consumers_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
)

// says fails the test if the text has not all of these.
func (w *world) says(text string, all ...string) {
	w.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			w.Errorf("%q is not in: %s", want, text)
		}
	}
}

func TestEveryPodIsAskedTwice(t *testing.T) {
	w := newWorld(t)
	w.shop(2)
	a, b := w.app("r2", "r3"), w.app("r2")
	w.pod("shop-a", a.address)
	w.pod("shop-b", b.address)
	c := w.consumers(w.ask())
	w.says(w.shut(c, introduced).Waits, "1 of 2 Pods of deployment/shop (shop-b: does not have r3)", "a Pod that is deleted comes back")
	b.has("r2", "r3")
	a.asked = 0
	w.opens(c, introduced)
	if a.asked != 2 {
		t.Errorf("a Pod was asked %d times", a.asked)
	}

	answer := w.shut(c, left)
	w.says(answer.Waits, "2 of 2 Pods", "shop-a: still uses r2 or an earlier one")
	if !answer.InUse {
		t.Error("the old key is not said to be in use")
	}
	a.has("r3", "r2")
	b.has("r3", "r2")
	w.opens(c, left)
}

func TestAPodThatStartsWithTheOldSecretBetweenTwoLooks(t *testing.T) {
	for name, g := range map[string]struct {
		gate
		old, new []string
	}{
		"introduced": {introduced, []string{"r2"}, []string{"r2", "r3"}},
		"left":       {left, []string{"r2", "r3"}, []string{"r3", "r2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.shop(1)
			w.pod("shop-a", w.app(g.new...).address)
			c := w.consumers(w.ask())
			if a := g.gate(t.Context(), c, w.secrets); a.Open || a.Until.IsZero() {
				t.Fatalf("after the first look: %+v", a)
			}
			late := w.app(g.old...)
			w.pod("shop-b", late.address)
			time.Sleep(2 * time.Millisecond)
			w.says(w.shut(c, g.gate).Waits, "1 of 2 Pods", "shop-b")
			late.has(g.new...)
			if a := g.gate(t.Context(), c, w.secrets); a.Open {
				t.Error("the gate opens after one look")
			}
			w.opens(c, g.gate)
		})
	}
}

// The second look comes when the Secrets have been as they are for a while.
func TestTheSecondLookIsAfterSettle(t *testing.T) {
	w := newWorld(t)
	w.shop(1)
	a := w.app("r2", "r3")
	w.pod("shop-a", a.address)
	config := w.ask()
	config.Settle = time.Hour
	c := w.consumers(config)
	for range 3 {
		if answer := introduced(t.Context(), c, w.secrets); answer.Open || time.Until(answer.Until) < 50*time.Minute {
			t.Fatalf("the gate does not wait for the Secret to settle: %+v", answer)
		}
	}
	if a.asked != 1 {
		t.Errorf("the Pod was asked %d times", a.asked)
	}
	config.Namespace = w.ns
	w.secrets = nil // there is none to settle
	w.opens(w.consumers(config), introduced)
}

func TestWhoIsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		pod   func(*corev1.Pod)
		waits string // empty: the gate opens
	}{
		"unscheduled":           {func(p *corev1.Pod) { p.Spec.NodeName = "" }, ""},
		"finished":              {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, ""},
		"failed":                {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, ""},
		"another workload's":    {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} }, ""},
		"starting":              {func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }, "shop-b: no answer: the Pod has no address yet"},
		"ending":                {func(p *corev1.Pod) { p.Finalizers = []string{"example.com/stay"} }, "shop-b: no answer"},
		"silent":                {func(*corev1.Pod) {}, "shop-b: no answer"},
		"on a dead node":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, "shop-b: no answer"},
		"with another one's IP": {func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}} }, "shop-b: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.shop(2)
			w.pod("shop-a", w.app("r2", "r3").address)
			w.pod("shop-b", "127.0.0.254", test.pod)
			if name == "ending" {
				w.remove("shop-b")
			}
			c := w.consumers(w.ask())
			if test.waits == "" {
				w.opens(c, introduced)
				return
			}
			answer := w.shut(c, introduced)
			w.says(answer.Waits, "1 of 2 Pods", test.waits)
			if answer.InUse {
				t.Error("a silent Pod is said to be known")
			}
			if name != "ending" {
				w.remove("shop-b") // the safe way out
				w.opens(c, introduced)
			}
		})
	}
}

func TestAWorkloadThatIsMissingShutsAndOneWithoutPodsDoesNot(t *testing.T) {
	w := newWorld(t)
	w.port = "8080"
	c := w.consumers(w.ask())
	w.says(w.shut(c, introduced).Waits, "reading deployment/shop of namespace "+w.ns, "not found")
	w.shop(0)
	w.opens(c, introduced)
}

func TestAFailedListShuts(t *testing.T) {
	w := newWorld(t)
	w.shop(1)
	w.pod("shop-a", w.app("r2", "r3").address)
	c := w.consumers(w.ask())
	w.opens(c, introduced)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d, v := introduce()
	if a := c.Introduced(ended, d, v, w.secrets); a.Open || !strings.Contains(a.Waits, "listing the pods") {
		t.Errorf("the gate is %+v", a)
	}
}

func TestASecretThatIsBehindShuts(t *testing.T) {
	w := newWorld(t)
	w.shop(0)
	w.port = "8080"
	c := w.consumers(w.ask())
	w.secrets = append(w.secrets, rotation.Shown{Namespace: w.ns, Name: "late", Step: 2})
	w.says(w.shut(c, introduced).Waits, "secret/late of namespace "+w.ns+" has step 2, not 3")
	w.secrets[1].Step = 3
	w.opens(c, introduced)
}

// Pods that use a Secret of the set and that nobody asks are named, and the gate
// waits for them as long as without asking.
func TestPodsThatNobodyAsks(t *testing.T) {
	use := corev1.LocalObjectReference{Name: "jwt"}
	for name, test := range map[string]struct {
		spec func(*corev1.PodSpec)
		uses bool
	}{
		"volume": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "jwt"}}}}
		}, true},
		"projected": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: use}}},
			}}}}
		}, true},
		"envFrom": {func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: use}}}
		}, true},
		"env of an init container": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "init", Image: "init", Env: []corev1.EnvVar{{
				Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: use, Key: "r2.key"}},
			}}}}
		}, true},
		"imagePullSecrets": {func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{use} }, false},
		"another Secret": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "other"}}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.shop(0)
			w.port = "8080"
			w.pod("job-x", "127.0.0.254", func(p *corev1.Pod) {
				p.Labels = nil
				test.spec(&p.Spec)
			})
			c := w.consumers(w.ask())
			if !test.uses {
				w.opens(c, introduced)
				if got := c.Unasked(t.Context(), w.secrets); got != nil {
					t.Errorf("not asked: %q", got)
				}
				return
			}
			if got := c.Unasked(t.Context(), w.secrets); !slices.Equal(got, []string{w.ns + "/job-x"}) {
				t.Errorf("not asked: %q", got)
			}
			answer := introduced(t.Context(), c, w.secrets)
			if w.says(answer.Waits, "Pods that confirm does not name", w.ns+"/job-x"); answer.Open || time.Until(answer.Until) < 2*time.Minute {
				t.Errorf("the gate does not wait for them: %+v", answer)
			}
			config := w.ask()
			config.Wait = time.Millisecond
			w.opens(w.consumers(config), introduced)
			w.pod("shop-a", "127.0.0.253")
			w.says(w.shut(c, introduced).Waits, "shop-a: no answer", "Pods that confirm does not name", w.ns+"/job-x")
		})
	}
}

// An old leader's work is not done again: the document says what has held.
func TestALeaderThatBeginsAnewDoesNotWaitAgain(t *testing.T) {
	w := newWorld(t)
	w.shop(1)
	a := w.app("r3", "r2")
	w.pod("shop-a", a.address)
	config := w.ask()
	config.Wait, config.Settle, config.Unused, config.Migrate = time.Hour, time.Hour, time.Hour, "cronjob/none"
	d, _ := leave()
	d.Versions[1].Left = epoch
	if answer := w.consumers(config).Left(t.Context(), d, d.Versions[1], w.secrets); !answer.Open {
		t.Errorf("the gate is shut: %s", answer.Waits)
	}
	a.used("r2", 5)
	answer := w.consumers(config).Left(t.Context(), d, d.Versions[1], w.secrets)
	if w.says(answer.Waits, "without a use of r2"); answer.Open || !answer.InUse {
		t.Errorf("a key that was used is %+v", answer)
	}
}

// A version whose consumers left it for one that is retiring itself now stays
// left.
func TestConsumersOfALaterVersionHaveLeft(t *testing.T) {
	w := newWorld(t)
	w.shop(1)
	w.pod("shop-a", w.app("r3", "r2").address)
	d, _ := leave()
	d = d.Make("r4", parts, false, at(2)).Promote("r4", at(3))
	leaves := func(id string) gate {
		return func(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
			v, _ := d.Version(id)
			return c.Left(ctx, d, v, secrets)
		}
	}
	c := w.consumers(w.ask())
	w.opens(c, leaves("r2"))
	w.says(w.shut(c, leaves("r3")).Waits, "still uses r3")
}

func TestAKeyThatIsUsedStays(t *testing.T) {
	w := newWorld(t)
	w.shop(1)
	a := w.app("r3", "r2")
	w.pod("shop-a", a.address)
	config := w.ask()
	config.Unused = 2 * time.Hour
	c := w.consumers(config)
	a.used("r2", 3600)
	time.Sleep(time.Until(left(t.Context(), c, w.secrets).Until))
	answer := left(t.Context(), c, w.secrets)
	if w.says(answer.Waits, "2h0m0s without a use of r2"); answer.Open || time.Until(answer.Until) > time.Minute {
		t.Errorf("the gate is not asked again each minute: %+v", answer)
	}
	for _, absurd := range []int64{-1, math.MinInt64} { // it is taken for a use now
		a.used("r2", absurd)
		c := w.consumers(config)
		time.Sleep(time.Until(left(t.Context(), c, w.secrets).Until))
		answer := left(t.Context(), c, w.secrets)
		if w.says(answer.Waits, "2h0m0s without a use of r2, of which 0s have passed"); answer.Open {
			t.Errorf("used %d s ago the gate is open", absurd)
		}
	}
	config.Unused = time.Millisecond
	a.used("r2", math.MaxInt64)
	w.opens(w.consumers(config), left)
}
