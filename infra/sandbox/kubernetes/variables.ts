import { z } from 'zod';
import { setting, share, text, wholeNumber } from '../../setting.ts';
import { defaultKubernetesSettings, type KubernetesSettings } from './settings.ts';

const { programs, requests, scheduleSec } = defaultKubernetesSettings;

/** The environment variables of Kubernetes sandboxes. */
export const kubernetesVariables = {
  TEMPER_KUBERNETES_NAMESPACE: setting(
    z
      .string()
      .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, { error: 'expected the name of a namespace' })
      .optional(),
    'namespace for the Pods of `kubernetes` sandboxes, in the cluster that `KUBECONFIG`, `~/.kube/config` or the account of this Pod names; see [Kubernetes](../guides/kubernetes.md)',
    'no such sandboxes',
  ),
  TEMPER_KUBERNETES_PROGRAMS: setting(
    text().default(programs),
    "image with the agents' programs, which the Pods mount; `infra/images/programs.ts` makes it",
  ),
  TEMPER_KUBERNETES_REQUESTS: setting(
    share().default(requests),
    "share of its task's CPU, memory and disk that a Pod reserves on its node; agents wait for the model most of the time",
  ),
  TEMPER_KUBERNETES_WAIT: setting(
    wholeNumber(1, 86_400).default(scheduleSec),
    'seconds that a Pod may wait for a node with room and for its image, before its stage fails and is retried',
  ),
  TEMPER_KUBERNETES_RUNTIME_CLASS: setting(
    text().optional(),
    'RuntimeClass of the Pods, such as one of gVisor or Kata',
    "the cluster's own runtime",
  ),
  TEMPER_KUBERNETES_NODES: setting(
    nodeLabels(),
    'labels of the nodes that Pods may run on, `name=value` separated by commas',
    'any node',
  ),
};

type Values = z.output<z.ZodObject<typeof kubernetesVariables>> & { readonly TEMPER_CREATES: number };

/** Returns the settings that these variables have; null if they name no namespace. */
export function kubernetesFrom(env: Values): KubernetesSettings | null {
  const namespace = env.TEMPER_KUBERNETES_NAMESPACE;
  if (namespace === undefined) return null;
  return {
    namespace,
    programs: env.TEMPER_KUBERNETES_PROGRAMS,
    requests: env.TEMPER_KUBERNETES_REQUESTS,
    scheduleSec: env.TEMPER_KUBERNETES_WAIT,
    creates: env.TEMPER_CREATES,
    runtimeClass: env.TEMPER_KUBERNETES_RUNTIME_CLASS ?? null,
    nodeSelector: env.TEMPER_KUBERNETES_NODES,
  };
}

function nodeLabels() {
  const error = 'expected labels as name=value, separated by commas';
  return z
    .string()
    .regex(/^([\w./-]+=[\w.-]*(,[\w./-]+=[\w.-]*)*)?$/, { error })
    .default('')
    .transform(
      (text): Record<string, string> =>
        Object.fromEntries(text.split(',').flatMap((label) => (label === '' ? [] : [label.split('=')]))),
    );
}
