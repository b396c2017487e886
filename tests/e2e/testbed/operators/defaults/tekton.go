package main

import (
	"context"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	"knative.dev/pkg/apis"
)

var creating = apis.WithinCreate(context.Background())

func complete(kind string, data []byte) any {
	obj := map[string]apis.Defaultable{
		"tekton.dev/v1 TaskRun":          &v1.TaskRun{},
		"tekton.dev/v1 PipelineRun":      &v1.PipelineRun{},
		"tekton.dev/v1beta1 TaskRun":     &v1beta1.TaskRun{},
		"tekton.dev/v1beta1 PipelineRun": &v1beta1.PipelineRun{},
	}[kind]
	read(data, obj).SetDefaults(creating)
	return obj
}

func init() {
	convert = func(kind string, data []byte) any {
		var older, newer apis.Convertible = &v1beta1.TaskRun{}, &v1.TaskRun{}
		if kind == "tekton.dev/v1 PipelineRun" || kind == "tekton.dev/v1beta1 PipelineRun" {
			older, newer = &v1beta1.PipelineRun{}, &v1.PipelineRun{}
		}
		if kind == "tekton.dev/v1 TaskRun" || kind == "tekton.dev/v1 PipelineRun" {
			return must(older, older.ConvertFrom(creating, read(data, newer)))
		}
		return must(newer, read(data, older).ConvertTo(creating, newer))
	}
}
