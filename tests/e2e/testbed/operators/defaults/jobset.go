package main

import (
	"context"

	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

func complete(_ string, data []byte) any {
	obj := read(data, &jobset.JobSet{})
	webhook, err := webhooks.NewJobSetWebhook(nil)
	return must(obj, must(webhook, err).Default(context.Background(), obj))
}
