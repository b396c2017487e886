// Prints an InferenceService as KServe's own webhook returns it, with the settings that it ships.
package main

import (
	"encoding/json"
	"os"

	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
)

func main() {
	obj := &v1beta1.InferenceService{}
	if err := json.NewDecoder(os.Stdin).Decode(obj); err != nil {
		panic(err)
	}
	amounts := v1beta1.ResourceConfig{CPULimit: "1", MemoryLimit: "2Gi", CPURequest: "1", MemoryRequest: "2Gi"}
	obj.DefaultInferenceService(
		&v1beta1.InferenceServicesConfig{Resource: amounts},
		&v1beta1.DeployConfig{DefaultDeploymentMode: "Serverless"},
		&v1beta1.SecurityConfig{AutoMountServiceAccountToken: true},
		nil,
	)
	if err := json.NewEncoder(os.Stdout).Encode(obj); err != nil {
		panic(err)
	}
}
