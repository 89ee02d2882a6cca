import { describe } from 'node:test';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { keeperDirectory } from '../../../../infra/sandbox/shell/scripts.ts';
import { programsImage, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { execInPod, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { sandboxContract } from '../contract.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('contract');
  sandboxContract({
    title: 'kubernetes sandboxes',
    image: taskImage,
    root: namespace,
    open: (stack) => createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 }),
    killRecorder: (sandbox, key) => execInPod(namespace, sandbox, `kill -9 -$(cat ${keeperDirectory}/${key}/pid)`),
    programsInImage: true,
    scriptsChecked: true,
    evidence: ['disk', 'memory'],
  });
});
