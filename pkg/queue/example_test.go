package queue_test

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/queue"
)

// Any number of hints are one item.
func ExampleQueue() {
	q := queue.New(queue.Config{})
	defer q.ShutDown()
	for range 10 {
		q.Add(queue.Hint{Trigger: "poll"}, "file/db")
	}
	items := q.Take(func(waiting int) int { return waiting })
	for _, item := range items {
		fmt.Println(item.Key, "because of", item.Trigger)
		q.Done(item.Key, nil)
	}
	fmt.Println(len(q.Waiting()))
	// Output:
	// file/db because of poll
	// 0
}
