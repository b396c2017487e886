package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/defaults"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
)

// settings returns the configuration of a new KubeVirt on machines with amd64.
func settings() *virtconfig.ClusterConfig {
	informer := func(obj runtime.Object) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{}, obj, 0, cache.Indexers{})
	}
	crds, kubevirts := informer(&metav1.PartialObjectMetadata{}), informer(&v1.KubeVirt{})
	kubevirt := &v1.KubeVirt{Status: v1.KubeVirtStatus{DefaultArchitecture: "amd64", Phase: "Deployed"}}
	kubevirt.Name, kubevirt.Namespace, kubevirt.ResourceVersion = "kubevirt", "kubevirt", "1"
	must(kubevirt, kubevirts.GetStore().Add(kubevirt))
	config, err := virtconfig.NewClusterConfigWithCPUArch(crds, kubevirts, "kubevirt", "amd64")
	return must(config, err)
}

// annotate does what the webhooks do after the defaults. Their package imports a module that the
// module proxy does not give (kubevirt.io/virt-template-api). They give a VirtualMachine an id too.
func annotate(spec *v1.VirtualMachineInstanceSpec, meta *metav1.ObjectMeta) {
	_, found := meta.Annotations[v1.PciTopologyVersionAnnotation]
	if defaults.SupportsPCIeHotplug(spec) && !found {
		metav1.SetMetaDataAnnotation(meta, v1.PciTopologyVersionAnnotation, v1.PciTopologyVersionV3)
	}
}

func complete(kind string, data []byte) any {
	if kind == "kubevirt.io/v1 VirtualMachineInstance" {
		obj := read(data, &v1.VirtualMachineInstance{})
		// The id that they give it differs each time.
		firmware := obj.Spec.Domain.Firmware.DeepCopy()
		must(obj, defaults.SetDefaultVirtualMachineInstance(settings(), obj))
		obj.Spec.Domain.Firmware = firmware
		annotate(&obj.Spec, &obj.ObjectMeta)
		return obj
	}
	obj := read(data, &v1.VirtualMachine{})
	defaults.SetVirtualMachineDefaults(obj, settings(), nil)
	annotate(&obj.Spec.Template.Spec, &obj.Spec.Template.ObjectMeta)
	return obj
}
