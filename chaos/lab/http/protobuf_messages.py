"""The messages of Kubernetes protobuf that the lab decodes: fields by their numbers.

Field numbers: generated.proto of k8s.io/api and k8s.io/apimachinery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class Base64(dict[str, str]):
    """Bytes by key, in base64 as in JSON."""


class Quantities(dict[str, str]):
    """Quantities by key."""


@dataclass(frozen=True, slots=True)
class Field:
    """``kind``: str, int, bool, bytes, dict of strings, Base64 or Quantities, or the fields of a message by number.

    ``inline``: the fields of the message belong to the outer one. ``omits_zero``: as JSON with omitempty.
    """

    name: str
    kind: type | Mapping[int, Field] = str
    repeated: bool = False
    inline: bool = False
    omits_zero: bool = False


Kind = type | Mapping[int, Field]


def _strings(*names: str) -> dict[int, Field]:
    return {number: Field(name) for number, name in enumerate(names, 1)}


QUANTITY = _strings("string")  # in JSON the string alone
ENVELOPE = {1: Field("typeMeta", _strings("apiVersion", "kind")), 2: Field("raw", bytes)}
_OWNER = {
    1: Field("kind"),
    3: Field("name"),
    4: Field("uid"),
    5: Field("apiVersion"),
    6: Field("controller", bool),
    7: Field("blockOwnerDeletion", bool),
}
_METADATA = {
    **_strings("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"),
    11: Field("labels", dict),
    12: Field("annotations", dict),
    13: Field("ownerReferences", _OWNER, repeated=True),
    14: Field("finalizers", repeated=True),
}
_HEAD = {1: Field("metadata", _METADATA)}
_DELETE_OPTIONS = {
    1: Field("gracePeriodSeconds", int),
    2: Field("preconditions", _strings("uid", "resourceVersion")),
    3: Field("orphanDependents", bool),
    4: Field("propagationPolicy"),
    5: Field("dryRun", repeated=True),
}
_RESOURCE = _strings("namespace", "verb", "group", "version", "resource", "subresource", "name")
_ACCESS = {1: Field("resourceAttributes", _RESOURCE), 2: Field("nonResourceAttributes", _strings("path", "verb"))}

_REFERENCE = Field("", _strings("name"), inline=True)
_KEY_OF = {1: _REFERENCE, 2: Field("key"), 3: Field("optional", bool)}
_ENV = {
    **_strings("name", "value"),
    3: Field(
        "valueFrom",
        {
            1: Field("fieldRef", _strings("apiVersion", "fieldPath")),
            3: Field("configMapKeyRef", _KEY_OF),
            4: Field("secretKeyRef", _KEY_OF),
        },
    ),
}
_SOURCE = {1: _REFERENCE, 2: Field("optional", bool)}
_ENV_FROM = {1: Field("prefix"), 2: Field("configMapRef", _SOURCE), 3: Field("secretRef", _SOURCE)}
_PORT = {1: Field("name"), 2: Field("hostPort", int), 3: Field("containerPort", int), 4: Field("protocol")}
_RESOURCES = {1: Field("limits", Quantities), 2: Field("requests", Quantities)}
_SECCOMP = _strings("type", "localhostProfile")
_SECURITY = {
    1: Field("capabilities", {1: Field("add", repeated=True), 2: Field("drop", repeated=True)}),
    2: Field("privileged", bool),
    4: Field("runAsUser", int),
    5: Field("runAsNonRoot", bool),
    6: Field("readOnlyRootFilesystem", bool),
    7: Field("allowPrivilegeEscalation", bool),
    8: Field("runAsGroup", int),
    11: Field("seccompProfile", _SECCOMP),
}
_MOUNT = {1: Field("name"), 2: Field("readOnly", bool, omits_zero=True), 3: Field("mountPath"), 4: Field("subPath")}
_CONTAINER = {
    **_strings("name", "image"),
    3: Field("command", repeated=True),
    4: Field("args", repeated=True),
    5: Field("workingDir"),
    6: Field("ports", _PORT, repeated=True),
    7: Field("env", _ENV, repeated=True),
    8: Field("resources", _RESOURCES),
    9: Field("volumeMounts", _MOUNT, repeated=True),
    13: Field("terminationMessagePath"),
    14: Field("imagePullPolicy"),
    15: Field("securityContext", _SECURITY),
    19: Field("envFrom", _ENV_FROM, repeated=True),
    20: Field("terminationMessagePolicy"),
}
_ITEMS = Field("items", {1: Field("key"), 2: Field("path"), 3: Field("mode", int)}, repeated=True)
_PROJECTION = {1: _REFERENCE, 2: _ITEMS, 4: Field("optional", bool)}
_PROJECTED = {1: Field("secret", _PROJECTION), 3: Field("configMap", _PROJECTION)}
_OF_SECRET = {1: Field("secretName"), 2: _ITEMS, 3: Field("defaultMode", int), 4: Field("optional", bool)}
_OF_CONFIG_MAP = {1: _REFERENCE, 2: _ITEMS, 3: Field("defaultMode", int), 4: Field("optional", bool)}
_VOLUME_SOURCE = {
    2: Field("emptyDir", {1: Field("medium"), 2: Field("sizeLimit", QUANTITY)}),
    6: Field("secret", _OF_SECRET),
    10: Field("persistentVolumeClaim", {1: Field("claimName"), 2: Field("readOnly", bool, omits_zero=True)}),
    19: Field("configMap", _OF_CONFIG_MAP),
    26: Field("projected", {1: Field("sources", _PROJECTED, repeated=True), 2: Field("defaultMode", int)}),
}
_REQUIREMENT = {**_strings("key", "operator"), 3: Field("values", repeated=True)}
_TERM = {
    1: Field("matchExpressions", _REQUIREMENT, repeated=True),
    2: Field("matchFields", _REQUIREMENT, repeated=True),
}
_PREFERRED = {1: Field("weight", int), 2: Field("preference", _TERM)}
_NODE_AFFINITY = {
    1: Field("requiredDuringSchedulingIgnoredDuringExecution", {1: Field("nodeSelectorTerms", _TERM, repeated=True)}),
    2: Field("preferredDuringSchedulingIgnoredDuringExecution", _PREFERRED, repeated=True),
}
_TOLERATION = {**_strings("key", "operator", "value", "effect"), 5: Field("tolerationSeconds", int)}
_POD_SECURITY = {
    2: Field("runAsUser", int),
    3: Field("runAsNonRoot", bool),
    5: Field("fsGroup", int),
    6: Field("runAsGroup", int),
    9: Field("fsGroupChangePolicy"),
    10: Field("seccompProfile", _SECCOMP),
}
_POD = {
    1: Field("volumes", {1: Field("name"), 2: Field("", _VOLUME_SOURCE, inline=True)}, repeated=True),
    2: Field("containers", _CONTAINER, repeated=True),
    3: Field("restartPolicy"),
    4: Field("terminationGracePeriodSeconds", int),
    5: Field("activeDeadlineSeconds", int),
    6: Field("dnsPolicy"),
    7: Field("nodeSelector", dict),
    8: Field("serviceAccountName"),
    9: Field("serviceAccount"),
    10: Field("nodeName"),
    14: Field("securityContext", _POD_SECURITY),
    18: Field("affinity", {1: Field("nodeAffinity", _NODE_AFFINITY)}),
    19: Field("schedulerName"),
    20: Field("initContainers", _CONTAINER, repeated=True),
    21: Field("automountServiceAccountToken", bool),
    22: Field("tolerations", _TOLERATION, repeated=True),
    24: Field("priorityClassName"),
    30: Field("enableServiceLinks", bool),
}
_TEMPLATE = {**_HEAD, 2: Field("spec", _POD)}
_SELECTOR = {1: Field("matchLabels", dict)}
_DEPLOYMENT = {1: Field("replicas", int), 2: Field("selector", _SELECTOR), 3: Field("template", _TEMPLATE)}
_FAILURE_RULE = {
    1: Field("action"),
    2: Field("onExitCodes", {**_strings("containerName", "operator"), 3: Field("values", int, repeated=True)}),
    3: Field("onPodConditions", _strings("type", "status"), repeated=True),
}
_JOB = {
    1: Field("parallelism", int),
    2: Field("completions", int),
    3: Field("activeDeadlineSeconds", int),
    4: Field("selector", _SELECTOR),
    5: Field("manualSelector", bool),
    6: Field("template", _TEMPLATE),
    7: Field("backoffLimit", int),
    8: Field("ttlSecondsAfterFinished", int),
    9: Field("completionMode"),
    10: Field("suspend", bool),
    11: Field("podFailurePolicy", {1: Field("rules", _FAILURE_RULE, repeated=True)}),
    14: Field("podReplacementPolicy"),
}
MESSAGES: dict[str, dict[int, Field]] = {
    "ConfigMap": {**_HEAD, 2: Field("data", dict)},
    "DeleteOptions": _DELETE_OPTIONS,
    "Deployment": {**_HEAD, 2: Field("spec", _DEPLOYMENT)},
    "Eviction": {**_HEAD, 2: Field("deleteOptions", _DELETE_OPTIONS)},
    "Job": {**_HEAD, 2: Field("spec", _JOB)},
    "Namespace": _HEAD,
    "PriorityClass": {
        **_HEAD,
        2: Field("value", int),
        3: Field("globalDefault", bool),
        4: Field("description"),
        5: Field("preemptionPolicy"),
    },
    "Secret": {
        **_HEAD,
        2: Field("data", Base64),
        3: Field("type"),
        4: Field("stringData", dict),
        5: Field("immutable", bool),
    },
    "SelfSubjectAccessReview": {**_HEAD, 2: Field("spec", _ACCESS)},
    "SelfSubjectRulesReview": {**_HEAD, 2: Field("spec", _strings("namespace"))},
    "SelfSubjectReview": _HEAD,
    "ServiceAccount": _HEAD,
}
