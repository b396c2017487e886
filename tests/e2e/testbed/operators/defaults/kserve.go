package main

import "github.com/kserve/kserve/pkg/apis/serving/v1beta1"

// With the settings that KServe ships.
func complete(_ string, data []byte) any {
	obj := read(data, &v1beta1.InferenceService{})
	amounts := v1beta1.ResourceConfig{CPULimit: "1", MemoryLimit: "2Gi", CPURequest: "1", MemoryRequest: "2Gi"}
	obj.DefaultInferenceService(
		&v1beta1.InferenceServicesConfig{Resource: amounts},
		&v1beta1.DeployConfig{DefaultDeploymentMode: "Serverless"},
		&v1beta1.SecurityConfig{AutoMountServiceAccountToken: true},
		nil,
	)
	return obj
}
