package workers

import (
	"slices"
	"sync"
	"time"
)

// patience is how long a sync may delay those of other namespaces in its share. Usually
// it takes some milliseconds.
const patience = time.Second

// inTurn runs the jobs of a share one after the other. If one takes longer than patience,
// the jobs of other namespaces no longer wait for it. Those of the same namespace still do.
// inTurn returns when all jobs have ended.
func inTurn(jobs []*job, run func(*job)) {
	var slow sync.WaitGroup
	defer slow.Wait()
	for len(jobs) > 0 {
		first := jobs[0]
		jobs = jobs[1:]
		isOwn := func(j *job) bool { return j.Spec.Key.Namespace() == first.Spec.Key.Namespace() }
		isOther := func(j *job) bool { return !isOwn(j) }
		if !slices.ContainsFunc(jobs, isOther) {
			run(first) // it delays nobody else
			continue
		}
		ended := make(chan struct{})
		slow.Go(func() {
			defer close(ended)
			run(first)
		})
		select {
		case <-ended:
		case <-time.After(patience):
			own := slices.DeleteFunc(slices.Clone(jobs), isOther)
			slow.Go(func() {
				<-ended
				for _, j := range own {
					run(j)
				}
			})
			jobs = slices.DeleteFunc(slices.Clone(jobs), isOwn)
		}
	}
}
