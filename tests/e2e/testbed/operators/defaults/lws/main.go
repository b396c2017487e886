// Prints a LeaderWorkerSet as its own webhook returns it.
package main

import (
	"context"
	"encoding/json"
	"os"

	v1 "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/webhooks"
)

func main() {
	obj := &v1.LeaderWorkerSet{}
	if err := json.NewDecoder(os.Stdin).Decode(obj); err != nil {
		panic(err)
	}
	webhook := &webhooks.LeaderWorkerSetWebhook{}
	if err := webhook.Default(context.Background(), obj); err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(obj); err != nil {
		panic(err)
	}
}
