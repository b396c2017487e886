// argocd syncs one object or tells what differs, with the code that Argo CD itself uses for both.
//
//	argocd sync|diff [OPTION=true ...] < object.json
//
// Options are those of an Application: ServerSideApply, ServerSideDiff, IncludeMutationWebhook.
// An option `ignore=JQ` is a jqPathExpression of its ignoreDifferences.
// `diff` prints what Argo CD would report: {"modified": ..., "predicted": ..., "live": ...}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

const manager = "argocd-controller"

// An Application's options, and the cluster that it is applied to.
type application struct {
	options []string
	config  *rest.Config
	ctl     *kube.KubectlCmd
}

func main() {
	if len(os.Args) < 2 || (os.Args[1] != "sync" && os.Args[1] != "diff") {
		fmt.Fprintln(os.Stderr, "write argocd sync|diff [OPTION=true ...] < object.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(action string, options []string) error {
	wanted := &unstructured.Unstructured{}
	if err := json.NewDecoder(os.Stdin).Decode(&wanted.Object); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	ctl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	app := application{options, config, ctl}
	if action == "sync" {
		return app.sync(wanted)
	}
	return app.report(wanted)
}

func (app application) has(option string) bool {
	return slices.Contains(app.options, option+"=true")
}

func (app application) sync(wanted *unstructured.Unstructured) error {
	schema, _, err := app.ctl.LoadOpenAPISchema(app.config)
	if err != nil {
		return err
	}
	resources, clean, err := app.ctl.ManageResources(app.config, schema)
	if err != nil {
		return err
	}
	defer clean()
	_, err = resources.ApplyResource(context.Background(), wanted, util.DryRunNone,
		false, true, app.has("ServerSideApply"), manager)
	return err
}

func (app application) report(wanted *unstructured.Unstructured) error {
	live, err := app.ctl.GetResource(context.Background(), app.config,
		wanted.GroupVersionKind(), wanted.GetName(), wanted.GetNamespace())
	if err != nil {
		return err
	}
	schema, parser, err := app.ctl.LoadOpenAPISchema(app.config)
	if err != nil {
		return err
	}
	runs, clean, err := kube.ManageServerSideDiffDryRuns(
		app.config, schema, tracing.NopTracer{}, logr.Discard(), nil)
	if err != nil {
		return err
	}
	defer clean()
	ignored, err := ignoring(app.options)
	if err != nil {
		return err
	}
	found, err := diff.Diff(wanted, live,
		diff.WithNormalizer(ignored),
		diff.WithManager(manager),
		diff.WithLogr(logr.Discard()),
		diff.WithGVKParser(parser),
		// Argo CD's controller chooses so for an Application that applies on the server's side.
		diff.WithStructuredMergeDiff(app.has("ServerSideApply")),
		diff.WithServerSideDiff(app.has("ServerSideDiff")),
		diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(runs)),
		diff.WithIgnoreMutationWebhook(!app.has("IncludeMutationWebhook")))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"modified":  found.Modified,
		"predicted": json.RawMessage(found.PredictedLive),
		"live":      json.RawMessage(found.NormalizedLive),
	})
}
