//! A cluster of Metal3Machines that boot a live ISO and get their network from templates.

/// Old and new templates reuse their hosts, and nothing is made before something else has gone: there are no more servers.
pub(super) const CLUSTER: &str = "
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: walk}
spec:
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: walk}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Cluster, name: walk}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3Cluster
metadata: {name: walk}
spec: {controlPlaneEndpoint: ENDPOINT}
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPPool
metadata: {name: walk}
spec:
  clusterName: walk
  namePrefix: walk
  prefix: 24
  gateway: 192.0.2.1
  pools: [{start: 192.0.2.10, end: 192.0.2.99}]
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3DataTemplate
metadata: {name: walk}
spec:
  clusterName: walk
  metaData:
    objectNames: [{key: name, object: metal3machine}]
    ipAddressesFromPool: [{key: address, name: walk}]
    fromHostInterfaces: [{key: mac, interface: INTERFACE}, {key: boot-mac, fromBootMAC: true}]
  networkData:
    links: {ethernets: [{type: phy, id: first, macAddress: {fromHostInterface: INTERFACE}}]}
    networks:
      ipv4:
        - {id: pool, link: first, ipAddressFromIPPool: walk, routes: [{network: 0.0.0.0, gateway: {fromIPPool: walk}}]}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3MachineTemplate
metadata: {name: walk}
spec: TEMPLATE
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3MachineTemplate
metadata: {name: walk-2}
spec: TEMPLATE
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: walk}
spec:
  replicas: CONTROL_PLANES
  version: VERSION
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: SURGE}}}
  machineTemplate:
    spec:
      deletion: {nodeDrainTimeoutSeconds: 5}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: walk}
  kubeadmConfigSpec:
    initConfiguration: {nodeRegistration: NODE}
    joinConfiguration: {nodeRegistration: NODE}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: walk}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: NODE}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: walk}
spec:
  clusterName: walk
  replicas: WORKERS
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}}
  template:
    spec:
      clusterName: walk
      version: VERSION
      deletion: {nodeDrainTimeoutSeconds: 5}
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: walk}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: walk}
";

/// What both machine templates say.
pub(super) const TEMPLATE: &str = "{nodeReuse: true, template: {spec: {dataTemplate: {name: walk}, \
     image: {url: 'http://images.test/live.iso', checksum: '', diskFormat: live-iso}}}}";

/// How a node says which host it runs on.
pub(super) const NODE: &str =
    "{kubeletExtraArgs: [{name: node-labels, value: 'metal3.io/uuid={{ ds.meta_data.uuid }}'}]}";

/// Refuses to create or to delete one host, so that a move gets no further.
pub(super) const REFUSAL: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [metal3.io], apiVersions: ['*'], resources: [baremetalhosts], operations: [OPERATION]}]
  validations: [{expression: \"request.name != 'HOST'\"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse}
spec: {policyName: refuse, validationActions: [Deny]}
";
