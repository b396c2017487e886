// Prints a SparkApplication as the operator's own webhook returns it.
package main

import (
	"encoding/json"
	"os"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
)

func main() {
	obj := &v1beta2.SparkApplication{}
	if err := json.NewDecoder(os.Stdin).Decode(obj); err != nil {
		panic(err)
	}
	v1beta2.SetSparkApplicationDefaults(obj)
	if err := json.NewEncoder(os.Stdout).Encode(obj); err != nil {
		panic(err)
	}
}
