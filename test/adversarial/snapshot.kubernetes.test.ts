import { describe } from 'node:test';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import { programsImage } from '../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../helpers/kubernetes/namespace.ts';
import { hostileTreesSuite } from './hostile-trees.ts';
import type { OpenProvider } from './pipeline.ts';
import { snapshotSuite } from './snapshot-suite.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('snapshot');
  const open: OpenProvider = (stack) =>
    createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 });
  snapshotSuite('kubernetes', open);
  hostileTreesSuite('kubernetes', open);
});
