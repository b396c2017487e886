package main

import "github.com/kubeflow/spark-operator/v2/api/v1beta2"

func complete(_ string, data []byte) any {
	obj := read(data, &v1beta2.SparkApplication{})
	v1beta2.SetSparkApplicationDefaults(obj)
	return obj
}
