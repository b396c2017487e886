// Prints a JobSet as JobSet's own webhook returns it.
package main

import (
	"context"
	"encoding/json"
	"os"

	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

func main() {
	obj := &jobset.JobSet{}
	if err := json.NewDecoder(os.Stdin).Decode(obj); err != nil {
		panic(err)
	}
	webhook, err := webhooks.NewJobSetWebhook(nil)
	if err != nil {
		panic(err)
	}
	if err := webhook.Default(context.Background(), obj); err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(obj); err != nil {
		panic(err)
	}
}
