// Prints a Service, Configuration or Revision as Knative's own webhook returns a new one.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"knative.dev/pkg/apis"
	v1 "knative.dev/serving/pkg/apis/serving/v1"
)

func main() {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	head := struct{ Kind string }{}
	if err := json.Unmarshal(data, &head); err != nil {
		panic(err)
	}
	obj := map[string]apis.Defaultable{
		"Service": &v1.Service{}, "Configuration": &v1.Configuration{}, "Revision": &v1.Revision{},
	}[head.Kind]
	if err := json.Unmarshal(data, obj); err != nil {
		panic(err)
	}
	obj.SetDefaults(apis.WithinCreate(context.Background()))
	if err := json.NewEncoder(os.Stdout).Encode(obj); err != nil {
		panic(err)
	}
}
