// The controllers and the autoscaler of Knative Serving in one process, as its cmd/controller and
// cmd/autoscaler assemble them, but without their servers on port 8080 of every address: several of
// these run on one machine. Nobody sends requests here, so no pod is asked for figures.
package main

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	filteredpods "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"
	filteredinformers "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/signals"
	autoscaling "knative.dev/serving/pkg/apis/autoscaling/v1alpha1"
	"knative.dev/serving/pkg/apis/serving"
	"knative.dev/serving/pkg/autoscaler/metrics"
	"knative.dev/serving/pkg/autoscaler/scaling"
	"knative.dev/serving/pkg/reconciler/autoscaling/kpa"
	"knative.dev/serving/pkg/reconciler/configuration"
	"knative.dev/serving/pkg/reconciler/gc"
	"knative.dev/serving/pkg/reconciler/labeler"
	"knative.dev/serving/pkg/reconciler/revision"
	"knative.dev/serving/pkg/reconciler/route"
	"knative.dev/serving/pkg/reconciler/serverlessservice"
	"knative.dev/serving/pkg/reconciler/service"
	"knative.dev/serving/pkg/resources"
)

func main() {
	ctx := filteredinformers.WithSelectors(signals.NewContext(), serving.RevisionUID)
	ctx = sharedmain.WithHealthProbesDisabled(ctx)
	config := injection.ParseAndGetRESTConfigOrDie()
	sharedmain.MainWithConfig(ctx, "controller", config,
		configuration.NewController,
		labeler.NewController,
		revision.NewController,
		route.NewController,
		serverlessservice.NewController,
		service.NewController,
		gc.NewController,
		autoscaler,
	)
}

// autoscaler scales by what revisions state alone: their figures are never known.
func autoscaler(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx)
	figures := metrics.NewMetricCollector(unscraped, logger)
	pods := filteredpods.Get(ctx, serving.RevisionUID).Lister()
	scalers := func(decider *scaling.Decider) (scaling.UniScaler, error) {
		revision := decider.Labels[serving.RevisionLabelKey]
		return scaling.New(
			attribute.NewSet(),
			otel.GetMeterProvider(),
			decider.Namespace,
			decider.Name,
			figures,
			resources.NewPodAccessor(pods, decider.Namespace, revision),
			&decider.Spec,
		), nil
	}
	return kpa.NewController(ctx, watcher, scaling.NewMultiScaler(ctx.Done(), scalers, logger))
}

func unscraped(*autoscaling.Metric, *zap.SugaredLogger) (metrics.StatsScraper, error) {
	return nil, nil
}
