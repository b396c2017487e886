package main

import (
	"context"

	v1 "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/webhooks"
)

func complete(_ string, data []byte) any {
	obj, webhook := read(data, &v1.LeaderWorkerSet{}), &webhooks.LeaderWorkerSetWebhook{}
	return must(obj, webhook.Default(context.Background(), obj))
}
