import { describe } from 'node:test';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import { programsImage } from '../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../helpers/kubernetes/namespace.ts';
import { fullSuite } from './full-suite.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('full-pipeline');
  fullSuite('kubernetes', ['hold same', 'fork same', 'fork fresh', 'segments same', 'segments fresh'], (stack) =>
    createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 }),
  );
});
