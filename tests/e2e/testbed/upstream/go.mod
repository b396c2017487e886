// Projects whose CRDs and samples the tests read. Only tests/e2e/operators/test_operator_defaults.py builds code of them.
module podgate.test/e2e/testbed/upstream

go 1.22

require (
	github.com/argoproj/argo-rollouts v1.8.3
	github.com/argoproj/argo-workflows/v3 v3.6.10
	github.com/kserve/kserve v0.17.0
	github.com/kubeflow/spark-operator/v2 v2.5.0
	github.com/kubeflow/trainer/v2 v2.2.0
	github.com/kubeflow/training-operator v1.9.2
	github.com/openkruise/kruise v1.8.3
	github.com/ray-project/kuberay/ray-operator v1.4.2
	github.com/tektoncd/pipeline v1.7.0
	knative.dev/serving v0.46.0
	kubevirt.io/api v1.9.0
	kubevirt.io/client-go v1.9.0
	kubevirt.io/kubevirt v1.9.0
	sigs.k8s.io/jobset v0.8.1
	sigs.k8s.io/lws v0.9.0
	volcano.sh/volcano v1.10.0
)
