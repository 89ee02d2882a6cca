import { after } from 'node:test';
import { podName } from '../../../../infra/sandbox/kubernetes/pod.ts';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { type ApiFault, startApiProxy } from '../../../helpers/kubernetes/api-proxy.ts';
import { programsImage, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { until } from '../../../helpers/until.ts';
import { faultContract } from '../contract-faults.ts';
import type { RetryAfter } from '../fault-bench.ts';

const { core, config } = openTestCluster();
const namespace = await testNamespace('faults');
const pods = `/api/v1/namespaces/${namespace}/pods`;
/** The faults of the next creations, in order. */
const creations: ApiFault[] = [];
/** The answer to lists, unless it is the API server's own. */
let listed: (() => Promise<string>) | null = null;

const proxy = await startApiProxy(config, async ({ method, path, watches }) => {
  if (path !== pods || watches) return undefined;
  if (method === 'POST') return creations.shift();
  return listed === null ? undefined : { status: 200, body: await listed() };
});
process.env.KUBECONFIG = proxy.kubeconfig;
after(() => proxy.close());

const answerLists = (answer: () => Promise<string>): (() => void) => {
  listed = answer;
  return () => {
    listed = null;
  };
};
const throttled = (retryAfterSec: RetryAfter): ApiFault => ({
  status: 429,
  ...(retryAfterSec !== null && { headers: { 'retry-after': String(retryAfterSec) } }),
  body: JSON.stringify({ kind: 'Status', status: 'Failure', code: 429, message: 'too many requests' }),
});
const isGone = (name: string): Promise<boolean> =>
  core.readNamespacedPod({ namespace, name }).then(
    () => false,
    (error: unknown) => error instanceof Error && 'code' in error && error.code === 404,
  );

faultContract({
  title: 'kubernetes sandboxes',
  image: taskImage,
  open: (stack) => createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 }),
  faults: {
    loseCreation: () => void creations.push('lose'),
    throttle: (times, retryAfterSec) =>
      void creations.push(...Array.from({ length: times }, () => throttled(retryAfterSec))),
    retryAfter: true,
    lagLists: async () => {
      const now = JSON.stringify(await core.listNamespacedPod({ namespace }));
      return answerLists(async () => now);
    },
    vanish: async (sandbox) => {
      const name = podName(sandbox);
      await core.deleteNamespacedPod({ namespace, name });
      await until(() => isGone(name));
    },
    cutStreams: () => proxy.cut(),
    endOf: async (sandbox) => {
      const { spec, status } = await core.readNamespacedPod({ namespace, name: podName(sandbox) });
      return Number(status?.startTime) + (spec?.activeDeadlineSeconds ?? Number.POSITIVE_INFINITY) * 1_000;
    },
    skewClock: (ms) =>
      answerLists(async () => {
        const list = await core.listNamespacedPod({ namespace });
        for (const { metadata } of list.items) {
          if (metadata?.creationTimestamp === undefined) continue;
          metadata.creationTimestamp = new Date(metadata.creationTimestamp.getTime() + ms);
        }
        return JSON.stringify(list);
      }),
  },
});
