// flux applies one object or tells what differs, with the code that Flux itself uses for both.
//
//	flux sync|diff < object.json
//
// It prints what Flux would report: {"action": "unchanged", "predicted": ..., "live": ...}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var owner = ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}

func main() {
	if len(os.Args) != 2 || (os.Args[1] != "sync" && os.Args[1] != "diff") {
		fmt.Fprintln(os.Stderr, "write flux sync|diff < object.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(action string) error {
	wanted := &unstructured.Unstructured{}
	if err := json.NewDecoder(os.Stdin).Decode(&wanted.Object); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	connected, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	manager := ssa.NewResourceManager(connected, nil, owner)
	told := map[string]any{}
	if action == "sync" {
		entry, err := manager.Apply(context.Background(), wanted, ssa.DefaultApplyOptions())
		if err != nil {
			return err
		}
		told["action"] = entry.Action
		return json.NewEncoder(os.Stdout).Encode(told)
	}
	entry, live, predicted, err := manager.Diff(context.Background(), wanted, ssa.DefaultDiffOptions())
	if err != nil {
		return err
	}
	told["action"], told["live"], told["predicted"] = entry.Action, live, predicted
	return json.NewEncoder(os.Stdout).Encode(told)
}
