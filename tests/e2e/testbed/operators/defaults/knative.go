package main

import (
	"context"

	"knative.dev/pkg/apis"
	v1 "knative.dev/serving/pkg/apis/serving/v1"
)

func complete(kind string, data []byte) any {
	obj := map[string]apis.Defaultable{
		"serving.knative.dev/v1 Service":       &v1.Service{},
		"serving.knative.dev/v1 Configuration": &v1.Configuration{},
		"serving.knative.dev/v1 Revision":      &v1.Revision{},
	}[kind]
	read(data, obj).SetDefaults(apis.WithinCreate(context.Background()))
	return obj
}
